cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.counters cimport Counters
from warren.framing.outbox cimport Outbox

cdef class Confirms(ConfirmListener):
    cdef readonly uint64_t last
    cdef Outbox _outbox
    cdef Counters _counters
    cdef Counters _totals
    cdef bytes _ack_head
    cdef int _channel_number
    cdef uint64_t _answered
    cdef bint _is_waiting
    cdef bint _is_closed
    cdef uint64_t _run_first
    cdef uint64_t _run_end
    cdef dict _due
    cdef uint64_t _first_due
    cdef set _ahead
    cdef set _refused
    cdef object _failure

    cpdef uint64_t next(self) except 0
    @cython.locals(sequence=uint64_t, due=cython.int)
    cpdef done(self, uint64_t first, uint64_t last)
    @cython.locals(sequence=uint64_t)
    cdef _end_run(self)
    cpdef flush(self)
    cpdef flush_before(self, uint64_t sequence)
    cdef _flush_to(self, uint64_t last)
    @cython.locals(first=uint64_t)
    cdef _pass_first_due(self)
    cdef _answer_later(self)
    cdef void _count(self, int64_t confirmed) noexcept
