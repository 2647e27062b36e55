from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.model.message cimport Message, body_size_of
from warren.queues.local cimport LocalQueue
from warren.queues.queue cimport Consumer, Delivery

cdef class RemoteDeliveries:
    cpdef bint can_deliver(self) except -1
    cpdef deliver(self, RemoteConsumer consumer, Delivery delivery)
    cpdef deliver_message(self, RemoteConsumer consumer, Message message, uint32_t attempts)
    cpdef cancelled(self, RemoteConsumer consumer)

cdef class RemoteConsumer(Consumer):
    cdef RemoteDeliveries _deliveries
    cdef readonly uint64_t id
    cdef readonly LocalQueue queue
    cdef public int64_t prefetch
    cdef public int64_t unsettled
    cdef public int64_t count
    cdef public int64_t byte_count
    cdef public uint64_t messages_to
    cdef public uint64_t bytes_to

    cpdef bint is_ready(self) except -1
    cpdef int64_t prefetch_limit(self) except -1
    cpdef deliver(self, Delivery delivery)
    cpdef deliver_message(self, Message message, bint redelivered)
    cpdef cancelled(self)
