cimport cython
from libc.stdint cimport int64_t

from warren.store.cursor cimport QueueCursor

cdef Py_ssize_t _ENTRY_SIZE
cdef int _AHEAD_MAX

@cython.final
cdef class Delivered:
    cdef object _disk
    cdef readonly list damage
    cdef dict _places
    cdef list _free
    cdef dict _found
    cdef dict _ahead
    cdef Py_ssize_t _count

    @cython.locals(ahead=int64_t)
    cpdef reserve(self, QueueCursor cursor)
    @cython.locals(cursor=QueueCursor)
    cpdef take_back(self)
    cpdef drop(self, QueueCursor cursor)
    cdef bint _note(self, QueueCursor cursor, int64_t position) except -1
    cdef object _added(self)

cdef bytes _with_checksum(bytes data)
