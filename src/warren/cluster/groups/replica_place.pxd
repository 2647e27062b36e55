cimport cython

@cython.final
cdef class ReplicaPlace:
    cdef readonly object replica
    cdef readonly object number
    cdef public object nodes
    cdef public bint is_awake
    cdef public int idle_ticks
    cdef public tuple quiet
    cdef public int campaign_in
    cdef public tuple slept
