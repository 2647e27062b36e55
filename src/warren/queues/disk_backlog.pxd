cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.column cimport Column
from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, StoredMessage, body_size_of, stored_copy
from warren.model.ring cimport Ring
from warren.queues.backlog cimport Backlog
from warren.queues.message_backlog cimport MessageBacklog
from warren.queues.paged_index cimport PagedIndex
from warren.queues.paged_tail cimport PagedTail
from warren.queues.queue cimport Delivery, Queue
from warren.queues.requeued_messages cimport RequeuedMessages
from warren.store.cursor cimport QueueCursor
from warren.store.stores cimport Stores

cdef int _PERSISTENT
cdef int _SPILLED
cdef int _BODY_ON_DISK
cdef int _OVERHEAD_SHIFT

cdef class DiskBacklog(Backlog):
    cdef MessageBacklog _messages
    cdef Stores _stores
    cdef QueueCursor _cursor
    cdef int _persistent_flag
    cdef set _out
    cdef uint64_t _redelivered_below
    cdef Py_ssize_t _persistent_count
    cdef int64_t _persistent_bytes
    cdef Py_ssize_t _spilled_count
    cdef int64_t _spilled_bytes

    @cython.locals(delivery=Delivery)
    cpdef Delivery push_delivered(self, Message message, Queue queue)
    @cython.locals(messages=MessageBacklog, tail=PagedTail)
    cpdef push(self, Message message)
    cpdef int64_t push_deadline(self, Message message, int64_t ttl_ms) except -2
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    @cython.locals(messages=MessageBacklog, delivery=Delivery, flags=cython.int)
    cpdef Delivery pop(self, Queue queue)
    @cython.locals(messages=MessageBacklog, requeued=RequeuedMessages)
    cpdef bint is_fresh(self) except -1
    @cython.locals(messages=MessageBacklog, message=Message, position=uint64_t)
    cpdef Message pop_message(self)
    @cython.locals(messages=MessageBacklog, message=Message, position=uint64_t)
    cpdef Message drop(self)
    cpdef Message first(self)
    cpdef settled(self, Delivery delivery)
    @cython.locals(messages=MessageBacklog, deadline=int64_t)
    cpdef int64_t push_back(self, Delivery delivery, int64_t ttl_ms) except -2
    cpdef int64_t place_of(self, Delivery delivery) except -1
    @cython.locals(stored=StoredMessage)
    cpdef Message whole(self, Message message)
    @cython.locals(stored=StoredMessage, read=bytes)
    cpdef bytes body(self, Message message)
    @cython.locals(messages=MessageBacklog, delivery=Delivery)
    cpdef Delivery take(self, object peeked, Queue queue)
    cpdef int64_t deadline_of(self, Message message, uint64_t position, int64_t ttl_ms) except -2
    cpdef int64_t deadline(self, int64_t ttl_ms) except -2
    @cython.locals(messages=MessageBacklog, position=int64_t, delivery=Delivery, message=Message)
    cpdef Message pop_expired(self, int64_t now, int64_t ttl_ms)
    @cython.locals(messages=MessageBacklog, tail=PagedTail, index=PagedIndex, delivery=Delivery, byte_count=int64_t)
    cpdef clear(self)
    cpdef forget(self)
    @cython.locals(
        messages=MessageBacklog, tail=PagedTail, positions=Column, locations=Column, place=Py_ssize_t
    )
    cpdef restore(self, int level, object found, int64_t ttl_ms)
    @cython.locals(messages=MessageBacklog)
    cpdef shrink(self)
    cpdef Py_ssize_t paged_count(self) except -1
    cpdef Py_ssize_t persistent_count(self) except -1
    cpdef int64_t persistent_bytes(self) except -1
    @cython.locals(delivery=Delivery)
    @cython.final
    cdef _read_first_requeued(self)
    @cython.final
    cdef bint _exceeds_memory(self) except -1
    @cython.locals(tail=PagedTail, message=Message, place=Py_ssize_t)
    @cython.final
    cdef PagedTail _tail_of(self, Ring rest)
    @cython.locals(stored=StoredMessage, stores=Stores)
    cdef keep_message(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef release_message(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    @cython.final
    cdef StoredMessage _spill(self, Message message)
    @cython.locals(stored=StoredMessage)
    @cython.final
    cdef _unspill(self, Message message)
    @cython.final
    cdef _finish(self, uint64_t first, uint64_t end, int64_t byte_count)
    cdef finish_range(self, uint64_t first, uint64_t end, int64_t byte_count)
    cdef note_delivered(self, uint64_t end)
    cdef discard_index(self, PagedIndex index)
    @cython.final
    cdef _uncount(self, Py_ssize_t count, int64_t byte_count)
    @cython.locals(message=Message, place=Py_ssize_t, byte_count=int64_t)
    @cython.final
    cdef int64_t _release_all(self, Ring ring, uint64_t base) except -1
    @cython.final
    cdef _restore_deadlines(self, object found, int64_t ttl_ms)
