cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

@cython.final
cdef class Lane:
    cdef readonly uint32_t queue
    cdef readonly int level
    cdef readonly uint64_t key
    cdef public int64_t low
    cdef public int64_t reached
    cdef public bint has_reached
    cdef dict _starts
    cdef dict _ends
    cdef public int64_t run_first
    cdef public int64_t run_count
    cdef public bint is_dirty
    cdef public bint is_dropped

    cpdef release(self, int64_t first, int64_t end)
    cdef _close_gap(self)
