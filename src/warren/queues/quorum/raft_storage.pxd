cimport cython

from warren.model.first_items cimport drop_first
from warren.model.value cimport Value
from warren.queues.quorum.recent_entries cimport RecentEntries
from warren.replication.raft.raft_messages cimport Entry
from warren.store.group_log cimport GroupLog
from warren.store.group_record cimport GroupEntry, new_group_entry

@cython.final
@cython.no_gc
cdef class QuorumPayload(Value):
    cdef readonly tuple runs
    cdef readonly bytes commands
    cdef public object messages
    cdef readonly bint is_placed
    cdef public tuple sizes
    cdef public object batch

@cython.locals(payload=QuorumPayload)
cpdef QuorumPayload new_quorum_payload(tuple runs, bytes commands)

cdef class GroupStorage:
    cdef GroupLog _log
    cdef list _written
    cdef RecentEntries _recent
    cdef object _messages
    cdef public object make_snapshot

    cpdef first_index(self)
    cpdef last_index(self)
    @cython.locals(log=GroupLog)
    cpdef term(self, index)
    @cython.locals(found=list)
    cpdef entries(self, first, last, bytes_max)
    @cython.locals(log=GroupLog)
    cpdef write(self, ready)
    cdef _replace(self, snapshot)
    cdef _append_received(self, GroupEntry stored, QuorumPayload payload)
    cdef _cut(self, first)
    @cython.locals(
        log=GroupLog, written=list, begin=Entry, known=Entry, entry=Entry, stored=GroupEntry, payload=QuorumPayload,
        first=cython.longlong, count=Py_ssize_t
    )
    cpdef append(self, entries, commit)
    cdef _entry(self, index)
