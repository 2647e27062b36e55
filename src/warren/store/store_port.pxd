cdef class StorePort:
    cpdef commit_due(self)
    cpdef commit_due_later(self)
    cpdef fell_behind(self)
    cpdef caught_up(self)
