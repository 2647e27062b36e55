from libc.stdint cimport int64_t, uint32_t, uint64_t

cimport cython
from warren.model.column cimport Column
from warren.store.cursor cimport QueueCursor
from warren.store.record cimport (
    content_size,
    decode_marker,
    first_reference,
    group_size,
    is_intact,
    reference_count,
    uint32,
    uint64,
)
from warren.store.segment cimport Segment

cdef Py_ssize_t _AT_ONCE
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _REFERENCE_SIZE
cdef Py_ssize_t _RUN_SIZE
cdef int _MESSAGE
cdef int _RELEASE
cdef int _DELIVERED
cdef int _SEAL
cdef int _GROUP
cdef int _ENTRY
cdef int _HAS_EXPIRATION
cdef int _LEVEL_SHIFT
cdef int _SEGMENT_SHIFT
cdef int64_t _BESIDE_BODY

@cython.final
cdef class CursorScan:
    cdef public Column positions
    cdef public Column locations
    cdef public Column sizes
    cdef public bint in_order
    cdef public uint64_t last
    cdef readonly list expiring
    cdef readonly list runs
    cdef public uint64_t delivered_up_to
    cdef readonly set segments

@cython.final
cdef class SegmentScan:
    cdef readonly dict cursors
    cdef readonly dict markers
    cdef readonly object groups
    cdef CursorScan _last
    cdef uint64_t _queue
    cdef uint64_t _level

    @cython.locals(size=Py_ssize_t, seed=uint32_t, _=Py_ssize_t)
    cpdef Py_ssize_t take_some(self, Segment segment, bytes data, Py_ssize_t at) except -1

    @cython.locals(source='const unsigned char*', kind=cython.int, begin=Py_ssize_t, key=uint64_t, first=uint64_t, cursor=CursorScan)
    cpdef take(self, Segment segment, bytes data, Py_ssize_t at, Py_ssize_t size)
    @cython.locals(
        body_size=Py_ssize_t, expires=cython.int, begin=Py_ssize_t, key=uint64_t, position=uint64_t,
        cursor=CursorScan, location=uint64_t, references=Py_ssize_t, _=Py_ssize_t,
    )
    cdef _take_message(self, Segment segment, const unsigned char* data, Py_ssize_t at, Py_ssize_t size)
    @cython.locals(cursor=CursorScan, key=tuple)
    cdef CursorScan _cursor(self, uint64_t queue, uint64_t level)

@cython.locals(end=Py_ssize_t)
cdef bint _is_whole(bytes data, Py_ssize_t at, Py_ssize_t size, uint32_t seed) except -1
cdef uint64_t _position(uint64_t key) noexcept
cpdef QueueCursor recovered_cursor(CursorScan scan, uint64_t queue, uint64_t level)

@cython.final
cdef class LiveMessages:
    cdef CursorScan _scan
    cdef QueueCursor _cursor
    cdef dict _segments
    cdef Py_ssize_t _place
    cdef Py_ssize_t _kept
    cdef int64_t _byte_count
    cdef set _expires
    cdef list _expiring

    @cython.locals(
        positions=Column, locations=Column, cursor=QueueCursor, segment=Segment, start=Py_ssize_t, place=Py_ssize_t,
        position=uint64_t, location=uint64_t, size=int64_t,
    )
    cpdef bint take_some(self) except -1
    @cython.locals(positions=Column, locations=Column)
    cpdef object found(self)
