cimport cython
from libc.stdint cimport uint64_t

from warren.model.ring cimport Ring
from warren.queues.queue cimport Consumer, Delivery

@cython.final
cdef class Unacked:
    cdef readonly Py_ssize_t count
    cdef uint64_t _first
    cdef Ring _places
    cdef uint64_t _revoked_to

    @cython.locals(tag=uint64_t)
    cpdef uint64_t next_tag(self) except 0
    @cython.locals(tag=uint64_t)
    cpdef uint64_t add(self, Delivery delivery) except 0
    @cython.locals(places=Ring, place=uint64_t, delivery=Delivery)
    cpdef Delivery take(self, uint64_t tag)
    @cython.locals(places=Ring, count=uint64_t)
    cpdef list take_to(self, uint64_t tag)
    @cython.locals(places=Ring, place=Py_ssize_t, delivery=Delivery)
    cpdef uint64_t first_of(self, Consumer consumer, uint64_t tag) except? 0
    @cython.locals(places=Ring)
    cdef _trim(self)
