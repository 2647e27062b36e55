cimport cython
from libc.stdint cimport uint64_t

from warren.queues.queue cimport Delivery

cdef int _REJECT

@cython.final
cdef class SettledPlaces:
    cdef readonly int how
    cdef readonly uint64_t first
    cdef public uint64_t count
    cdef public object void

@cython.final
cdef class UnsettledPlaces:
    cdef public dict held
    cdef object _runs
    cdef dict _returning

    cpdef deliver(self, uint64_t place, Delivery delivery)
