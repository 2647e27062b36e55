cimport cython

from warren.cluster.groups.replica_place cimport ReplicaPlace

cdef Py_ssize_t _TRANSFER_SIZE

@cython.final
cdef class IncomingSnapshot:
    cdef readonly ReplicaPlace place
    cdef readonly object node
    cdef readonly object number
    cdef readonly object message
    cdef readonly dict ends
    cdef public int left
    cdef readonly object chunks
    cdef public object reader
    cdef public tuple run
    cdef public bint has_ended
    cdef public bint is_due
    cdef dict _behind

@cython.final
cdef class SnapshotReceiver:
    cdef dict _places
    cdef object _channel
    cdef object _later
    cdef object _report
    cdef dict _incoming
    cdef set _incomplete

    @cython.locals(incoming=IncomingSnapshot)
    cpdef step(self, ReplicaPlace place, message)
