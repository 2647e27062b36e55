cdef object _TICKED
cdef object _HEARTBEATS
