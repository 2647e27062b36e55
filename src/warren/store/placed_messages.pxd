cimport cython
from libc.stdint cimport uint64_t

from warren.model.message cimport StoredMessage
from warren.store.cursor cimport QueueCursor
from warren.store.group_record cimport PositionRun
from warren.store.group_state cimport GroupState
from warren.store.message_store cimport MessageStore

cdef int _NO_LEVEL

@cython.final
cdef class PlacedMessages:
    cdef MessageStore _store
    cdef GroupState _state
    cdef readonly list messages
    cdef bytearray _levels
    cdef dict _ends
    cdef int _level
    cdef uint64_t _next
    cdef uint64_t _offset
    cdef Py_ssize_t _run_count
    cdef QueueCursor _cursor
    cdef readonly uint64_t last_stored

    @cython.locals(position=uint64_t, cursor=QueueCursor)
    cpdef uint64_t place(self, StoredMessage message, int level) except? 0
    @cython.locals(
        store=MessageStore, kept=list, run=PositionRun, cursor=QueueCursor, position=uint64_t,
        message=StoredMessage
    )
    cpdef list append_received(self, tuple runs, messages)
    @cython.locals(levels=bytearray, place=Py_ssize_t, run=PositionRun)
    cpdef bint begin_with(self, tuple runs) except -1
    @cython.locals(taken=list)
    cpdef list take(self, Py_ssize_t count)
    cpdef list places(self)
    cpdef clear(self)
    @cython.locals(cursor=QueueCursor, state=GroupState, end=object, position=uint64_t)
    cdef _begin_run(self, int level)
    @cython.locals(level=cython.int)
    cdef _end_run(self)
