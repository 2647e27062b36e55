cimport cython
from libc.stdint cimport int64_t

from warren.framing.output_listener cimport OutputListener
from warren.model.message cimport Message

cdef Py_ssize_t _OVERHEAD
cdef Py_ssize_t _JOINED_SIZE_MAX
cdef int _HAS_HEADERS
cdef Py_ssize_t _SIZE_MAX
cdef Py_ssize_t _HEAD_SIZE
cdef unsigned char _HEADER
cdef unsigned char _BODY
cdef Py_ssize_t _LIST_AT
cdef Py_ssize_t _BODY_HEAD_SIZE

@cython.final
cdef class Outbox:
    cdef public Py_ssize_t frame_size_max
    cdef public bint is_paused
    cdef readonly Py_ssize_t size
    cdef readonly int64_t total
    cdef OutputListener _output_listener
    cdef list _pieces
    cdef bint _has_large
    cdef list _confirms
    cdef dict _held_back
    cdef bytes _middle
    cdef int _channel_number
    cdef bytes _property_list
    cdef Py_ssize_t _content_size
    cdef bytearray _scratch

    cpdef bint is_full(self)
    cpdef bint is_holding_back(self)
    cpdef list take(self)
    cpdef wait_for_room(self, object subscriber)
    cpdef flush_later(self, object confirms)
    cpdef raw(self, bytes data)
    cpdef payload(self, int channel, bytes payload)
    @cython.locals(pieces=list, content=bytes, size=Py_ssize_t)
    cpdef content(self, int channel, bytes before, Message message, bytes after)
    @cython.locals(was=Py_ssize_t)
    cdef _grow(self, Py_ssize_t size)
    @cython.locals(property_list=bytes, source='const unsigned char*', list_size=Py_ssize_t, content_size=Py_ssize_t,
                   data='unsigned char*', at=Py_ssize_t, end=Py_ssize_t)
    cdef _make_middle(self, int channel, Message message)

cdef void _write_head(unsigned char* data, Py_ssize_t at, unsigned char kind, int channel) noexcept

cdef void _write(unsigned char* data, Py_ssize_t at, Py_ssize_t number) noexcept
