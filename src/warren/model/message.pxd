cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

cdef Py_ssize_t _BODY_OVERHEAD

@cython.final
cdef class Message:
    cdef readonly bytes address
    cdef readonly bytes content
    cdef public int64_t published_at
    cdef readonly uint32_t header_size
    cdef public uint16_t channel
    cdef public uint8_t flags
    cdef public uint8_t priority

@cython.locals(message=Message)
cpdef Message new_message(bytes address, bytes content, uint32_t header_size, int64_t now)

@cython.locals(rest=Py_ssize_t)
cpdef Py_ssize_t body_size_of(Message message)
