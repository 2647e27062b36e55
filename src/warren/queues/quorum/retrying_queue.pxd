cimport cython
from libc.stdint cimport int64_t

from warren.queues.backlog cimport Backlog
from warren.queues.classic cimport ClassicQueue
from warren.queues.queue cimport Delivery

cdef class RetryingQueue(ClassicQueue):
    cdef object _delayed
    cdef bint _retries_later

    cpdef expire(self)
    @cython.final
    @cython.locals(delay_ms=int64_t)
    cdef int64_t retried_at(self, Delivery delivery, bint has_failed) except -1
    @cython.final
    @cython.locals(ready=Backlog, deadline=int64_t, when=int64_t)
    cdef delay(self, Delivery delivery, int64_t ready_at)
    cdef _schedule(self)
    cdef _drop_overflow(self)
