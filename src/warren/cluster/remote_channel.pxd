cimport cython
from libc.stdint cimport uint32_t, uint64_t

from warren.cluster.addressed_queue cimport AddressedQueue
from warren.cluster.payload_reader cimport PayloadReader
from warren.cluster.payload_writer cimport PayloadWriter
from warren.cluster.publish_answers cimport PublishAnswers
from warren.cluster.remote_consumer cimport RemoteConsumer, RemoteDeliveries
from warren.model.message cimport Message
from warren.model.ring cimport Ring
from warren.queues.local cimport LocalQueue
from warren.queues.queue cimport Delivery, Queue
from warren.vhost.vhost cimport VirtualHost

cdef int _ACKNOWLEDGE
cdef int _REJECT
cdef int _CHANNEL_ENDED
cdef int _RETURNED
cdef int _REFUSED
cdef int _PUBLISH
cdef int _SETTLE
cdef int _SAME_QUEUES
cdef int _WANTS_CONFIRM

cdef class RemoteChannel(RemoteDeliveries):
    cdef readonly VirtualHost vhost
    cdef readonly bint is_over
    cdef object _channel
    cdef object _metadata
    cdef object _later
    cdef bytes _head
    cdef PayloadWriter _writer
    cdef bint _is_flush_due
    cdef bint _takes
    cdef dict _queues
    cdef dict _answering
    cdef dict _consumers
    cdef dict _attaching
    cdef uint64_t _first
    cdef Ring _unsettled
    cdef dict _sent_no_ack
    cdef object _serving
    cdef dict _settling
    cdef dict _pumping
    cdef dict _waking
    cdef object _parked

    cpdef bint can_deliver(self) except -1
    @cython.locals(message=Message)
    cpdef deliver(self, RemoteConsumer consumer, Delivery delivery)
    cpdef deliver_message(self, RemoteConsumer consumer, Message message, uint32_t attempts)
    cpdef cancelled(self, RemoteConsumer consumer)
    @cython.locals(flags=cython.int, vhost=VirtualHost, message=Message, targets=list,
                   addressed=AddressedQueue, queue=LocalQueue, answers=PublishAnswers, sequence=uint64_t)
    cdef _publish(self, PayloadReader reader)
    @cython.locals(how=cython.int, first=uint64_t, count=uint64_t, unsettled=Ring, place=uint64_t,
                   left=uint64_t, at=Py_ssize_t, delivery=Delivery)
    cdef _settle(self, PayloadReader reader)
    @cython.locals(consumer=RemoteConsumer, queue=Queue)
    cdef _settle_one(self, Delivery delivery, int how)
    cdef AddressedQueue _addressed(self, PayloadReader reader)
    cdef _send_soon(self)
    cdef _flush_later(self)
