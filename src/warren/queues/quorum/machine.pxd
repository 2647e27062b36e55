cimport cython
from libc.stdint cimport uint64_t

from warren.queues.quorum.batch_codec cimport Enqueue, QuorumBatch, Reach, SettledRun

cdef object _APPLIED

cdef class QuorumMachine:
    cdef dict _reach
    cdef dict _enqueuers
    cdef readonly object _returned

    cpdef uint64_t reach(self, int level) except? 0
    cpdef uint64_t last_number(self, enqueuer) except? 0
    @cython.locals(level=cython.int, position=uint64_t, reach=Reach, settled=SettledRun)
    cpdef apply(self, QuorumBatch batch)
    @cython.locals(first=uint64_t, count=uint64_t, last=uint64_t, end=uint64_t, before=uint64_t, each=Enqueue)
    cdef tuple _enqueue(self, QuorumBatch batch)
