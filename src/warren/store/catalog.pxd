cimport cython
from libc.stdint cimport int64_t

@cython.final
cdef class Catalog:
    cdef object _disk
    cdef str _name
    cdef readonly dict entries
    cdef dict _places
    cdef list _free
    cdef int64_t _sequence
    cdef int64_t _count
    cdef readonly list damage

    cpdef note(self, object key, object entry)
    @cython.locals(data=bytes)
    cdef tuple _turn(self, object key, object entry, bint is_kept)
    cdef object _added(self)
