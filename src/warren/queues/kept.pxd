cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.column cimport Column
from warren.model.message cimport Message, StoredMessage, body_size_of, spilled
from warren.model.ring cimport Ring
from warren.queues.paging cimport PagedRow
from warren.queues.queue cimport Delivery, Queue
from warren.queues.ready cimport Ready
from warren.store.lane cimport Lane
from warren.store.reader cimport Reader
from warren.store.stores cimport Stores

cdef int _PERSISTENT
cdef int _SPILLED
cdef int _LIGHT
cdef Py_ssize_t _READ_AHEAD_SIZE
cdef Py_ssize_t _GAP_MAX
cdef int _OVERHEAD_SHIFT

cdef class KeptReady(Ready):
    cdef Stores _stores
    cdef Lane _lane
    cdef int _kept
    cdef set _out
    cdef PagedRow _paged
    cdef Ring _recent
    cdef uint64_t _recent_base
    cdef uint64_t _redelivered_below
    cdef Py_ssize_t _kept_count
    cdef int64_t _kept_octets
    cdef Py_ssize_t _spilled_count
    cdef int64_t _spilled_octets

    @cython.locals(delivery=Delivery)
    cpdef Delivery pass_by(self, Message message, Queue queue)
    @cython.locals(delivery=Delivery, flags=cython.int)
    cpdef Delivery pop(self, Queue queue)
    @cython.locals(delivery=Delivery)
    cpdef Delivery take(self, object peeked, Queue queue)
    cpdef int64_t push_back(self, Delivery delivery, int64_t ttl_ms) except -2
    @cython.locals(message=Message, position=uint64_t)
    cpdef Message pop_message(self)
    @cython.locals(message=Message, position=uint64_t)
    cpdef Message drop(self)
    @cython.locals(delivery=Delivery, end=uint64_t, paged=PagedRow, recent=Ring, octets=int64_t)
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
    @cython.locals(recent=Ring, paged=PagedRow, stored=StoredMessage)
    cdef _page_out(self)
    @cython.locals(recent=Ring, paged=PagedRow)
    cdef _refill(self)
    @cython.locals(
        places=Ring, stores=Stores, reader=Reader, is_spilled=bint, size=Py_ssize_t, position=uint64_t,
        location=uint64_t, message=StoredMessage,
    )
    cdef _load(self, PagedRow paged)
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
    cdef _keep(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef _release(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef StoredMessage _spill(self, Message message)
    @cython.locals(stored=StoredMessage)
    cdef _unspill(self, Message message)
    cdef _finish(self, uint64_t first, uint64_t end)
    cdef _forget_row(self, Py_ssize_t count, int64_t octets)
    @cython.locals(message=Message, place=Py_ssize_t, octets=int64_t)
    cdef int64_t _clear_ring(self, Ring ring, uint64_t base) except -1
    @cython.locals(paged=PagedRow, positions=Column, locations=Column, place=Py_ssize_t)
    cpdef restore(self, int level, object found, int64_t ttl_ms)
    cdef _note_deadlines(self, object found, int64_t ttl_ms)
