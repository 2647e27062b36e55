cimport cython

from warren.replication.raft.raft_messages cimport Entry
from warren.replication.raft.replica cimport Replica

cdef object _CHANGE

cdef class RaftDriver:
    cdef readonly Replica replica
    cdef object _log
    cdef object _machine
    cdef object _send
    cdef list _waiting
    cdef long long _ticket
    cdef long long _synced
    cdef bint _is_flushing
    cdef object _incarnation
    cdef object _read_number
    cdef dict _reads
    cdef dict _reads_due
    cdef Py_ssize_t _read_elapsed

    cpdef propose(self, payload, size)
    cpdef flush(self)
    cpdef written(self, long long ticket)
    cdef bint _begin(self) except -1
    cdef bint _begin_alone(self) except -1
    cdef _note_ticket(self, long long ticket)
    @cython.locals(replica=Replica)
    cdef bint _finish_write(self) except -1
    @cython.locals(entry=Entry, last=Entry)
    cpdef _apply(self, entries)
    cdef _ask_again(self)
    cdef _answer_reads(self)
