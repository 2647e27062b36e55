from libc.stdint cimport uint64_t

from warren.cluster.home_node cimport HomeNode
from warren.cluster.queue_traffic cimport QueueTraffic
from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message
from warren.queues.queue cimport Consumer, Delivery
from warren.queues.vhost_queue cimport VhostQueue

cdef int _ACKNOWLEDGE
cdef int _REJECT
cdef int _ACCEPTED

cdef class RemoteQueue(VhostQueue):
    cdef HomeNode _home
    cdef QueueTraffic _traffic
    cdef object _counts
    cdef bint _is_paused

    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    cpdef acknowledge(self, Delivery delivery)
    cpdef requeue(self, Delivery delivery, int reason=*)
    cpdef reject(self, Delivery delivery)
    cpdef consumer_ready(self, Consumer consumer)
    cpdef unpark(self, Consumer consumer)
