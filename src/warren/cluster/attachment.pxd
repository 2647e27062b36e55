cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.queues.queue cimport Consumer, Queue

cdef int64_t _WINDOW_MESSAGES
cdef int64_t _WINDOW_SIZE

@cython.final
cdef class Attachment:
    cdef readonly uint64_t id
    cdef readonly Consumer consumer
    cdef readonly Queue queue
    cdef readonly uint64_t number
    cdef public dict siblings
    cdef public bint is_started
    cdef public bint is_ending
    cdef public bint is_kept
    cdef public bint is_detached
    cdef public bint is_returning
    cdef public int64_t count
    cdef public int64_t byte_count
    cdef public int64_t messages_to
    cdef public int64_t bytes_to

    cpdef bint is_due(self)
