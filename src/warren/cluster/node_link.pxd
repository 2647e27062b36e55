cdef object _LASTING
