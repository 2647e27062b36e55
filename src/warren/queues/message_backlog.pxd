cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, body_size_of, published_at_of
from warren.model.ring cimport Ring
from warren.queues.backlog cimport Backlog
from warren.queues.paged_tail cimport PagedTail
from warren.queues.queue cimport Delivery, Queue, new_delivery
from warren.queues.requeued_messages cimport RequeuedMessages

cdef int _HAS_EXPIRATION
cdef int _OVERHEAD_SHIFT

cdef class MessageBacklog(Backlog):
    cdef readonly uint64_t base
    cdef readonly Ring places
    cdef public PagedTail tail
    cdef readonly RequeuedMessages requeued
    cdef list _deadlines
    cdef public object ttl_changes

    cpdef Delivery push_delivered(self, Message message, Queue queue)
    cpdef push(self, Message message)
    cpdef int64_t push_deadline(self, Message message, int64_t ttl_ms) except -2
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    @cython.locals(delivery=Delivery, position=uint64_t)
    cpdef Delivery pop(self, Queue queue)
    cpdef bint is_fresh(self) except -1
    cpdef Message pop_message(self)
    @cython.locals(delivery=Delivery)
    cpdef Message drop(self)
    cpdef Message first(self)
    cpdef settled(self, Delivery delivery)
    @cython.locals(message=Message, position=uint64_t)
    cpdef int64_t push_back(self, Delivery delivery, int64_t ttl_ms) except -2
    cpdef int64_t place_of(self, Delivery delivery) except -1
    cpdef Message whole(self, Message message)
    cpdef bytes body(self, Message message)
    @cython.locals(delivery=Delivery, position=uint64_t)
    cpdef Delivery take(self, object peeked, Queue queue)
    @cython.locals(own=int64_t)
    cpdef int64_t deadline_of(self, Message message, uint64_t position, int64_t ttl_ms) except -2
    @cython.locals(nearest=int64_t, deadlines=list)
    cpdef int64_t deadline(self, int64_t ttl_ms) except -2
    @cython.locals(position=int64_t)
    cpdef Message pop_expired(self, int64_t now, int64_t ttl_ms)
    cpdef clear(self)
    cpdef forget(self)
    cpdef shrink(self)
    cpdef Py_ssize_t paged_count(self) except -1
    cpdef Py_ssize_t persistent_count(self) except -1
    cpdef int64_t persistent_bytes(self) except -1

    cpdef push_to_tail(self, Message message)
    cpdef uint64_t end(self) except? 0
    cpdef uint64_t first_position(self) except? 0
    cpdef Delivery first_requeued(self)
    cpdef Delivery requeued_at(self, uint64_t position)
    @cython.locals(place=uint64_t)
    cpdef bint holds(self, uint64_t position) except -1
    @cython.locals(message=Message, delivery=Delivery)
    cpdef Message remove(self, uint64_t position, Message known)
    @cython.locals(deadlines=list)
    cpdef int64_t expired_place(self, int64_t now, int64_t ttl_ms) except -2
    @cython.locals(deadline=int64_t)
    cpdef int64_t add_deadline(self, Message message, uint64_t position, int64_t ttl_ms) except -2
    @cython.locals(places=Ring, kept=Ring, rest=Ring, size=int64_t, place=Py_ssize_t, message=Message)
    cpdef Ring cut(self, int64_t size_max)
    cpdef restore_tail(self, PagedTail tail, int64_t byte_count)
    @cython.locals(message=Message, places=Ring)
    @cython.final
    cdef Message _pop_first(self)
    @cython.locals(tail=PagedTail)
    @cython.final
    cdef _refill(self)
    @cython.locals(places=Ring)
    @cython.final
    cdef _trim(self)
    @cython.locals(requeued=RequeuedMessages)
    @cython.final
    cdef bint _is_requeued_first(self) except -1
    @cython.final
    cdef int64_t _ttl_at(self, uint64_t position, int64_t ttl_ms) except -2
    @cython.final
    cdef int64_t _first_ttl(self, int64_t ttl_ms) except -2
