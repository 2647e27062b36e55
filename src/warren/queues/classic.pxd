cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, body_size_of
from warren.queues.backlog cimport Backlog
from warren.queues.consumers cimport ConsumerSet
from warren.queues.unacked_pager cimport UnackedPager
from warren.queues.taking_queue cimport TakingQueue
from warren.queues.queue cimport Consumer, Delivery, QueueHost

cdef int _ACCEPTED
cdef int _REFUSED
cdef int _HAS_EXPIRATION
cdef int _PERSISTENT
cdef int _NONE

cdef class ClassicQueue(TakingQueue):
    # What a publish to a waiting consumer looks at comes first, so that it lies together.
    cdef Consumer _sole
    cdef bint _refuses
    cdef Backlog _ready
    cdef ConsumerSet _consumers
    cdef int64_t _ttl_ms
    cdef int64_t _length_max
    cdef int64_t _bytes_max
    cdef int64_t _wake_when
    cdef int64_t _expires_ms
    cdef int64_t _attempts_max
    cdef UnackedPager _unacked_pager
    cdef bint _has_kept_ttls
    cdef object _ttl_record
    cdef object _position_starts

    @cython.locals(consumer=Consumer)
    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    @cython.locals(consumer=Consumer)
    cdef Consumer _next_consumer(self)
    @cython.locals(ready=Backlog)
    cdef _enqueue(self, Message message)
    @cython.locals(ready=Backlog, consumer=Consumer)
    cpdef pump(self)
    @cython.locals(delivery=Delivery, unacked_pager=UnackedPager)
    cpdef Delivery get(self, bint no_ack=*)
    cpdef int64_t place_of(self, Delivery delivery) except -1
    cpdef Message whole(self, Delivery delivery)
    cpdef bytes body(self, Delivery delivery)
    cpdef acknowledge(self, Delivery delivery)
    cpdef requeue(self, Delivery delivery, int reason=*)
    @cython.locals(deadline=int64_t)
    cdef _put_back(self, Delivery delivery)
    @cython.locals(delivery=Delivery)
    cpdef Delivery take(self, object peeked)
    cpdef release(self, Delivery delivery)
    cpdef give_back(self, Delivery delivery)
    cpdef reject(self, Delivery delivery)
    cpdef consumer_ready(self, Consumer consumer)
    cpdef unpark(self, Consumer consumer)
    @cython.locals(unacked_pager=UnackedPager)
    cdef _deliver(self, Consumer consumer, Delivery delivery)
    cdef _count_unacked(self, Delivery delivery)
    cdef _uncount_unacked(self, Delivery delivery)
    @cython.locals(ready=Backlog)
    cdef bint is_full_for(self, Message message) except -1
    @cython.locals(ready=Backlog)
    cdef _drop_overflow(self)
    cdef _dead_letter(self, Message message, str reason)
    cdef _dead_letter_delivery(self, Delivery delivery, str reason)
    cdef _drop_expired(self, int64_t now)
    cdef bint _has_expired(self) except -1
    cdef _wake_by(self, int64_t when)
    @cython.locals(when=int64_t, unused_until=int64_t)
    cdef _schedule(self)
