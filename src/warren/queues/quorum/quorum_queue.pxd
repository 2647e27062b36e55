cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, StoredMessage, stored_copy
from warren.queues.backlog cimport Backlog
from warren.queues.classic cimport ClassicQueue
from warren.queues.queue cimport Consumer, Delivery
from warren.queues.quorum.group cimport QuorumGroup
from warren.queues.quorum.group_proposals cimport GroupProposals
from warren.queues.quorum.claimed_queue cimport ClaimedQueue
from warren.queues.quorum.quorum_backlog cimport QuorumBacklog
from warren.store.group_record cimport PositionRun

cdef int _ACCEPTED
cdef int _REFUSED
cdef int _PERSISTENT
cdef int _REJECTED

cdef class QuorumQueue(ClaimedQueue):
    cdef object _stores
    cdef object _incarnation
    cdef object _membership
    cdef dict _backlogs
    cdef list _restoring
    cdef object _untrusted
    cdef bint _has_levels
    cdef bint _is_retreating
    cdef public object ended

    @cython.locals(stored=StoredMessage, proposals=GroupProposals)
    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    cpdef pump(self)
    @cython.locals(proposals=GroupProposals, is_over=bint, has_failed=bint, is_counted=bint, ready_at=int64_t)
    cpdef requeue(self, Delivery delivery, int reason=*)
    cpdef Message outgoing(self, Delivery delivery)
    @cython.final
    cdef Py_ssize_t _counted(self, Delivery delivery) except -1
    @cython.locals(group=QuorumGroup, run=PositionRun, place=Py_ssize_t, level=cython.int, first=uint64_t, position=uint64_t, end=uint64_t, reach=uint64_t)
    cpdef enter(self, list messages, object runs)
    @cython.locals(group=QuorumGroup, level=cython.int, backlog=QuorumBacklog)
    cpdef reached(self)
    @cython.final
    @cython.locals(consumer=Consumer)
    cdef _enter(self, StoredMessage message, int level, bint is_reached)
    cdef bint _is_deliverable(self) except -1
