cimport cython

from warren.cluster.groups.replica_place cimport ReplicaPlace

cdef bytes _VERSION
cdef Py_ssize_t _ROWS_MAX

@cython.final
cdef class GroupTicks:
    cdef object _node
    cdef object _links
    cdef dict _places
    cdef object _control
    cdef dict _awake
    cdef dict _sleeping
    cdef object _on_awake
    cdef int _compared_ms

    cpdef worked(self, ReplicaPlace place)
    cpdef wake(self, ReplicaPlace place)
