cimport cython
from libc.stdint cimport uint32_t

cdef Py_ssize_t _METHOD_SIZE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _OVERHEAD
cdef unsigned char _END

@cython.final
cdef class FrameReader:
    cdef readonly bytes data
    cdef readonly int kind
    cdef readonly int channel
    cdef readonly Py_ssize_t start
    cdef readonly Py_ssize_t size
    cdef public Py_ssize_t frame_size_max
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end
    cdef list _carry
    cdef Py_ssize_t _carry_size
    cdef Py_ssize_t _carry_needed
    cdef bytes _rest
    cdef Py_ssize_t _rest_position

    cpdef feed(self, bytes data)
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t, left=Py_ssize_t,
                   size=Py_ssize_t, length=uint32_t)
    cpdef bint advance(self) except -1
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t, left=Py_ssize_t,
                   size=Py_ssize_t, length=uint32_t)
    cpdef bint is_next_of(self, int channel) except -1
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t)
    cpdef uint32_t next_method(self) except? 0xFFFFFFFF
    cpdef bint has_more(self) except -1
    @cython.locals(unread=bytes)
    cpdef bytes take_unread(self)
    @cython.locals(data='const unsigned char*')
    cpdef bytes payload(self)
    cdef _use(self, bytes data, Py_ssize_t position)
    @cython.locals(rest=bytes, tail=bytes)
    cdef bint _run_out(self, Py_ssize_t left) except -1
    cdef _complete(self, bytes data)
    cdef Py_ssize_t _needed(self, bytes head) except -1
