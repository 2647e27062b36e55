from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport StoredMessage, body_size_of

cdef object _EMPTY

cdef class PendingBatch:
    cdef public uint64_t index
    cdef public object batch
    cdef readonly list messages
    cdef public int64_t byte_count
    cdef readonly list releases
    cdef readonly list callbacks
    cdef list _confirms
    cdef ConfirmListener _asking
    cdef uint64_t _asked_first
    cdef uint64_t _asked_last

    cpdef add(self, StoredMessage message)
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    cpdef answer(self)
    cdef _end_asking(self)
