from libc.stdint cimport uint64_t

cdef class ConfirmListener:
    cpdef expect(self, uint64_t sequence)
    cpdef done(self, uint64_t first, uint64_t last)
    cpdef refused(self, uint64_t sequence)
