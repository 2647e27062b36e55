cimport cython
from libc.stdint cimport uint64_t

cdef int _SLOT_SHIFT
cdef uint64_t _MASK
cdef uint64_t _FIRST
cdef uint64_t _SECOND
cdef uint64_t _SPREAD
cdef double _UNIT

@cython.locals(
    at=Py_ssize_t, winner=Py_ssize_t, best=double, wait=double, unit=double, spread=uint64_t, most=uint64_t,
    number=uint64_t, candidate=uint64_t, weight=double,
)
cpdef Py_ssize_t draw(uint64_t slot, list seeds, list weights) except -1

cpdef uint64_t mix(uint64_t value) noexcept
