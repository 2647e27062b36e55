cimport cython
from libc.stdint cimport int64_t

from warren.cluster.elapsed_time cimport ElapsedTime
from warren.cluster.link_frames cimport LinkFrameReader

cdef int _KIND_AT
cdef object _REFUSAL

@cython.final
cdef class LinkConnection:
    cdef object _handshake
    cdef object _find_owner
    cdef object _socket
    cdef object _failed
    cdef object _removed
    cdef LinkFrameReader _reader
    cdef object _counters
    cdef object _owner
    cdef object _purpose
    cdef ElapsedTime _time
    cdef int64_t _due
    cdef list _output
    cdef readonly str reason
    cdef readonly bint is_finished
    cdef readonly bint is_suspect

    cpdef receive(self, data, int64_t now)
    @cython.locals(output=list)
    cpdef list take_output(self)
    cpdef output_ready(self)
    cdef _handle(self, frame)
    cdef _proved(self)
