from libc.stdint cimport int64_t, uint32_t

cimport cython
from warren.store.record cimport uint32, uint64

cdef Py_ssize_t _SIZE_MAX
cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _SIZE_AT
cdef Py_ssize_t _FIRST_AT
cdef Py_ssize_t _TIME_AT
cdef Py_ssize_t _COUNT_AT
cdef Py_ssize_t _SHAPES_AT
cdef Py_ssize_t _BODY_CHECKSUM_AT
cdef Py_ssize_t _HEAD_CHECKSUM_AT
cdef Py_ssize_t _SHAPE_SIZE
cdef Py_ssize_t _WIDTH
cdef bint _IS_BIG

@cython.final
cdef class Span:
    cdef readonly int64_t first
    cdef readonly Py_ssize_t count
    cdef readonly list shapes
    cdef readonly object kinds
    cdef list _counts
    cdef list _times
    cdef list _ends
    cdef list _bodies
    cdef dict _known
    cdef bytes _last_shape

    @cython.locals(
        source='const unsigned char*', count=Py_ssize_t, shape_count=Py_ssize_t, ends_at=Py_ssize_t, size=Py_ssize_t
    )
    cpdef add(self, bytes data, Py_ssize_t at)
    cpdef tuple ends_and_times(self)
    @cython.locals(
        begin=Py_ssize_t, behind=Py_ssize_t, before=uint32_t, number=Py_ssize_t, place=Py_ssize_t, time=int64_t
    )
    cdef _fill_in(self, uint32_t[::1] ends, int64_t[::1] times)
    @cython.locals(
        source='const unsigned char*', last=bytes, end=Py_ssize_t, begin=Py_ssize_t, list_at=Py_ssize_t,
        address_size=Py_ssize_t, list_size=Py_ssize_t,
    )
    cdef Py_ssize_t _add_shapes(self, bytes data, Py_ssize_t at, Py_ssize_t count, Py_ssize_t shape_count) except -1

@cython.final
cdef class Block:
    cdef uint32_t _sync_marker
    cdef bytes _data
    cdef uint32_t _seed
    cdef readonly Py_ssize_t end

    @cython.locals(
        data=bytes, source='const unsigned char*', span=Span, alone=Py_ssize_t, taken=Py_ssize_t, size=Py_ssize_t,
        first=int64_t, count=int64_t,
    )
    cpdef take(self, Py_ssize_t at, int64_t offset, int64_t end)
    cdef _chunk(self, Py_ssize_t at)
    @cython.locals(source='const unsigned char*', left=Py_ssize_t)
    cdef Py_ssize_t _size_at(self, Py_ssize_t at) except -1
    @cython.locals(source='const unsigned char*', checksum=uint32_t)
    cdef bint _is_intact(self, Py_ssize_t at, Py_ssize_t size) except -1

cdef uint32_t _little(const unsigned char* data, Py_ssize_t at) noexcept
