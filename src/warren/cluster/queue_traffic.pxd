from libc.stdint cimport uint32_t, uint64_t

from warren.cluster.attachment cimport Attachment
from warren.cluster.unconfirmed_publishes cimport UnconfirmedPublishes
from warren.model.message cimport Message
from warren.queues.queue cimport Queue

cdef class QueueTraffic:
    cdef readonly Queue queue
    cdef readonly str name
    cdef readonly uint64_t number
    cdef readonly bint is_durable
    cdef public bint is_named
    cdef public bint is_forgotten
    cdef public bint is_kept
    cdef readonly UnconfirmedPublishes unconfirmed
    cdef public Py_ssize_t held_size
    cdef readonly dict attachments

    cpdef bint answered(self, Py_ssize_t count, bint is_refused) except -1
    cpdef deliver(self, Attachment attachment, Message message, uint64_t place, uint32_t attempts)
    cpdef lost(self)
