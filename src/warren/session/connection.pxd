cimport cython

from warren.session.base_connection cimport BaseConnection
from warren.session.channel cimport Channel
from warren.session.throttle cimport Throttle
from warren.vhost.vhost cimport VirtualHost
from warren.wire.frames cimport FrameReader

cdef int _HEARTBEAT
cdef int _METHOD
cdef int _WORK_MAX
cdef int _DECLARATION_WORK

cdef class Connection(BaseConnection):
    cdef readonly Throttle throttle
    cdef VirtualHost _vhost
    cdef int _work_max
    cdef list _waiting
    cdef bint _will_close
    cdef bint _is_lost
    cdef object _handshake_driver
    cdef object _consumer_timeouts
    cdef object _closing
    cdef FrameReader _reader
    cdef dict _channels
    cdef Channel _channel

    cpdef receive(self, bytes data, int work=*)
    cpdef process_more(self, int work=*)
    @cython.locals(was_open=bint)
    cdef _take(self, bytes data)
    @cython.locals(reader=FrameReader, number=cython.int, channel=Channel, work=cython.int)
    cdef _process_frames(self)
    @cython.locals(channel=Channel)
    cdef int _handle_other_frame(self, FrameReader reader) except -1
    cdef _forget(self, Channel channel)
