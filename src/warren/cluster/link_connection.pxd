cdef int _KIND_AT
