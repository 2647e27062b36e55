cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport StoredMessage
from warren.store.cursor cimport QueueCursor
from warren.store.delivered cimport Delivered
from warren.store.group_commit cimport GroupCommit
from warren.store.group_records cimport GroupRecords
from warren.store.segment_log cimport SegmentLog
from warren.store.message_reader cimport MessageReader
from warren.store.record cimport encode_reference, encode_run
from warren.store.segment cimport Segment, slot_of
from warren.store.store_port cimport StorePort

cdef int _SEGMENT_SHIFT
cdef int _AHEAD_KEPT
cdef Py_ssize_t _MESSAGE_SIZE
cdef Py_ssize_t _REFERENCE_SIZE
cdef int64_t _MESSAGE_OVERHEAD

@cython.final
cdef class MessageStore:
    cdef object _disk
    cdef SegmentLog _log
    cdef Delivered _delivered
    cdef readonly dict segments
    cdef StorePort _port
    cdef MessageReader _reader
    cdef GroupCommit _commits
    cdef list _pending
    cdef list _pending_references
    cdef list _groups
    cdef Py_ssize_t _group_first
    cdef StoredMessage _last
    cdef list _last_references
    cdef list _dirty_cursors
    cdef list _runs
    cdef dict _group_logs
    cdef list _dirty_group_logs
    cdef list _preparing
    cdef bint _is_prepare_due
    cdef list _dead
    cdef Py_ssize_t _dead_seen
    cdef object _compaction
    cdef list _background_tasks
    cdef readonly dict cursors
    cdef readonly dict markers
    cdef readonly uint64_t written

    cpdef list_group_log(self, GroupRecords group_log)
    cpdef prepare_group_log(self, GroupRecords group_log)
    cpdef announce_group(self)
    cpdef announce_group_later(self)
    cpdef group_changed(self, Py_ssize_t size)
    cpdef append(self, StoredMessage message, QueueCursor cursor, uint64_t position)
    cpdef MessageReader reader(self)
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    cpdef release(self, StoredMessage message, QueueCursor cursor, uint64_t position)
    cpdef drop_message(self, StoredMessage message)
    cpdef release_at(self, uint64_t location, QueueCursor cursor, uint64_t position)
    cpdef finish(self, QueueCursor cursor, uint64_t first, uint64_t end)
    @cython.locals(segment=Segment)
    cpdef drop_references(self, uint64_t location)
    @cython.locals(segment=Segment, at=int64_t, moved_to=uint64_t)
    cdef _drop_references(self, uint64_t location, int64_t byte_count)
    cpdef delivered_up_to(self, QueueCursor cursor, uint64_t position)
    cdef _note_queue(self, QueueCursor cursor)
    cdef _mark_dirty(self, QueueCursor cursor)
    @cython.locals(log=SegmentLog, pending=list, references=list, place=Py_ssize_t)
    cpdef take_batch(self)
    @cython.locals(group_log=GroupRecords)
    cdef _prepare(self)
    @cython.locals(group_log=GroupRecords)
    cdef _write_group_logs(self)
    @cython.locals(log=SegmentLog, place=Py_ssize_t, message=StoredMessage, joined=object)
    cdef _encode_messages(self, list pending, list references, Py_ssize_t first, Py_ssize_t end)
    @cython.locals(place=Py_ssize_t, size=Py_ssize_t, joined=object)
    cdef Py_ssize_t _encode_groups(self, list pending, list references) except -1
    @cython.final
    @cython.locals(place=Py_ssize_t)
    cdef int64_t _size_of(self, list pending, list references, Py_ssize_t first, Py_ssize_t end) except -1
    cpdef QueueCursor cursor(self, uint64_t queue, int level)
