cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class Turn:
    cdef object _clock
    cdef object _at_end
    cdef int64_t _now
    cdef bint _is_read

    cpdef int64_t now(self) except? -1
    cpdef int64_t begin(self) except? -1
    cpdef end(self)
