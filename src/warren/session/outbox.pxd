cimport cython
from libc.stdint cimport int64_t

from warren.model.message cimport Message

cdef Py_ssize_t _OVERHEAD
cdef Py_ssize_t _JOINED_SIZE_MAX
cdef Py_ssize_t _SIZE_MAX
cdef Py_ssize_t _BODY_CHANNEL_AT
cdef Py_ssize_t _BODY_AT

@cython.final
cdef class Outbox:
    cdef readonly object connection
    cdef public Py_ssize_t frame_size_max
    cdef public bint is_paused
    cdef readonly Py_ssize_t size
    cdef readonly int64_t total
    cdef object _wake
    cdef list _pieces
    cdef bint _has_large
    cdef list _confirms
    cdef dict _held_back
    cdef bytes _header_head
    cdef int _header_channel
    cdef Py_ssize_t _header_size

    cpdef bint is_full(self)
    cpdef bint is_holding_back(self)
    cpdef list take(self)
    cpdef wait_for_room(self, object subscriber)
    cpdef answer_later(self, object confirms)
    cpdef raw(self, bytes octets)
    cpdef payload(self, int channel, bytes payload)
    @cython.locals(pieces=list, address=bytes, content=bytes, header_size=Py_ssize_t, size=Py_ssize_t)
    cpdef content(self, int channel, bytes before, Message message, bytes after)
    @cython.locals(was=Py_ssize_t)
    cdef _grow(self, Py_ssize_t size)
    cdef _make_header_head(self, int channel, Py_ssize_t header_size)
    @cython.locals(content=bytes, at=Py_ssize_t, octets='const unsigned char*')
    cdef _readdress(self, int channel, Message message)
