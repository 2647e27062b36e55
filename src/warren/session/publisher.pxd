cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.flow.credit cimport PublishCredit
from warren.model.counters cimport Counters
from warren.model.message cimport Message, new_message, new_stored_message
from warren.routing.copies cimport has_copies
from warren.routing.router cimport Route
from warren.session.confirms cimport Confirms
from warren.framing.outbox cimport Outbox
from warren.vhost.vhost cimport VirtualHost
from warren.wire.frames cimport FrameReader
from warren.wire.properties cimport PropertyScan

cdef int _METHOD
cdef int _HEADER
cdef int _BODY
cdef int _REFUSED
cdef int _BEHIND
cdef int _UNAVAILABLE
cdef int _UNROUTED
cdef int _PERSISTENT
cdef int _HAS_HEADERS
cdef int _BY_KEY
cdef int _BY_CHANCE
cdef int _HAS_EXPIRATION
cdef Py_ssize_t _ADDRESS_AT
cdef int _MANDATORY
cdef int _IMMEDIATE
cdef bytes _BODY_END
cdef Py_ssize_t _LIST_AT
cdef Py_ssize_t _HEADER_SIZE_MIN

@cython.final
cdef class ChannelPublisher(Counters):
    cdef VirtualHost _vhost
    cdef Outbox _outbox
    cdef int _channel_number
    cdef object _admit
    cdef uint64_t _admitted_generation
    cdef set _open_exchanges
    cdef bytes _open_exchange
    cdef set _known
    cdef bint _is_admitted
    cdef public object check_properties
    cdef public Confirms confirms
    cdef public object transaction
    cdef public object origin
    cdef readonly bint has_persistent
    cdef public int64_t size_max
    cdef int _due
    cdef bytes _address
    cdef Route _route
    cdef bint _is_special
    cdef bint _is_mandatory
    cdef bytes _property_list
    cdef int64_t _body_size
    cdef int64_t _received
    cdef object _assembled
    cdef PropertyScan _scan
    cdef readonly object positioned
    cdef public PublishCredit behind
    cdef readonly bytes unadmitted
    cdef readonly Message unrouted

    cpdef bint is_idle(self)
    cpdef refuse_method(self)
    @cython.locals(data=bytes, raw='const unsigned char*', start=Py_ssize_t, bits_at=Py_ssize_t,
                   address=bytes, bits=cython.int)
    cpdef method(self, FrameReader reader)
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t, size=Py_ssize_t, body_size=uint32_t,
                   known=bytes)
    cpdef header(self, FrameReader reader)
    @cython.locals(data='const unsigned char*')
    cpdef body(self, FrameReader reader)
    @cython.locals(data='const unsigned char*', size=Py_ssize_t)
    cdef _assemble(self, FrameReader reader)
    @cython.locals(vhost=VirtualHost, message=Message, confirms=Confirms, outcome=cython.int)
    cdef _publish(self, bytes content)
    @cython.locals(confirms=Confirms, is_mandatory=bint, is_lost=bint)
    cdef _take_outcome(self, Message message, int outcome)
    @cython.locals(vhost=VirtualHost, route=Route)
    cdef int _send(self, Message message, Confirms confirms, uint64_t sequence) except -1
    @cython.locals(vhost=VirtualHost, destinations=tuple)
    cdef int _send_specially(self, Message message, Confirms confirms, uint64_t sequence) except -1
    cdef _trace(self, Message message, tuple destinations)
    @cython.locals(has=bint)
    cdef _look_at_properties(self)
    @cython.locals(scan=PropertyScan, flags=cython.int)
    cdef Message _describe(self, Message message)
    @cython.locals(vhost=VirtualHost)
    cdef _count_unrouted(self, bint is_mandatory)
    cdef _return(self, Message message)
    @cython.locals(data=bytes, raw='const unsigned char*', key_at=Py_ssize_t, address=bytes, route=Route,
                   exchange=bytes)
    cdef _take_address(self, FrameReader reader, Py_ssize_t start, Py_ssize_t bits_at)
    @cython.locals(generation=uint64_t, address=bytes, data='const unsigned char*', exchange=bytes)
    cdef _admit_address(self)
    @cython.locals(raw='const unsigned char*')
    cdef _take_properties(self, bytes data, Py_ssize_t start, Py_ssize_t end)
