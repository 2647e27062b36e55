cimport cython
from libc.stdint cimport int64_t

from warren.framing.driven_connection cimport DrivenConnection
from warren.framing.output_listener cimport OutputListener
from warren.model.turn cimport Turn
from warren.transport.flusher cimport Flusher

cdef int _HEARTBEAT_SIZE
cdef int _WORK
cdef int _WORK_ALONE
cdef int _ALONE_AFTER_MS

cdef class AmqpProtocol(OutputListener)

@cython.final
cdef class LoopContext:
    cdef readonly Turn turn
    cdef readonly object deadlines
    cdef readonly Flusher flusher
    cdef readonly bytearray octets
    cdef object _large
    cdef object _small
    cdef object _smallest
    cdef readonly object buffer
    cdef readonly int work
    cdef AmqpProtocol _last
    cdef int64_t _alone_since

    @cython.locals(now=int64_t)
    cpdef begin_read(self, AmqpProtocol reader)
    cpdef note_read(self, AmqpProtocol reader, Py_ssize_t size)

@cython.final
cdef class AmqpProtocol(OutputListener):
    cdef object _send_timeout_ms
    cdef object _taken_at
    cdef int64_t _taken
    cdef int64_t _handed
    cdef object _registry
    cdef LoopContext _loop_context
    cdef DrivenConnection _client
    cdef readonly object _transport
    cdef bint _is_marked
    cdef bint _is_paused
    cdef bint _is_reading
    cdef int64_t _seen
    cdef bint _is_closing
    cdef bint _is_busy
    cdef int64_t _unsent
    cdef readonly bint is_half_open
    cdef public bint is_link
    cdef readonly object ends
    cdef public object peer
    cdef public int64_t slot

    @cython.locals(client=DrivenConnection, loop_context=LoopContext, octets='const unsigned char*')
    cpdef buffer_updated(self, Py_ssize_t nbytes)
    @cython.locals(client=DrivenConnection)
    cpdef process_more(self)
    @cython.locals(client=DrivenConnection, chunks=list)
    cpdef flush(self)
    cdef _update_socket(self, DrivenConnection client)
    cdef _watch_for_stall(self, object transport)
    cdef _check_stall_later(self)
    @cython.locals(waiting=int64_t, taken=int64_t)
    cdef bint _is_stalled(self, object transport, int64_t taken_at, int64_t now) except -1
    cdef _be_busy(self)
    cdef _read(self, bint is_reading)
    cdef _finish(self)
    @cython.locals(unsent=int64_t)
    cdef _linger(self, object transport)
    cdef _crash(self)
