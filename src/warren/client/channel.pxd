cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.framing.outbox cimport Outbox
from warren.model.message cimport Message
from warren.model.turn cimport Turn
from warren.wire.frames cimport FrameReader
from warren.wire.properties cimport PropertyScan

cdef int _METHOD
cdef int _HEADER
cdef int _BODY
cdef int64_t _SIZE_MAX
cdef int _HAS_HEADERS
cdef PropertyScan _scan
cdef int _NOTHING
cdef int _DELIVERY
cdef int _RETURN
cdef uint32_t _DELIVER
cdef uint32_t _ACK
cdef uint32_t _NACK
cdef Py_ssize_t _CONFIRM_SIZE
cdef Py_ssize_t _DELIVER_SIZE_MIN
cdef Py_ssize_t _LIST_AT
cdef Py_ssize_t _HEADER_SIZE_MIN

cdef class ChannelListener:
    cpdef delivered(self, Message message, uint64_t delivery_tag, bint is_redelivered)
    cpdef confirmed(self, uint64_t sequence, bint is_multiple, bint is_acked)

@cython.final
cdef class ClientChannel:
    cdef readonly bint is_open
    cdef readonly object error
    cdef readonly uint64_t sequence
    cdef public Py_ssize_t extra_work
    cdef int _number
    cdef Outbox _outbox
    cdef Turn _turn
    cdef ChannelListener _listener
    cdef object _pending
    cdef int _due
    cdef bint _is_body
    cdef object _method
    cdef uint64_t _delivery_tag
    cdef bint _is_redelivered
    cdef bytes _address
    cdef bytes _property_list
    cdef bint _has_headers
    cdef int64_t _body_size
    cdef int64_t _received
    cdef list _parts
    cdef bytes _before
    cdef Py_ssize_t _before_size
    cdef bytes _tag_head

    @cython.locals(size=Py_ssize_t)
    cpdef uint64_t publish(self, Message message, bint is_mandatory=*) except? 0
    cpdef acknowledge(self, uint64_t delivery_tag, bint is_multiple)
    cpdef reject(self, uint64_t delivery_tag, bint is_multiple, bint is_requeued)
    cpdef Py_ssize_t handle_run(self, FrameReader reader, Py_ssize_t work) except -1
    cdef _handle(self, FrameReader reader)
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t, size=Py_ssize_t, index=uint32_t,
                   sequence=uint64_t)
    cdef _receive_method(self, FrameReader reader)
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t, end=Py_ssize_t,
                   address_at=Py_ssize_t, key_at=Py_ssize_t, known=bytes)
    cdef _receive_delivery(self, FrameReader reader)
    @cython.locals(data=bytes, raw='const unsigned char*', at=Py_ssize_t, size=Py_ssize_t, body_size=uint32_t,
                   known=bytes)
    cdef _receive_header(self, FrameReader reader)
    @cython.locals(data=bytes)
    cdef _receive_body(self, FrameReader reader)
    cdef _assemble(self, FrameReader reader)
    @cython.locals(due=cython.int, message=Message)
    cdef _content(self, bytes content)

@cython.locals(number=uint64_t, place=Py_ssize_t)
cdef uint64_t _read_number(const unsigned char* data, Py_ssize_t at) noexcept

cdef bint _scanned_headers(bytes property_list) except -1
