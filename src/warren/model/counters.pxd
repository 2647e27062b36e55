from libc.stdint cimport int64_t

cdef class Counters:
    cdef public int64_t published
    cdef public int64_t confirmed
    cdef public int64_t returned
    cdef public int64_t dropped
    cdef public int64_t delivered
    cdef public int64_t delivered_no_ack
    cdef public int64_t got
    cdef public int64_t got_no_ack
    cdef public int64_t got_empty
    cdef public int64_t redelivered
    cdef public int64_t acknowledged
