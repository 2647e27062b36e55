cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport StoredMessage, body_size_of
from warren.queues.queue cimport Delivery
from warren.queues.quorum.batch_builder cimport BatchBuilder
from warren.queues.quorum.batch_codec cimport QuorumBatch, encode
from warren.queues.quorum.pending_batch cimport PendingBatch
from warren.queues.quorum.raft_storage cimport QuorumPayload, new_quorum_payload
from warren.replication.driver cimport RaftDriver
from warren.store.cursor cimport QueueCursor
from warren.store.group_log cimport GroupLog
from warren.store.message_store cimport MessageStore

cdef int _BODY_ON_DISK
cdef int64_t _BATCH_SIZE
cdef object _ACKNOWLEDGED

cdef class GroupProposals:
    cdef GroupLog _log
    cdef MessageStore _store
    cdef object _owner
    cdef object _enqueuer
    cdef uint64_t _number
    cdef BatchBuilder _builder
    cdef PendingBatch _pending
    cdef list _batches
    cdef list _proposed
    cdef dict _reach_asked
    cdef list _waiting
    cdef list _opening
    cdef bint _has_ended
    cdef readonly bint is_open
    cdef readonly bint is_closed
    cdef readonly Py_ssize_t pending_count
    cdef readonly int64_t pending_bytes

    @cython.locals(pending=PendingBatch, position=uint64_t, before=int64_t)
    cpdef place(self, StoredMessage message, int level, ConfirmListener confirmation, uint64_t sequence)
    @cython.locals(pending=PendingBatch, position=uint64_t, before=int64_t)
    cpdef place_as(self, StoredMessage message, int level, object enqueuer, uint64_t number)
    cpdef confirm_last(self, ConfirmListener confirmation, uint64_t sequence)
    @cython.locals(level=cython.int)
    cpdef settle(self, StoredMessage message, QueueCursor cursor, uint64_t position)
    @cython.locals(logical=uint64_t)
    cpdef returned(self, int level, Delivery delivery, int64_t ready_at)
    cpdef propose(self, RaftDriver driver)
    @cython.locals(pending=PendingBatch)
    cpdef PendingBatch next_proposed(self, uint64_t index)
    cpdef committed(self, PendingBatch pending)
    @cython.final
    cdef PendingBatch _next_batch(self)
    @cython.final
    @cython.locals(batch=QuorumBatch, payload=QuorumPayload, commands=bytes)
    cdef bint _propose(self, PendingBatch pending, RaftDriver driver) except -1
    @cython.final
    cdef BatchBuilder _room(self)
    @cython.final
    cdef PendingBatch _last_batch(self)
    @cython.final
    cdef bint _is_empty(self) except -1
    @cython.final
    @cython.locals(message=StoredMessage)
    cdef _release_all(self, PendingBatch batch)
    @cython.final
    cdef _drop(self, StoredMessage message)
