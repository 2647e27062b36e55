cdef class Value:
    cpdef tuple fields(self)
