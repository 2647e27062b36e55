cimport cython

from warren.replication.raft.raft_log cimport RaftLog
from warren.replication.raft.state cimport RaftState

cdef object _APPEND_RESPONSE
cdef object _HEARTBEAT_RESPONSE
cdef object _CHANGE

@cython.locals(log=RaftLog)
cpdef handle_append(RaftState state, object message)
cpdef handle_heartbeat(RaftState state, object message)
cdef _answer_append(RaftState state, object message, object index)
cdef _check_changes_known(RaftState state, object message)
