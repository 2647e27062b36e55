cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.store.position_set cimport PositionSet

@cython.final
cdef class QueueCursor(PositionSet):
    cdef readonly uint32_t queue
    cdef readonly int level
    cdef readonly uint64_t key
    cdef public int64_t delivered_up_to
    cdef public bint is_delivered_dirty
    cdef public int64_t reserved
    cdef public int ahead
    cdef public int64_t run_first
    cdef public int64_t run_count
    cdef public uint64_t noted_in
    cdef public bint is_dirty
    cdef public bint is_dropped
