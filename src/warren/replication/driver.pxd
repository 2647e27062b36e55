cimport cython

from warren.replication.raft.replica cimport Replica

cdef class RaftDriver:
    cdef readonly Replica replica
    cdef object _log
    cdef object _machine
    cdef object _send
    cdef object _waiting
    cdef object _ticket
    cdef object _synced
    cdef bint _is_flushing

    cpdef propose(self, payload, size)
    cpdef flush(self)
    cpdef written(self, ticket)
    cdef bint _begin(self) except -1
    @cython.locals(replica=Replica)
    cdef bint _finish_write(self) except -1
    cpdef _apply(self, entries)
