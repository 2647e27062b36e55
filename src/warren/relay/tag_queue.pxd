cimport cython
from libc.stdint cimport uint64_t

cdef Py_ssize_t _ROOM_MIN

@cython.final
cdef class TagQueue:
    cdef readonly Py_ssize_t count
    cdef object _array
    cdef uint64_t[::1] _items
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _head

    cpdef append(self, uint64_t tag)
    cpdef uint64_t get(self, Py_ssize_t place) except? 0
    @cython.locals(last=uint64_t)
    cpdef uint64_t take(self, Py_ssize_t count) except? 0
    cdef _grow(self)
