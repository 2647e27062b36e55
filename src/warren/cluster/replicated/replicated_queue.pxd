cimport cython
from libc.stdint cimport uint64_t

from warren.cluster.replicated.led_queue cimport LedQueue
from warren.cluster.replicated.leader_traffic cimport LeaderTraffic
from warren.cluster.replicated.unsettled_places cimport UnsettledPlaces
from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message
from warren.queues.queue cimport Consumer, Delivery
from warren.queues.quorum.quorum_queue cimport QuorumQueue

cdef int _ACKNOWLEDGE
cdef int _REJECT
cdef int _ACCEPTED
cdef int _BEHIND
cdef int _REFUSED_AS_AWAY
cdef Py_ssize_t _HELD_SIZE_MAX
cdef Py_ssize_t _UNANSWERED_SIZE_MAX

cdef class ReplicatedQueue(LedQueue):
    cdef object _after
    cdef object _absence
    cdef object _changes
    cdef object _credit
    cdef object _dependencies
    cdef object _enqueuer
    cdef bint _is_gone
    cdef uint64_t _number
    cdef object _served_nodes
    cdef uint64_t _term
    cdef LeaderTraffic _traffic

    @cython.locals(leader=QuorumQueue, traffic=LeaderTraffic)
    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    cpdef acknowledge(self, Delivery delivery)
    cpdef requeue(self, Delivery delivery, int reason=*)
    cpdef reject(self, Delivery delivery)
    cpdef Message outgoing(self, Delivery delivery)
    @cython.locals(leader=QuorumQueue)
    cpdef consumer_ready(self, Consumer consumer)
    @cython.locals(leader=QuorumQueue)
    cpdef unpark(self, Consumer consumer)
    @cython.locals(unsettled=UnsettledPlaces, place=uint64_t)
    cdef _settle(self, Delivery delivery, int how)
