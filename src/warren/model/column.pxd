cimport cython
from libc.stdint cimport uint64_t

cdef Py_ssize_t _ROOM_MIN
cdef int _GROWTH_SHIFT

@cython.final
cdef class Column:
    cdef readonly Py_ssize_t count
    cdef object _array
    cdef uint64_t[::1] _items
    cdef Py_ssize_t _room

    cpdef append(self, uint64_t number)
    cpdef uint64_t get(self, Py_ssize_t place) except? 0
    cpdef put(self, Py_ssize_t place, uint64_t number)
    cpdef cut(self, Py_ssize_t count)
    cpdef object numbers(self, Py_ssize_t first=*)
    cpdef reserve(self, Py_ssize_t count)
    cdef _grow(self)
    cdef _grow_by(self, Py_ssize_t more)
