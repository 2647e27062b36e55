cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.column cimport Column
from warren.model.message cimport Message, StoredMessage, body_size_of, spilled
from warren.model.ring cimport Ring
from warren.queues.paged_index cimport PagedIndex
from warren.queues.queue cimport Delivery, Queue
from warren.queues.message_backlog cimport MessageBacklog
from warren.store.cursor cimport QueueCursor
from warren.store.message_reader cimport MessageReader
from warren.store.stores cimport Stores

cdef int _PERSISTENT
cdef int _SPILLED
cdef int _BODY_ON_DISK
cdef Py_ssize_t _READ_AHEAD_SIZE
cdef Py_ssize_t _GAP_MAX
cdef int _OVERHEAD_SHIFT

cdef class DiskBacklog(MessageBacklog):
    cdef Stores _stores
    cdef QueueCursor _cursor
    cdef int _persistent_flag
    cdef set _out
    cdef PagedIndex _paged
    cdef Ring _recent
    cdef uint64_t _recent_base
    cdef uint64_t _redelivered_below
    cdef Py_ssize_t _persistent_count
    cdef int64_t _persistent_bytes
    cdef Py_ssize_t _spilled_count
    cdef int64_t _spilled_bytes

    @cython.locals(delivery=Delivery)
    cpdef Delivery push_delivered(self, Message message, Queue queue)
    @cython.locals(delivery=Delivery, flags=cython.int)
    cpdef Delivery pop(self, Queue queue)
    @cython.locals(delivery=Delivery)
    cpdef Delivery take(self, object peeked, Queue queue)
    cpdef int64_t push_back(self, Delivery delivery, int64_t ttl_ms) except -2
    @cython.locals(message=Message, position=uint64_t)
    cpdef Message pop_message(self)
    @cython.locals(message=Message, position=uint64_t)
    cpdef Message drop(self)
    @cython.locals(delivery=Delivery, end=uint64_t, paged=PagedIndex, recent=Ring, byte_count=int64_t)
    cpdef clear(self)
    @cython.locals(stored=StoredMessage)
    cpdef Message whole(self, Message message)
    @cython.locals(stored=StoredMessage, read=bytes)
    cpdef bytes body(self, Message message)
    @cython.locals(read=StoredMessage)
    cdef Message _read(self, uint64_t location)
    cdef bint _takes_too_much(self) except -1
    @cython.locals(message=Message)
    cdef Message _pop_first(self)
    @cython.locals(message=Message, position=uint64_t)
    cdef Message _drop_first(self)
    cdef _begin_paging(self)
    cdef _end_paging(self)
    @cython.locals(recent=Ring)
    cdef _push_behind(self, Message message)
    @cython.locals(recent=Ring, paged=PagedIndex, stored=StoredMessage)
    cdef _page_out(self)
    @cython.locals(recent=Ring, paged=PagedIndex)
    cdef _refill(self)
    @cython.locals(
        places=Ring, stores=Stores, reader=MessageReader, is_spilled=bint, size=Py_ssize_t, position=uint64_t,
        location=uint64_t, message=StoredMessage,
    )
    cdef _load(self, PagedIndex paged)
    @cython.locals(
        places=Ring, recent=Ring, kept=Ring, room=int64_t, size=int64_t, place=Py_ssize_t, message=Message
    )
    cdef _unload(self)
    @cython.locals(recent=Ring, place=Py_ssize_t)
    cdef bint _holds(self, uint64_t position) except -1
    @cython.locals(delivery=Delivery)
    cdef _read_returned(self)
    @cython.locals(message=Message)
    cdef Message _take(self, uint64_t position)
    @cython.locals(message=Message)
    cdef Message _remove(self, uint64_t position, Message known)
    @cython.locals(recent=Ring, location=uint64_t)
    cdef Message _take_behind(self, uint64_t position, Message known)
    cdef _trim(self)
    @cython.locals(stored=StoredMessage)
    cdef _persist(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef _release(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef StoredMessage _spill(self, Message message)
    @cython.locals(stored=StoredMessage)
    cdef _unspill(self, Message message)
    cdef _finish(self, uint64_t first, uint64_t end)
    cdef _forget_row(self, Py_ssize_t count, int64_t byte_count)
    @cython.locals(message=Message, place=Py_ssize_t, byte_count=int64_t)
    cdef int64_t _clear_ring(self, Ring ring, uint64_t base) except -1
    @cython.locals(paged=PagedIndex, positions=Column, locations=Column, place=Py_ssize_t)
    cpdef restore(self, int level, object found, int64_t ttl_ms)
    cdef _note_deadlines(self, object found, int64_t ttl_ms)
