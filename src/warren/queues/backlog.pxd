from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message
from warren.queues.queue cimport Delivery, Queue

cdef class Backlog:
    cdef public Py_ssize_t count
    cdef public int64_t byte_count

    cpdef Delivery push_delivered(self, Message message, Queue queue)
    cpdef push(self, Message message)
    cpdef int64_t push_deadline(self, Message message, int64_t ttl_ms) except -2
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    cpdef Delivery pop(self, Queue queue)
    cpdef bint is_deliverable(self) except -1
    cpdef bint is_fresh(self) except -1
    cpdef Message pop_message(self)
    cpdef Message drop(self)
    cpdef Message first(self)
    cpdef settled(self, Delivery delivery)
    cpdef int64_t push_back(self, Delivery delivery, int64_t ttl_ms) except -2
    cpdef int64_t place_of(self, Delivery delivery) except -1
    cpdef Message whole(self, Message message)
    cpdef bytes body(self, Message message)
    cpdef Delivery take(self, object peeked, Queue queue)
    cpdef int64_t deadline_of(self, Message message, uint64_t position, int64_t ttl_ms) except -2
    cpdef int64_t deadline(self, int64_t ttl_ms) except -2
    cpdef Message pop_expired(self, int64_t now, int64_t ttl_ms)
    cpdef int64_t expired_place(self, int64_t now, int64_t ttl_ms) except -2
    cpdef clear(self)
    cpdef forget(self)
    cpdef restore(self, int level, object found, int64_t ttl_ms)
    cpdef shrink(self)
    cpdef Py_ssize_t paged_count(self) except -1
    cpdef Py_ssize_t persistent_count(self) except -1
    cpdef int64_t persistent_bytes(self) except -1
