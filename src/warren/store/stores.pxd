from libc.stdint cimport int64_t, uint64_t

cimport cython
from warren.model.message cimport StoredMessage
from warren.store.cursor cimport QueueCursor
from warren.store.message_store cimport MessageStore

cdef int _TRANSIENT_SHIFT

@cython.final
cdef class Stores:
    cdef readonly MessageStore persistent
    cdef readonly MessageStore transient
    cdef readonly QueueCursor no_cursor
    cdef public int64_t queue_memory_max
    cdef readonly set paging
    cdef public int64_t write_count
    cdef public int64_t read_count

    cpdef bint is_transient(self, uint64_t location) except -1
    cpdef MessageStore store_of(self, uint64_t location)
    cpdef StoredMessage read(self, uint64_t location)
    cpdef bytes read_body(self, uint64_t location)
    @cython.locals(location=uint64_t)
    cpdef bint _drop_some_references(self, object row) except -1
    cpdef bint has_written(self, uint64_t location) except -1
