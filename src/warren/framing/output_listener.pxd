cdef class OutputListener:
    cpdef output_ready(self)
    cpdef output_full(self)
