cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.store.position_set cimport PositionSet

cdef int _SLOT_SHIFT

@cython.final
cdef class Segment:
    cdef readonly uint64_t number
    cdef readonly str name
    cdef public int64_t capacity
    cdef public int64_t size
    cdef public int64_t count
    cdef public set queues
    cdef public int64_t byte_count
    cdef public int64_t live
    cdef public int64_t live_bytes
    cdef public PositionSet gone
    cdef public object moved
    cdef public object home
    cdef public bint is_sealed
    cdef public bint is_retiring
    cdef public bint is_retired
    cdef public uint32_t seed
    cdef public bint knows_deaths
    cdef public set cursors

    cpdef add_references(self, int64_t references, int64_t byte_count)
    cpdef drop_references(self, int64_t references, int64_t byte_count)

cpdef int64_t slot_of(int64_t at)
