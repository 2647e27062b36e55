cimport cython
from libc.stdint cimport int64_t

from warren.model.message cimport StoredMessage
from warren.store.catalog cimport Catalog
from warren.store.record cimport encode, encode_message, message_record_size
from warren.store.segment cimport Segment

cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _SEAL_SIZE
cdef Py_ssize_t _BEGIN_SIZE
cdef int64_t _MESSAGE_OVERHEAD
cdef int _SEGMENT_SHIFT

@cython.final
cdef class SegmentLog:
    cdef readonly dict segments
    cdef readonly Segment last
    cdef bint _is_erased
    cdef Catalog _catalog
    cdef list _rolled
    cdef object _random_bytes
    cdef list _spares
    cdef int64_t _spares_made
    cdef str _making
    cdef int64_t _made_in
    cdef list _steps
    cdef list _chunks
    cdef int64_t _start
    cdef list _sealed
    cdef list _retired

    @cython.locals(size=int64_t, last=Segment)
    cpdef append_message(self, StoredMessage message, bytes references)
    cpdef written(self)
    @cython.locals(last=Segment)
    cpdef bint is_spare_due(self) except -1
    cpdef append_group(self, object marker, bytes value, int64_t size)
    cpdef append_parts(self, int kind, list parts)
    cpdef append_record(self, int kind, bytes body)
    @cython.locals(last=Segment)
    cdef _make_room(self, int64_t size)
    cdef _roll(self, int64_t size)
    cdef _open_next(self, int64_t size)
    cdef _add(self, bytes record)
    cdef _write(self)
    cdef _recycle(self, Segment segment)
