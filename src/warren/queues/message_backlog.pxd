cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, body_size_of, published_at_of
from warren.model.ring cimport Ring
from warren.queues.queue cimport Delivery, Queue, new_delivery

cdef int _HAS_EXPIRATION

cdef class MessageBacklog:
    cdef public Py_ssize_t count
    cdef public int64_t byte_count
    cdef Ring _places
    cdef uint64_t _base
    cdef dict _returned
    cdef list _returned_order
    cdef list _deadlines
    cdef public object ttl_changes

    cpdef Delivery push_delivered(self, Message message, Queue queue)
    cpdef push(self, Message message)
    cpdef int64_t push_deadline(self, Message message, int64_t ttl_ms) except -2
    @cython.locals(message=Message, deadline=int64_t)
    cpdef int64_t push_back(self, Delivery delivery, int64_t ttl_ms) except -2
    @cython.locals(delivery=Delivery, position=uint64_t)
    cpdef Delivery pop(self, Queue queue)
    @cython.locals(delivery=Delivery, position=uint64_t)
    cpdef Delivery take(self, object peeked, Queue queue)
    cpdef bint is_fresh(self) except -1
    cpdef Message pop_message(self)
    cpdef Message whole(self, Message message)
    cpdef bytes body(self, Message message)
    cpdef int64_t place_of(self, Delivery delivery) except -1
    cpdef settled(self, Delivery delivery)
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    cpdef restore(self, int level, object found, int64_t ttl_ms)
    cpdef forget(self)
    cpdef Py_ssize_t paged_count(self) except -1
    cpdef Py_ssize_t persistent_count(self) except -1
    cpdef int64_t persistent_bytes(self) except -1
    cpdef shrink(self)
    @cython.locals(message=Message, places=Ring)
    cdef Message _pop_first(self)
    @cython.locals(delivery=Delivery)
    cpdef Message drop(self)
    @cython.locals(delivery=Delivery)
    cpdef Message first(self)
    @cython.locals(nearest=int64_t, deadlines=list)
    cpdef int64_t deadline(self, int64_t ttl_ms) except -2
    @cython.locals(deadlines=list)
    cpdef Message pop_expired(self, int64_t now, int64_t ttl_ms)
    cpdef clear(self)
    cdef int64_t _ttl_at(self, uint64_t position, int64_t ttl_ms) except -2
    cdef int64_t _first_ttl(self, int64_t ttl_ms) except -2
    cdef uint64_t _end(self) except? 0
    cdef Delivery _pop_returned(self)
    @cython.locals(delivery=Delivery)
    cdef Delivery _pop_from_returned(self, uint64_t position)
    cdef bint _is_returned_first(self) except -1
    cdef object _first_returned(self)
    cdef bint _holds(self, uint64_t position) except -1
    @cython.locals(delivery=Delivery)
    cdef Message _take(self, uint64_t position)
    @cython.locals(message=Message)
    cdef Message _remove(self, uint64_t position, Message known)
    cdef _trim(self)
    @cython.locals(own=int64_t)
    cdef int64_t _deadline(self, Message message, int64_t ttl_ms) except -2
    @cython.locals(deadlines=list)
    cdef _note_deadline(self, int64_t deadline, uint64_t position)
