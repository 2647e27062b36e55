from libc.stdint cimport uint64_t

cdef class QuorumMachine:
    cdef dict _reach
    cdef dict _enqueuers
    cdef readonly object _returned

    cpdef uint64_t reach(self, int level) except? 0
    cpdef apply(self, batch)
    cdef tuple _enqueue(self, batch)
