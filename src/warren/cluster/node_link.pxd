cimport cython
from libc.stdint cimport int64_t

from warren.cluster.elapsed_time cimport ElapsedTime
from warren.cluster.link_connection cimport LinkConnection
from warren.cluster.link_session cimport LinkSession

cdef object _LASTING
cdef object _CONTROL
cdef object _BULK
cdef object _OF_SESSIONS

@cython.final
cdef class _Channel:
    cdef NodeLink _link
    cdef object _listener
    cdef readonly object purpose
    cdef readonly LinkSession session
    cdef readonly object redial
    cdef public LinkConnection connection
    cdef public int64_t heard_at
    cdef public bint is_dialing
    cdef public bint is_wanted

@cython.final
cdef class NodeLink:
    cdef public object peer
    cdef readonly bint is_dialer
    cdef readonly object hello
    cdef readonly str failure
    cdef readonly bint is_removed_by_peer
    cdef object _counters
    cdef object _dependencies
    cdef ElapsedTime _time
    cdef dict _channels
    cdef int64_t _heard_at
    cdef readonly bint is_silent
    cdef int64_t _ping_at
    cdef int _pings
    cdef readonly bint is_closed

    @cython.locals(channel=_Channel)
    cpdef send(self, purpose, int kind, bytes body)
    @cython.locals(channel=_Channel)
    cpdef bint is_writable(self, purpose) except -1
    @cython.locals(channel=_Channel)
    cpdef receive(self, LinkConnection connection, frame)
    @cython.locals(channel=_Channel)
    cpdef bint has_output(self, LinkConnection connection) except -1
    @cython.locals(channel=_Channel)
    cpdef list take_output(self, LinkConnection connection, Py_ssize_t size_max)
    cdef _handle(self, _Channel channel, frame)
    cdef _heard(self, _Channel channel)
    cdef bint _is_lost(self, _Channel channel) except -1
