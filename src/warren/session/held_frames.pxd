cimport cython
from libc.stdint cimport uint32_t

from warren.wire.frames cimport FrameReader

cdef Py_ssize_t _HEAD_SIZE
cdef uint32_t _ACK
cdef uint32_t _NACK
cdef uint32_t _REJECT

@cython.final
cdef class HeldFrames:
    cdef bytearray _data
    cdef readonly Py_ssize_t size

    @cython.locals(data=bytes, frames=bytes, channel=cython.int, begin=Py_ssize_t)
    cpdef Py_ssize_t add(self, FrameReader reader) except -1
    cpdef FrameReader first(self, Py_ssize_t size)
    cpdef FrameReader after(self, Py_ssize_t size)
    cpdef remove(self, Py_ssize_t size)
    @cython.locals(reader=FrameReader)
    cdef FrameReader _part(self, Py_ssize_t begin, Py_ssize_t end)

cpdef bint settles(uint32_t index) noexcept
