cimport cython
from libc.stdint cimport uint64_t

from warren.queues.queue cimport Delivery

@cython.final
cdef class RequeuedMessages:
    cdef readonly Py_ssize_t count
    cdef dict _deliveries
    cdef list _order

    cpdef add(self, Delivery delivery)
    @cython.locals(order=list)
    cpdef uint64_t first_position(self) except? 0
    cpdef Delivery pop(self)
    @cython.locals(delivery=Delivery)
    cpdef Delivery take(self, uint64_t position)
    cpdef bint holds(self, uint64_t position) except -1
    cpdef Delivery get(self, uint64_t position)
