cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, StoredMessage, body_size_of, stored_copy
from warren.queues.backlog cimport Backlog
from warren.queues.classic cimport ClassicQueue
from warren.queues.queue cimport Consumer, Delivery
from warren.queues.quorum.group cimport QuorumGroup
from warren.queues.quorum.retrying_queue cimport RetryingQueue
from warren.queues.quorum.quorum_backlog cimport QuorumBacklog
from warren.store.group_record cimport PositionRun

cdef int _ACCEPTED
cdef int _REFUSED
cdef int _PERSISTENT
cdef int _REJECTED

cdef class QuorumQueue(RetryingQueue):
    cdef QuorumGroup _group
    cdef object _stores
    cdef object _incarnation
    cdef dict _backlogs
    cdef list _restoring
    cdef object _quarantine
    cdef object _untrusted
    cdef int _level_max
    cdef bint _has_levels
    cdef object _dead_letters

    @cython.locals(stored=StoredMessage, group=QuorumGroup)
    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    cpdef pump(self)
    @cython.locals(group=QuorumGroup, is_over=bint, has_failed=bint, ready_at=int64_t)
    cpdef requeue(self, Delivery delivery, int reason=*)
    cdef _dead_letter_delivery(self, Delivery delivery, str reason)
    @cython.final
    cdef _keep_dead(self, Delivery delivery, str reason)
    cpdef Message outgoing(self, Delivery delivery)
    @cython.locals(group=QuorumGroup, run=PositionRun, place=Py_ssize_t, level=cython.int, first=uint64_t, position=uint64_t, end=uint64_t, reach=uint64_t)
    cpdef enter(self, list messages, object runs)
    @cython.locals(group=QuorumGroup, level=cython.int, backlog=QuorumBacklog)
    cpdef reached(self)
    @cython.final
    @cython.locals(consumer=Consumer)
    cdef _enter(self, StoredMessage message, int level, bint is_reached)
    cdef bint _is_deliverable(self) except -1
    @cython.locals(group=QuorumGroup, count=Py_ssize_t, byte_count=int64_t)
    cdef bint is_full_for(self, Message message) except -1
    @cython.final
    @cython.locals(level=cython.int)
    cdef int _level_of(self, Message message) except -1
