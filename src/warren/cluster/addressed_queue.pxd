cimport cython
from libc.stdint cimport uint64_t

from warren.cluster.publish_answers cimport PublishAnswers
from warren.queues.local cimport LocalQueue

@cython.final
cdef class AddressedQueue:
    cdef readonly uint64_t number
    cdef readonly str name
    cdef uint64_t _index
    cdef readonly LocalQueue queue
    cdef readonly bint is_gone
    cdef object _changed
    cdef readonly PublishAnswers answers
    cdef readonly object served
