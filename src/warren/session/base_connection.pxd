from libc.stdint cimport int64_t

from warren.model.turn cimport Turn
from warren.framing.outbox cimport Outbox

# StreamConnection is interpreted: what it sets is public.
cdef class BaseConnection:
    cdef readonly object server
    cdef readonly object peer
    cdef readonly Outbox outbox
    cdef readonly int64_t connected_at
    cdef public object state
    cdef readonly object services
    cdef public object login
    cdef readonly object owner
    cdef object _output_listener
    cdef readonly object deadlines
    cdef readonly object pending_command
    cdef public int64_t changes
    cdef public bint has_more
    cdef public bint is_open
    cdef readonly Turn turn
    cdef bint _will_resume
    cdef public tuple bytes_counted
    cdef readonly int64_t bytes_received
    cdef readonly int64_t read_count
    cdef readonly int64_t write_count
    cdef public bint is_dirty
    cdef public object history

    cpdef count_read(self, Py_ssize_t size)
    cdef _mark_dirty(self)
