cimport cython
from libc.stdint cimport uint32_t, uint64_t

from warren.queues.queue cimport QueueHost
from warren.framing.outbox cimport Outbox
from warren.session.held_frames cimport HeldFrames, settles
from warren.session.publisher cimport ChannelPublisher
from warren.session.subscriber cimport Subscriber
from warren.session.throttle cimport Throttle
from warren.wire.frames cimport FrameReader

cdef int _METHOD
cdef int _HEADER
cdef int _BODY
cdef uint32_t _PUBLISH
cdef uint32_t _ACK
cdef int _ACKNOWLEDGE
cdef int _METHOD_WORK
cdef int _DECLARATION_WORK
cdef Py_ssize_t _METHOD_SIZE
cdef Py_ssize_t _ACK_SIZE

cdef class Channel:
    cdef readonly int number
    cdef readonly bint is_closing
    cdef readonly bint is_closed
    cdef readonly bint is_interrupted
    cdef readonly Subscriber subscriber
    cdef public object history
    cdef QueueHost _host
    cdef Outbox _outbox
    cdef Throttle _throttle
    cdef ChannelPublisher _publisher
    cdef object _publish_retry
    cdef object _rules
    cdef object _consume_handler
    cdef object _declare_handler
    cdef object _run_in_channel
    cdef object _failed
    cdef HeldFrames _held
    cdef bint _holds_settlement
    cdef bint _is_resuming
    cdef bint _is_waiting
    cdef object _waiting
    cdef object _transaction_publishes_max
    cdef uint32_t _method_index

    cpdef handle(self, FrameReader reader)
    @cython.locals(held=HeldFrames, reader=FrameReader, done=Py_ssize_t, size=Py_ssize_t)
    cpdef resume(self)
    cdef _release_held(self, Py_ssize_t size)
    cdef bint _overtakes_held(self, FrameReader reader) except -1
    cdef _handle_guarded(self, FrameReader reader)
    @cython.locals(kind=cython.int, data=bytes, raw='const unsigned char*', at=Py_ssize_t, index=uint32_t, tag=uint64_t)
    cdef _handle(self, FrameReader reader)
    cdef _handle_later(self, FrameReader reader)
    cdef _hold(self, FrameReader reader)

cdef uint32_t _u32(const unsigned char* data, Py_ssize_t at) noexcept
@cython.locals(high=uint32_t, low=uint32_t, wide=uint64_t)
cdef uint64_t _u64(const unsigned char* data, Py_ssize_t at) noexcept
