cdef class Credit:
    cdef object _later
    cdef object _waiting
    cdef bint _is_calling
    cdef int _debts
    cdef readonly bint is_spent
