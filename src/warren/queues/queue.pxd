cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.flow.credit cimport PublishCredit
from warren.model.confirm_listener cimport ConfirmListener
from warren.model.counters cimport Counters
from warren.model.message cimport Message, body_size_of
from warren.model.turn cimport Turn


cdef class Consumer:
    cdef readonly bint no_ack
    cdef readonly bint is_exclusive
    cdef public bint is_parked
    cdef readonly str tag
    cdef readonly int64_t priority
    cdef public Consumer after
    cdef public Consumer before

    cpdef bint is_ready(self) except -1
    cpdef int64_t prefetch_limit(self) except -1
    cpdef int64_t shared_capacity(self) except -1
    cpdef deliver(self, Delivery delivery)
    cpdef deliver_message(self, Message message, bint redelivered)
    cpdef cancelled(self)

@cython.final
@cython.freelist(64)
cdef class Delivery:
    cdef readonly Queue queue
    cdef public Message message
    cdef readonly uint64_t position
    cdef public uint32_t attempts
    cdef readonly uint32_t byte_count
    cdef public uint32_t failures
    cdef public int64_t delivered_at
    cdef public Consumer consumer

@cython.locals(delivery=Delivery)
cpdef Delivery new_delivery(Queue queue, Message message, uint64_t position)

cdef class QueueHost(Counters):
    cdef readonly Turn turn
    cdef public PublishCredit behind
    cdef public int64_t work
    cdef readonly bint is_traced
    cdef public bint counts_all_returns
    cdef public dict dirty
    cdef public Py_ssize_t consumer_count
    cdef readonly dict holders
    cdef readonly dict kept_counts
    cdef public int64_t confirmed_dead_letters

    cpdef dead_letter(self, Queue queue, Message message, str reason)
    cpdef count_discarded(self, Queue queue, str reason)
    cpdef wake_at(self, Queue queue, int64_t when)
    cpdef delete_queue(self, Queue queue)

cdef class Queue:
    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    cpdef acknowledge(self, Delivery delivery)
    cpdef requeue(self, Delivery delivery, int reason=*)
    cpdef reject(self, Delivery delivery)
    cpdef Message outgoing(self, Delivery delivery)
    cpdef consumer_ready(self, Consumer consumer)
    cpdef pump(self)
    cpdef expire(self)
