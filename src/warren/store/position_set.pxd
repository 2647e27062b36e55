cimport cython
from libc.stdint cimport int64_t

cdef int _PAGE_SHIFT
cdef int64_t _PAGE_SIZE

cdef class PositionSet:
    cdef readonly int64_t low
    cdef readonly int64_t end
    cdef dict _pages

    @cython.locals(before=int64_t)
    cpdef add(self, int64_t first, int64_t end)
    @cython.locals(page=bytearray, at=int64_t)
    cpdef bint has(self, int64_t position) except -1
    @cython.locals(page=bytearray, number=int64_t, base=int64_t, at=int64_t, first=int64_t, behind=int64_t, position=int64_t)
    cpdef list runs(self)
    @cython.locals(page=bytearray, number=int64_t, base=int64_t, stop=int64_t, at=int64_t)
    cdef _mark(self, int64_t first, int64_t end)
    @cython.locals(page=bytearray, number=int64_t, at=int64_t)
    cdef _absorb(self, int64_t before)
