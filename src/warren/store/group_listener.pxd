from libc.stdint cimport uint64_t

cdef class GroupListener:
    cpdef prepare(self)
    cpdef written(self, uint64_t ticket)
