from libc.stdint cimport int64_t

from warren.queues.local cimport LocalQueue
from warren.queues.queue cimport Delivery

cdef class TakingQueue(LocalQueue):
    cpdef Delivery take(self, object peeked)
    cpdef release(self, Delivery delivery)
    cpdef give_back(self, Delivery delivery)
    cpdef int64_t place_of(self, Delivery delivery) except -1
    cpdef bytes body(self, Delivery delivery)
