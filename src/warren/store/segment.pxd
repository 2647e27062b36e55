cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

@cython.final
cdef class Segment:
    cdef readonly uint64_t number
    cdef public int64_t capacity
    cdef public int64_t size
    cdef public int64_t live
    cdef public bint is_sealed
    cdef public uint32_t seed
    cdef public set lanes
