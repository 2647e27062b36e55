from libc.stdint cimport int64_t

from warren.model.turn cimport Turn
from warren.framing.driven_connection cimport DrivenConnection
from warren.framing.outbox cimport Outbox

# StreamConnection is interpreted: what it sets is public.
cdef class BaseConnection(DrivenConnection):
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
    cdef readonly Turn turn
    cdef bint _will_resume
    cdef public tuple bytes_counted
    cdef readonly int64_t bytes_received
    cdef readonly int64_t read_count
    cdef readonly int64_t write_count
    cdef public bint is_dirty
    cdef public object history

    cpdef list take_output(self)
    cpdef output_written(self)
    cpdef count_read(self, Py_ssize_t size)
    cdef _mark_dirty(self)
