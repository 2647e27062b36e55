cimport cython
from libc.stdint cimport int64_t

from warren.session.channel cimport Channel
from warren.session.outbox cimport Outbox
from warren.session.throttle cimport Throttle
from warren.vhost.vhost cimport VirtualHost
from warren.wire.frames cimport FrameReader

cdef int _HEARTBEAT
cdef int _METHOD
cdef int _WORK_MAX
cdef int _DECLARATION_WORK

cdef class Connection:
    cdef readonly object server
    cdef readonly object peer
    cdef readonly Outbox outbox
    cdef readonly Throttle throttle
    cdef readonly object state
    cdef readonly int64_t connected_at
    cdef readonly object services
    cdef public object login
    cdef readonly object owner
    cdef VirtualHost _vhost
    cdef object _output_listener
    cdef public int64_t changes
    cdef readonly bint has_more
    cdef int _work_max
    cdef list _waiting
    cdef int64_t _now
    cdef bint _is_open
    cdef bint _will_close
    cdef bint _is_lost
    cdef bint _will_resume
    cdef public tuple bytes_counted
    cdef readonly int64_t bytes_received
    cdef readonly int64_t read_count
    cdef readonly int64_t write_count
    cdef public bint is_dirty
    cdef public object history
    cdef object _handshake_driver
    cdef object _closing
    cdef object _deadlines
    cdef FrameReader _reader
    cdef dict _channels
    cdef Channel _channel

    cpdef receive(self, bytes data, int64_t now, int work=*)
    cpdef process_more(self, int64_t now, int work=*)
    @cython.locals(was_open=bint)
    cdef _take(self, bytes data, int64_t now)
    @cython.locals(reader=FrameReader, number=cython.int, channel=Channel, work=cython.int)
    cdef _process_frames(self)
    @cython.locals(channel=Channel)
    cdef int _handle_other_frame(self, FrameReader reader) except -1
    cdef _forget(self, Channel channel)
    cdef _mark_dirty(self)
