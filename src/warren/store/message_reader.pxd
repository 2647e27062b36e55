from libc.stdint cimport int64_t, uint32_t, uint64_t

cimport cython
from warren.model.message cimport StoredMessage
from warren.store.record cimport decode_body, decode_message, is_intact, uint32
from warren.store.segment cimport Segment

cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _READ_AHEAD_SIZE
cdef Py_ssize_t _READ_ALONE_SIZE
cdef Py_ssize_t _READ_GAP_MAX
cdef int _SEGMENT_SHIFT

@cython.final
cdef class MessageReader:
    cdef object _disk
    cdef dict _segments
    cdef object _report
    cdef bytes _chunk
    cdef Segment _segment
    cdef int64_t _start
    cdef int64_t _end
    cdef Py_ssize_t _begin

    @cython.locals(size=Py_ssize_t, message=StoredMessage)
    cpdef StoredMessage read(self, uint64_t location)
    @cython.locals(size=Py_ssize_t, body=bytes)
    cpdef bytes read_body(self, uint64_t location)
    cpdef forget(self)
    @cython.locals(
        number=int64_t, at=int64_t, begin=int64_t, size=Py_ssize_t, segment=Segment, moved_to=uint64_t
    )
    cdef Py_ssize_t _find(self, uint64_t location) except -1
    cdef _leave_large(self)
    @cython.locals(chunk=bytes, gap=int64_t, is_near=bint, size=Py_ssize_t)
    cdef Py_ssize_t _fill(self, Segment segment, int64_t at) except -1
