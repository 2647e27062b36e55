cimport cython
from libc.stdint cimport uint64_t

from warren.queues.quorum.batch_codec cimport QuorumBatch, Reach, SettledRun, new_enqueue, new_reach, new_settled_run
from warren.store.group_record cimport PositionRun, new_position_run

cdef Py_ssize_t _EMPTY_SIZE
cdef Py_ssize_t _FULL_SIZE
cdef Py_ssize_t _ENQUEUE_SIZE
cdef Py_ssize_t _SETTLE_SIZE
cdef Py_ssize_t _SIZE_MAX
cdef Py_ssize_t _RUNS_MAX
cdef int _NO_LEVEL

@cython.final
cdef class BatchBuilder:
    cdef readonly bint is_full
    cdef Py_ssize_t _size
    cdef list _runs
    cdef list _enqueued
    cdef list _settled
    cdef list _returned
    cdef list _held
    cdef list _forgotten
    cdef dict _reaches
    cdef int _reach_level
    cdef uint64_t _reach
    cdef object _enqueuer
    cdef uint64_t _enqueued_count
    cdef uint64_t _next_number
    cdef int _run_level
    cdef uint64_t _run_end
    cdef uint64_t _run_count
    cdef int _settled_level
    cdef uint64_t _settled_first
    cdef uint64_t _settled_end
    cdef uint64_t _settled_bytes
    cdef object _settled_reason

    cpdef bint is_empty(self) except -1
    cpdef enqueue(self, object enqueuer, uint64_t number, int level, uint64_t position)
    cpdef settle(self, int level, uint64_t position, uint64_t size, object reason)
    @cython.locals(batch=QuorumBatch)
    cpdef QuorumBatch take(self)
    @cython.locals(only=Reach, reaches=dict)
    cdef tuple _take_reaches(self)
    @cython.locals(before=object)
    cdef _end_reach(self)
    @cython.locals(run=PositionRun)
    cpdef reach_enqueued(self)
    cpdef raise_reach(self, int level, uint64_t position)
    cdef _grow(self, Py_ssize_t size)
    @cython.locals(count=uint64_t)
    cdef _end_enqueued(self)
    @cython.locals(count=uint64_t)
    cdef _end_run(self)
    @cython.locals(first=uint64_t, count=uint64_t, run=SettledRun)
    cdef _end_settled(self)

cdef tuple _taken(list collected)
