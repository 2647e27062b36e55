cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.queues.quorum.batch_codec cimport QuorumBatch
from warren.queues.quorum.machine cimport QuorumMachine
from warren.queues.quorum.pending_batch cimport PendingBatch
from warren.queues.quorum.group_proposals cimport GroupProposals
from warren.queues.quorum.raft_storage cimport GroupStorage
from warren.queues.quorum.replica_messages cimport ReplicaMessages
from warren.replication.driver cimport RaftDriver
from warren.replication.raft.raft_messages cimport Entry
from warren.replication.raft.replica cimport Replica
from warren.store.group_listener cimport GroupListener
from warren.store.group_log cimport GroupLog
from warren.store.message_store cimport MessageStore

cdef object _NORMAL

cdef class QuorumGroup(GroupListener):
    cdef GroupLog _log
    cdef MessageStore _store
    cdef object _owner
    cdef object _incarnation
    cdef object _membership
    cdef RaftDriver _driver
    cdef GroupStorage _storage
    cdef bint _is_started
    cdef bint _leads
    cdef bint _is_retiring
    cdef bint _is_left_alone
    cdef bint _loses_messages
    cdef uint64_t _term
    cdef int _unwritten_ticks
    cdef readonly QuorumMachine machine
    cdef readonly ReplicaMessages messages
    cdef readonly GroupProposals proposals
    cdef readonly bint is_closed

    cpdef uint64_t reach(self, int level) except? 0
    cpdef uint64_t stored(self, int level, uint64_t position) except? 0
    @cython.locals(entry=Entry)
    cpdef apply(self, entries)
    cpdef prepare(self)
    cpdef written(self, uint64_t ticket)
    @cython.final
    @cython.locals(driver=RaftDriver, log=GroupLog, applied=int64_t, count=int64_t)
    cdef _flush(self)
    @cython.final
    @cython.locals(pending=PendingBatch, batch=QuorumBatch, messages=ReplicaMessages)
    cdef _apply_proposed(self, Entry entry)
    @cython.final
    cdef _begin(self)
