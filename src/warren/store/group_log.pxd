cimport cython
from libc.stdint cimport uint64_t

from warren.model.column cimport Column
from warren.model.first_items cimport drop_first
from warren.model.message cimport StoredMessage
from warren.store.group_contents cimport GroupContents
from warren.store.group_listener cimport GroupListener
from warren.store.group_state cimport GroupState
from warren.store.group_record cimport GroupEntry, encode_entry, entry_size, message_count_of
from warren.store.message_store cimport MessageStore
from warren.store.placed_messages cimport PlacedMessages
from warren.store.segment_log cimport SegmentLog

cdef int _SEGMENT_SHIFT

cdef class GroupLog(GroupContents):
    cdef public GroupListener listener
    cdef readonly uint64_t ticket
    cdef list _records
    cdef bint _is_hard_due
    cdef bint _is_state_due
    cdef bint _is_preparing
    cdef bint _is_announced
    cdef bytes _first_state
    cdef PlacedMessages _placed
    cdef dict _received
    cdef uint64_t _received_since
    cdef bint _is_listed
    cdef list _unwritten
    cdef object _void

    @cython.locals(count=Py_ssize_t, number=uint64_t, listener=GroupListener)
    cpdef done(self, uint64_t first, uint64_t last)
    cpdef announce(self)
    cpdef announce_later(self)
    @cython.locals(position=uint64_t)
    cpdef uint64_t place(self, StoredMessage message, int level) except? 0
    @cython.locals(
        state=GroupState, runs=tuple, commands=bytes, index=uint64_t, term=uint64_t, last=uint64_t,
        last_term=uint64_t, size=Py_ssize_t
    )
    cpdef append(self, GroupEntry entry, object messages=?)
    @cython.locals(state=GroupState, messages=dict, at=uint64_t)
    cpdef forget(self, uint64_t index)
    cdef bint _has(self, tuple runs, object messages) except -1
    cdef _list_for_prepare(self)
    cdef _changed(self, Py_ssize_t size)
    cdef _list(self)
    cdef _release_void(self, uint64_t ticket)
    @cython.locals(listener=GroupListener)
    cpdef prepare(self, SegmentLog log)
    cpdef write(self, SegmentLog log)
    cpdef write_entries(self, SegmentLog log)
    cdef list _due_records(self)

cdef _check_size(str name, bytes data, Py_ssize_t size_max)

@cython.locals(place=Py_ssize_t, written=StoredMessage)
cdef _locate(list messages)
