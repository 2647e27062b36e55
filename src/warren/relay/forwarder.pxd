cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.client.channel cimport ChannelListener, ClientChannel
from warren.framing.outbox cimport Outbox
from warren.model.message cimport Message, published_at_of
from warren.model.turn cimport Turn
from warren.relay.last_transform cimport LastTransform
from warren.relay.tag_queue cimport TagQueue

cdef Py_ssize_t _TRANSFORM_WORK
cdef Py_ssize_t _UNCONFIRMED_MAX
cdef Py_ssize_t _SETTLED_RUN_MAX
cdef Py_ssize_t _SETTLED_RUN_SHARED_MAX

cdef class Forwarder(ChannelListener):
    cdef public object rate_limiter
    cdef public bint reuses_transformed
    cdef public bint is_returning
    cdef public int64_t remaining
    cdef public Py_ssize_t _unconfirmed_max
    cdef readonly object blocked_reason
    cdef readonly int64_t delivered_at
    cdef readonly bytes delivered_properties
    cdef readonly int64_t delivered_count
    cdef readonly int64_t forwarded_count
    cdef readonly int64_t confirmed_count
    cdef readonly int64_t rejected_count
    cdef readonly int64_t dropped_count
    cdef readonly int64_t redelivered_count
    cdef object _listener
    cdef Turn _turn
    cdef bint _is_on_confirm
    cdef bint _is_on_publish
    cdef ClientChannel _source
    cdef object _source_connection
    cdef ClientChannel _destination
    cdef Outbox _destination_outbox
    cdef TagQueue _tags
    cdef int64_t _first
    cdef int64_t _confirmed
    cdef bint _is_continuing
    cdef dict _ahead
    cdef int64_t _progress_at
    cdef uint64_t _settled_tag
    cdef uint64_t _acknowledged_tag
    cdef bint _is_flush_due
    cdef object _waiting
    cdef int64_t _waiting_since
    cdef bint _is_resuming
    cdef int64_t _blocked_since
    cdef bint _is_refused
    cdef int64_t _refused_since
    cdef int64_t _refusal_pause_ms
    cdef bint _is_wake_due
    cdef bint _is_finishing
    cdef LastTransform _last_transform

    cpdef delivered(self, Message message, uint64_t delivery_tag, bint is_redelivered)
    cdef bint _may_publish(self) except -1
    cdef bint _is_within_rate(self, object rate_limiter) except -1
    @cython.locals(transformed=Message)
    cdef _forward(self, Message message, uint64_t delivery_tag, bint is_redelivered)
    @cython.locals(last=LastTransform, transformed=Message, second=int64_t)
    cdef Message _transform(self, Message message, bint is_redelivered)
    cdef _drop(self, uint64_t delivery_tag)
    cpdef settle_published(self, uint64_t sequence, bint is_multiple, bint is_acked)
    @cython.locals(message=Message, delivery_tag=uint64_t, is_redelivered=bint)
    cpdef resume(self)
    cpdef flush(self)
    @cython.locals(tag=uint64_t, count=int64_t)
    cdef _settle_run(self, Py_ssize_t count_max)
    cdef Py_ssize_t _settled_run_max(self) except -1
    cdef _follow_settled(self)
    @cython.locals(tag=uint64_t, sequence=uint64_t)
    cdef _settle_first(self, bint is_acked)
    cdef _accept(self)
    cdef _settle(self, uint64_t delivery_tag)
    cdef _reject(self, uint64_t delivery_tag)

cdef class DestinationListener(ChannelListener):
    cdef Forwarder _forwarder
    cdef object _listener

    cpdef confirmed(self, uint64_t sequence, bint is_multiple, bint is_acked)
