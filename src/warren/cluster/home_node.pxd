cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.cluster.attachment cimport Attachment
from warren.cluster.payload_reader cimport PayloadReader
from warren.cluster.payload_writer cimport PayloadWriter
from warren.cluster.queue_traffic cimport QueueTraffic
from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, has_died
from warren.model.turn cimport Turn
from warren.queues.queue cimport Consumer, Delivery, QueueHost, new_delivery

cdef int _WANTS_CONFIRM
cdef int _HAS_DIED
cdef int _NO_ACK
cdef int _RETURNED
cdef int _CHANNEL_ENDED
cdef int _ACCEPTED
cdef int _REFUSED_AS_AWAY
cdef int _CONFIRM
cdef int _REFUSE
cdef int _DELIVER
cdef int _DELIVER_AT
cdef Py_ssize_t _HELD_SIZE_MAX
cdef int _NUMBER_BITS
cdef uint64_t _NUMBER_MASK

@cython.final
cdef class HomeNode:
    cdef readonly str node_name
    cdef readonly bint is_up
    cdef readonly object absence
    cdef QueueHost _host
    cdef str _vhost
    cdef object _channel
    cdef object _metadata
    cdef object _later
    cdef Turn _turn
    cdef object _next_generation
    cdef uint64_t _generation
    cdef uint64_t _mark
    cdef uint64_t _delivered
    cdef readonly PayloadWriter writer
    cdef bint _is_flush_due
    cdef object _waiting
    cdef bint _is_held
    cdef object _held
    cdef dict _publishing
    cdef set _left
    cdef uint64_t _request_id
    cdef dict _requests
    cdef dict _attachments
    cdef dict _renewing
    cdef readonly dict followers

    cpdef int publish(
        self, QueueTraffic traffic, Message message, ConfirmListener confirmation, uint64_t sequence
    ) except -1
    cpdef int send(self, QueueTraffic traffic, Message message) except -1
    @cython.locals(writer=PayloadWriter)
    cdef int _send(self, QueueTraffic traffic, Message message, int flags) except -1
    cpdef flush_soon(self)
    @cython.locals(writer=PayloadWriter)
    cpdef reply(self, Message message)
    @cython.locals(position=uint64_t)
    cpdef settle(self, Delivery delivery, int how)
    cpdef renew(self, Attachment attachment)
    @cython.locals(kind=cython.int)
    cpdef received(self, PayloadReader reader)
    cdef _flush_later(self)
    @cython.locals(attachment=Attachment, flags=cython.int, attempts=uint32_t, message=Message,
                   position=uint64_t, consumer=Consumer, delivery=Delivery)
    cdef _deliver(self, PayloadReader reader)
    @cython.locals(attachment=Attachment, flags=cython.int, message_flags=cython.int, attempts=uint32_t,
                   id=uint32_t, place=uint64_t, message=Message)
    cdef _deliver_at(self, PayloadReader reader)
    cdef _return(self, uint64_t position, int how)
    @cython.locals(traffic=QueueTraffic, count=Py_ssize_t)
    cdef _answer_publishes(self, PayloadReader reader, bint is_refused)
