cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.message cimport Message, StoredMessage, body_size_of
from warren.queues.disk_backlog cimport DiskBacklog
from warren.queues.paged_index cimport PagedIndex
from warren.queues.queue cimport Delivery, Queue
from warren.queues.quorum.group cimport QuorumGroup
from warren.queues.quorum.group_proposals cimport GroupProposals

cdef class QuorumBacklog(DiskBacklog):
    cdef QuorumGroup _group
    cdef GroupProposals _proposals
    cdef dict _returned
    cdef public uint64_t reach
    cdef public int64_t place_base

    cpdef bint is_deliverable(self) except -1
    @cython.locals(delivery=Delivery)
    cpdef Delivery pop(self, Queue queue)
    cpdef int64_t place_of(self, Delivery delivery) except -1
    @cython.locals(position=int64_t)
    cpdef int64_t expired_place(self, int64_t now, int64_t ttl_ms) except -2
    cpdef Delivery take(self, object peeked, Queue queue)
    cpdef restore(self, int level, object found, int64_t ttl_ms)
    cpdef forget(self)
    @cython.final
    cdef _count_attempts(self, Delivery delivery)
    cdef keep_message(self, Message message, uint64_t position)
    @cython.locals(stored=StoredMessage)
    cdef release_message(self, Message message, uint64_t position)
    cdef finish_range(self, uint64_t first, uint64_t end, int64_t byte_count)
    cdef note_delivered(self, uint64_t end)
    cdef discard_index(self, PagedIndex index)
