from libc.stdint cimport int64_t

from warren.flow.credit cimport PublishCredit
from warren.framing.outbox cimport Outbox

cdef class HeldTotal:
    cdef object _later
    cdef dict _paused
    cdef readonly Py_ssize_t size

    cpdef release(self, Py_ssize_t size)

cdef class Throttle:
    cdef Outbox _outbox
    cdef HeldTotal _total
    cdef object _resume
    cdef dict _awaited
    cdef bint _holds_for_credit
    cdef bint _sends_blocked
    cdef int64_t _waited_at
    cdef readonly PublishCredit credit
    cdef readonly Py_ssize_t held_size
    cdef public str reason
    cdef readonly bint is_blocked
    cdef readonly bint is_waiting

    cpdef hold_publisher(self, int64_t now)
    cpdef wait_for(self, PublishCredit credit, int64_t now)
    cpdef held(self, Py_ssize_t size)
    cpdef released(self, Py_ssize_t size)
