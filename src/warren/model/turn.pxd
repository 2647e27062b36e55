cimport cython
from libc.stdint cimport int64_t


cdef int64_t _SHARED_MS

@cython.final
cdef class Turn:
    cdef object _clock
    cdef object _at_end
    cdef object _end
    cdef int64_t _now
    cdef bint _is_read
    cdef int64_t _client_sent_at

    cpdef int64_t now(self) except? -1
    cpdef int64_t begin(self) except? -1
    cpdef note_client(self)
    cpdef bint is_shared(self) except -1
    cpdef end(self)
