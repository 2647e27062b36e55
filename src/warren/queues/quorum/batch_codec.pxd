cpdef bytes encode(batch)
cdef bint _divides(enqueued, runs) except -1
cdef bint _is_in_order(settled) except -1
