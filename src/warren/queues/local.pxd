from warren.queues.queue cimport Delivery
from warren.queues.vhost_queue cimport VhostQueue

cdef class LocalQueue(VhostQueue):
    cpdef Delivery get(self, bint no_ack=*)
