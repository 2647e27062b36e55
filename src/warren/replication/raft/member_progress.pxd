cdef object _REPLICATE
cdef object _SNAPSHOT

cdef class InFlight:
    cdef object _messages_max
    cdef object _bytes_max
    cdef object _bytes
    cdef object _messages

    cpdef add(self, last, size)
    cpdef release(self, index)
    cpdef clear(self)

cdef class Progress:
    cdef public object match
    cdef public object next
    cdef public object state
    cdef public bint is_learner
    cdef public bint is_active
    cdef public bint is_paused_for_now
    cdef public object pending_snapshot
    cdef public object sent_commit
    cdef readonly InFlight in_flight

    cpdef probe(self)
    cpdef replicate(self)
    cpdef send_snapshot(self, index)
    cpdef has_sent(self, count, size)
    cpdef bint matches(self, index) except -1
    cpdef bint refuses(self, index, hint) except -1
    cpdef bint lacks_commit(self, commit) except -1
    cdef _reset(self, state)
