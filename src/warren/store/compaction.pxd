from libc.stdint cimport int64_t, uint64_t

cimport cython
from warren.model.message cimport StoredMessage
from warren.store.cursor cimport QueueCursor
from warren.store.segment_log cimport SegmentLog
from warren.store.record cimport decode_message, first_reference, is_intact, reference_count, uint32, uint64
from warren.store.segment cimport Segment, slot_of

cdef int _SEGMENT_SHIFT
cdef int _LEVEL_SHIFT

@cython.final
cdef class Compaction:
    cdef readonly Segment segment
    cdef readonly bint is_finished
    cdef object _disk
    cdef dict _segments
    cdef dict _cursors
    cdef int64_t _at
    cdef list _moves

    cpdef copy(self, SegmentLog log)
    @cython.locals(at=int64_t, location=uint64_t, references=list, byte_count=int64_t, alive=int64_t, target=Segment)
    cpdef list finish_moves(self)
    @cython.locals(segment=Segment, data=bytes, begin=Py_ssize_t, size=Py_ssize_t, kind=cython.int)
    cdef _copy_piece(self, SegmentLog log)
    cdef bytes _read_whole(self, bytes data)
    @cython.locals(first=Py_ssize_t, end=Py_ssize_t, at=int64_t, message=StoredMessage, references=list)
    cdef _copy_message(self, SegmentLog log, bytes data, Py_ssize_t begin, Py_ssize_t size)
    cdef list _alive(self, int64_t at, list references)
    @cython.locals(key=uint64_t, level=uint64_t, cursor=QueueCursor)
    cdef bint _needs(self, bytes reference) except -1
    @cython.locals(segment=Segment, target=Segment, first=Segment, home=uint64_t)
    cdef _record_move(self, int64_t at, uint64_t location, int64_t alive, int64_t byte_count)
