cimport cython

from warren.replication.raft.member_progress cimport Progress
from warren.replication.raft.raft_log cimport RaftLog
from warren.replication.raft.raft_messages cimport new_entry
from warren.replication.raft.state cimport RaftState

cdef object _LEADER
cdef object _CHANGE
cdef object _PROBE
cdef object _REPLICATE
cdef object _APPEND
cdef object _HEARTBEAT

@cython.locals(index=cython.longlong)
cpdef propose_payload(RaftState state, object payload, object size)
cdef bint _takes_proposals(RaftState state) except -1
cdef _send_appended(RaftState state)
cpdef send_due_appends(RaftState state)
cdef bint _has_room(RaftState state, object size) except -1
cdef _append_all(RaftState state, list entries, object size)
cpdef bint send_append(RaftState state, object peer) except -1
cpdef bint send_entries(RaftState state, object peer) except -1
@cython.locals(log=RaftLog, progress=Progress)
cdef bint _send_next(RaftState state, object peer, bint is_empty_allowed) except -1
cpdef broadcast_appends(RaftState state)
@cython.locals(log=RaftLog)
cpdef bint maybe_commit(RaftState state) except -1
@cython.locals(progress=Progress)
cpdef handle_append_response(RaftState state, object message)
@cython.locals(progress=Progress)
cpdef handle_heartbeat_response(RaftState state, object message)
cpdef check_storage(RaftState state)
