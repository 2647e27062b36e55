cimport cython
from libc.stdint cimport int64_t

from warren.cluster.groups.parted_channel cimport PartedChannel
from warren.model.message cimport StoredMessage

cdef int _BODY_ON_DISK

@cython.final
cdef class ReplicaOutbox:
    cdef readonly PartedChannel data
    cdef readonly PartedChannel control
    cdef list _held
    cdef object _data
    cdef dict _behind
    cdef Py_ssize_t _behind_count
    cdef int64_t _budget
    cdef dict _lost
    cdef bint _is_writable
    cdef list _parts
    cdef Py_ssize_t _size

    cpdef add(self, replica, message)
    cpdef bint flush(self, dict encoded) except -1
    cpdef list take_lost(self)
    cdef _lose(self, replica, message)
    cdef _flush_control(self)
    cdef _flush_behind(self, dict encoded)
    @cython.locals(entries=list, size=Py_ssize_t)
    cdef bint _write(self, replica, message, dict encoded, bint may_read) except -1
    @cython.locals(messages=list)
    cdef _encode(self, replica, entry, contents)
    cdef _end_payload(self)

@cython.locals(message=StoredMessage)
cdef bint _is_on_disk(content) except -1

cdef bint _is_any_on_disk(contents) except -1
