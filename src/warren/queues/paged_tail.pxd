cimport cython
from libc.stdint cimport uint64_t

from warren.model.message cimport Message, StoredMessage, body_size_of
from warren.model.ring cimport Ring
from warren.queues.paged_index cimport PagedIndex
from warren.store.message_reader cimport MessageReader
from warren.store.stores cimport Stores

cdef Py_ssize_t _READ_AHEAD_SIZE
cdef Py_ssize_t _GAP_MAX
cdef int _OVERHEAD_SHIFT

@cython.final
cdef class PagedTail:
    cdef Stores _stores
    cdef readonly PagedIndex index
    cdef readonly Ring recent
    cdef readonly uint64_t recent_base

    cpdef close(self)
    cpdef uint64_t end(self) except? 0
    cpdef append(self, Message message)
    @cython.locals(recent=Ring, index=PagedIndex, stored=StoredMessage)
    cpdef shrink(self)
    @cython.locals(
        index=PagedIndex, stores=Stores, reader=MessageReader, is_transient=bint, size=Py_ssize_t,
        position=uint64_t, location=uint64_t, message=StoredMessage,
    )
    cpdef uint64_t load(self, Ring places, uint64_t base) except? 0
    @cython.locals(place=Py_ssize_t)
    cpdef bint holds(self, uint64_t position) except -1
    @cython.locals(location=uint64_t)
    cpdef Message take(self, uint64_t position, Message known)
