cimport cython
from libc.stdint cimport uint64_t

from warren.queues.queue cimport Delivery
from warren.queues.quorum.group cimport QuorumGroup
from warren.queues.quorum.holding_queue cimport HoldingQueue

cdef int _LEVEL_SHIFT
cdef uint64_t _POSITIONS

cdef class ClaimedQueue(HoldingQueue):
    cdef QuorumGroup _group
    cdef object _numbers
    cdef public object claims
    cdef public object make_claims

    @cython.locals(group=QuorumGroup, level=uint64_t)
    cpdef uint64_t group_place(self, Delivery delivery) except? 0
