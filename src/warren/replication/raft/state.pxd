cimport cython

from warren.replication.raft.member_progress cimport Progress
from warren.replication.raft.quorum cimport majority_index
from warren.replication.raft.raft_log cimport RaftLog

cdef object _FOLLOWER
cdef object _PROMISES

cdef class RaftState:
    cdef readonly object id
    cdef readonly object settings
    cdef readonly object chance
    cdef readonly object trace
    cdef readonly RaftLog log
    cdef public long long term
    cdef public object vote
    cdef public object leader
    cdef public object role
    cdef public object configuration
    cdef public object configuration_index
    cdef public bint is_learner
    cdef public bint is_only_member
    cdef readonly bint is_storage_asynchronous
    cdef readonly dict progress
    cdef readonly list peers
    cdef public dict votes
    cdef public bint are_appends_due
    cdef public list messages
    cdef public list messages_after
    cdef public Py_ssize_t election_elapsed
    cdef public Py_ssize_t heartbeat_elapsed
    cdef public Py_ssize_t election_timeout
    cdef public object transfer_to
    cdef public object storage_due
    cdef public Py_ssize_t storage_elapsed
    cdef public long long pending_change
    cdef public object uncommitted_bytes
    cdef public object reads
    cdef public list pending_reads
    cdef public list read_states

    cpdef send(self, message)
    cpdef acknowledge_own(self, long long index)
    cpdef list take_messages_after(self)
    cpdef set_progress(self, dict members)
    @cython.locals(progress=dict, matches=list, its_progress=Progress)
    cpdef quorum_index(self)
    cpdef bint is_quorum_active(self) except -1
    cpdef bint is_promotable(self) except -1
    cpdef become_follower(self, term, leader)
    cpdef reset(self, term)
    cpdef abort_transfer(self)
