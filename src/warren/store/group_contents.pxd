cimport cython
from libc.stdint cimport uint64_t

from warren.store.cursor cimport QueueCursor
from warren.store.group_record cimport PositionRun
from warren.store.group_records cimport GroupRecords
from warren.store.group_state cimport GroupState
from warren.store.message_store cimport MessageStore

cdef class GroupContents(GroupRecords):
    cdef MessageStore _store
    cdef GroupState _state
    cdef dict _messages

    cpdef uint64_t stored(self, int level, uint64_t position) except? 0
    cpdef uint64_t logical(self, int level, uint64_t stored) except? 0
    cpdef uint64_t end(self, int level) except? 0
    @cython.locals(messages=list, found=list, run=PositionRun, cursor=QueueCursor, position=uint64_t)
    cpdef list contents(self, uint64_t index)
    cpdef bint has_entry(self, uint64_t index) except -1
    cpdef bint has_tail(self, Py_ssize_t size) except -1
    cpdef bint has_space(self, Py_ssize_t size) except -1
