cimport cython

from warren.store.group_records cimport GroupRecords

cdef int _PASSED_BATCHES_MAX

@cython.final
cdef class PreparingGroups:
    cdef public bint is_due
    cdef list _next
    cdef dict _later
    cdef int _passed_batches

    cpdef add(self, GroupRecords group_log)
    cpdef add_later(self, GroupRecords group_log)
    @cython.locals(taken=list, later=dict)
    cpdef list take(self, bint is_for_others, bint is_last)
