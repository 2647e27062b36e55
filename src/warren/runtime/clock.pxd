cimport cython
from libc.stdint cimport int64_t

cdef int64_t _NANOSECONDS
cdef object _read_ns
cdef object _BOOT_TIME

cdef class Clock:
    cdef int64_t _offset_ms

    @cython.locals(uptime_ns=int64_t)
    cpdef int64_t now(self) except? -1
