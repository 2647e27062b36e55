cdef class PublishCredit:
    cdef object _later
    cdef object _waiting
    cdef bint _is_calling
    cdef int _debts
    cdef int _debts_of_all
    cdef readonly bint is_spent
    cdef readonly bint is_spent_for_all
