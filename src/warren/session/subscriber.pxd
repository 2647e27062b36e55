cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.counters cimport Counters
from warren.model.message cimport Message
from warren.queues.vhost_queue cimport VhostQueue
from warren.queues.queue cimport Consumer, Delivery, Queue, QueueHost
from warren.framing.outbox cimport Outbox
from warren.session.unacked cimport Unacked

cdef int _ACKNOWLEDGE
cdef int _REJECT
cdef int _CHANNEL_ENDED
cdef int64_t _UNLIMITED
cdef Py_ssize_t _HEAD_SIZE

@cython.final
cdef class Subscriber(Counters):
    cdef readonly Outbox outbox
    cdef readonly int channel_number
    cdef readonly Unacked unacked
    cdef readonly Py_ssize_t prefetch_max
    cdef public bint is_flowing
    cdef QueueHost _host
    cdef readonly bint sends_cancel
    cdef readonly Py_ssize_t prefetch
    cdef dict _consumers
    cdef Py_ssize_t _got_count
    cdef list _held_cancels
    cdef object _late
    cdef public object origin

    cpdef settle(self, uint64_t tag, bint multiple, int how)
    @cython.locals(was_limited=bint, delivery=Delivery, consumer=ChannelSubscription, waiting=dict, queues=dict)
    cpdef settle_all(self, list deliveries, int how)
    @cython.locals(consumer=ChannelSubscription, queue=VhostQueue)
    cpdef resume(self)
    @cython.locals(consumer=ChannelSubscription, delivery=Delivery, queue=Queue, latest=Queue)
    cpdef leave(self, dict queues)
    @cython.locals(was_limited=bint, consumer=ChannelSubscription)
    cdef _settle_one(self, Delivery delivery, int how)
    cdef void _count_acknowledged(self, Py_ssize_t count) noexcept
    cdef void _count_redelivered(self) noexcept
    @cython.locals(queue=Queue)
    cdef _finish(self, Delivery delivery, int how)
    cdef bint _is_limited(self, Py_ssize_t settled)
    cdef bint _has_room(self)
    cdef _serve(self, ChannelSubscription consumer)
    cdef _trace(self, VhostQueue queue, Message message, bint is_redelivered)

cdef class ChannelSubscription(Consumer):
    cdef Subscriber _subscriber
    cdef unsigned char* _buffer
    cdef Py_ssize_t _tag_at
    cdef bytearray _template
    cdef uint64_t _oldest_tag
    cdef readonly VhostQueue queue
    cdef readonly Py_ssize_t prefetch
    cdef public Py_ssize_t unsettled
    cdef public object arguments

    @cython.locals(subscriber=Subscriber)
    cpdef bint is_ready(self) except -1
    cpdef int64_t prefetch_limit(self) except -1
    @cython.locals(subscriber=Subscriber, most=Py_ssize_t)
    cpdef int64_t shared_capacity(self) except -1
    @cython.locals(subscriber=Subscriber, host=QueueHost)
    cpdef deliver(self, Delivery delivery)
    @cython.locals(subscriber=Subscriber)
    cpdef deliver_message(self, Message message, bint redelivered)
    @cython.locals(data='unsigned char*', at=Py_ssize_t, size=Py_ssize_t,
                   subscriber=Subscriber, before=bytes)
    cdef _send(self, Message message, uint64_t tag, bint redelivered)
