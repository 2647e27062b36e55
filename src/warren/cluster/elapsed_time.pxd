cimport cython
from libc.stdint cimport int64_t

cdef int64_t _STEP_MAX

@cython.final
cdef class ElapsedTime:
    cdef int64_t _seen
    cdef readonly int64_t now

    @cython.locals(step=int64_t)
    cpdef follow(self, int64_t clock)
