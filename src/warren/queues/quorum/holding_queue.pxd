cimport cython
from libc.stdint cimport int64_t

from warren.model.message cimport Message, body_size_of
from warren.queues.backlog cimport Backlog
from warren.queues.classic cimport ClassicQueue
from warren.queues.queue cimport Delivery
from warren.queues.quorum.group_proposals cimport GroupProposals
from warren.queues.quorum.retrying_queue cimport RetryingQueue

cdef class HoldingQueue(RetryingQueue):
    cdef GroupProposals _proposals
    cdef object _quarantine
    cdef int _level_max
    cdef object _dead_letters

    cdef bint is_full_for(self, Message message) except -1
    @cython.final
    @cython.locals(proposals=GroupProposals, count=Py_ssize_t)
    cdef bint _is_full_with(
        self, int64_t byte_count, Py_ssize_t quarantined_count, int64_t quarantined_bytes
    ) except -1
    @cython.locals(ready=Backlog)
    cdef _drop_overflow(self)
    @cython.final
    cdef quarantine(self, Delivery delivery)
    cdef _dead_letter_delivery(self, Delivery delivery, str reason)
    @cython.locals(place=int64_t, delivery=Delivery)
    cdef _drop_expired(self, int64_t now)
    @cython.final
    @cython.locals(proposals=GroupProposals)
    cdef _keep_dead(self, Delivery delivery, str reason)
    @cython.final
    @cython.locals(level=cython.int)
    cdef int _level_of(self, Message message) except -1
