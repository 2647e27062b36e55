cimport cython

from warren.queues.quorum.group cimport QuorumGroup
from warren.replication.raft.replica cimport Replica
from warren.store.message_store cimport MessageStore

@cython.final
cdef class QuorumReplica:
    cdef QuorumGroup _group
    cdef MessageStore _store
    cdef Replica _replica
