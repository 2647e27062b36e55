cimport cython

from warren.replication.raft.leadership cimport propose_payload
from warren.replication.raft.member_progress cimport Progress
from warren.replication.raft.raft_log cimport RaftLog
from warren.replication.raft.raft_messages cimport Entry
from warren.replication.raft.state cimport RaftState

cdef object _LEADER
cdef object _FOLLOWER
cdef object _VOTES
cdef object _FROM_LEADER
cdef dict _AS_FOLLOWER
cdef dict _AS_PRE_CANDIDATE
cdef dict _AS_CANDIDATE
cdef dict _AS_LEADER

cdef class Replica:
    cdef RaftState _state
    cdef long long _durable_term
    cdef long long _told_term
    cdef object _told_vote
    cdef long long _told_commit
    cdef object _told_leader
    cdef object _told_role

    cpdef bint leads(self) except -1
    cpdef bint is_only_member(self) except -1
    cpdef long long commit_index(self) except -1
    cpdef propose(self, payload, size)
    @cython.locals(state=RaftState)
    cpdef append_alone(self)
    @cython.locals(state=RaftState, released=cython.longlong)
    cpdef applied(self, long long index)
    @cython.locals(state=RaftState)
    cpdef written(self, written)
    @cython.locals(state=RaftState)
    cpdef bint step(self, message) except -1
    @cython.locals(state=RaftState)
    cdef bint _takes_higher_term(self, message) except -1
    @cython.locals(state=RaftState, log=RaftLog, is_unstable_allowed=cython.bint)
    cpdef ready(self)
    @cython.locals(state=RaftState, log=RaftLog)
    cpdef bint is_alone(self) except -1
    @cython.locals(state=RaftState)
    cpdef tuple begin_alone(self)
    @cython.locals(state=RaftState, first=Entry, last=Entry, progress=Progress)
    cpdef bint written_alone(self, tuple entries) except -1
    @cython.locals(state=RaftState)
    cdef bint _waits_for_term(self) except -1
    @cython.locals(state=RaftState)
    cdef tuple _take_messages(self)
    @cython.locals(state=RaftState)
    cdef _expected_acknowledgement(self, snapshot)

cdef dict _handlers_of(role)
