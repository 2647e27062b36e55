from warren.queues.quorum.quorum_queue cimport QuorumQueue
from warren.queues.vhost_queue cimport VhostQueue

cdef class LedQueue(VhostQueue):
    cdef object _counts
    cdef bint _is_paused
    cdef QuorumQueue _leader
    cdef object _local
    cdef QuorumQueue _replica

    cpdef pump(self)
