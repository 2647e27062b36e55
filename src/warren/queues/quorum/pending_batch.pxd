cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport StoredMessage, body_size_of
from warren.queues.quorum.batch_codec cimport QuorumBatch
from warren.store.cursor cimport QueueCursor
from warren.store.message_store cimport MessageStore

cdef object _EMPTY

cdef class PendingBatch:
    cdef public uint64_t index
    cdef public QuorumBatch batch
    cdef readonly list messages
    cdef public int64_t byte_count
    cdef readonly list released
    cdef list _release_runs
    cdef QueueCursor _released_cursor
    cdef uint64_t _released_end
    cdef uint64_t _released_count
    cdef list _waiting
    cdef readonly list callbacks
    cdef list _confirms
    cdef ConfirmListener _asking
    cdef uint64_t _asked_first
    cdef uint64_t _asked_last

    cpdef add(self, StoredMessage message)
    cpdef release(self, StoredMessage message, QueueCursor cursor, uint64_t position)
    @cython.locals(cursor=QueueCursor, first=uint64_t, end=uint64_t)
    cpdef finish_released(self, MessageStore store)
    @cython.locals(end=uint64_t)
    cdef _end_released(self)
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    @cython.locals(confirmation=ConfirmListener, first=uint64_t, last=uint64_t)
    cpdef answer(self)
    cdef _end_asking(self)
