cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message
from warren.queues.queue cimport Queue, QueueHost
from warren.routing.exchange cimport Exchange
from warren.routing.router cimport Route, Router, decode_name

cdef int _UNROUTED
cdef int _UNAVAILABLE

cdef class VirtualHost(QueueHost):
    cdef readonly str name
    cdef readonly Router router
    cdef readonly dict queues
    cdef readonly object expiry
    cdef readonly object failures
    cdef public uint64_t permission_generation
    cdef public object history
    cdef public int64_t bytes_received
    cdef public int64_t bytes_sent
    cdef public object queue_unused
    cdef readonly object removals
    cdef object _dead_letter_router
    cdef dict _rerouted
    cdef readonly object stores
    cdef readonly object streams
    cdef readonly bint has_store
    cdef public bint is_recovered
    cdef readonly object tracer
    cdef public object published_positions
    cdef public object remote_replies
    cdef public object leadership_listener

    @cython.locals(destinations=tuple)
    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    @cython.locals(exchange=Exchange)
    cpdef int publish_routed(
        self, tuple destinations, Message message, ConfirmListener confirmation, uint64_t sequence
    ) except -1
    @cython.locals(queue=Queue, exchange=Exchange)
    cpdef int publish_by_route(
        self, Route route, Message message, ConfirmListener confirmation, uint64_t sequence
    ) except -1
    @cython.locals(queue=Queue, outcome=cython.int, answer=cython.int, common=cython.int)
    cpdef int publish_to_queues(
        self, tuple destinations, Message message, ConfirmListener confirmation, uint64_t sequence
    ) except -1
    cpdef uint64_t generation(self) except? 0
