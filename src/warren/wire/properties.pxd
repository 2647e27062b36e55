cimport cython
from libc.stdint cimport uint32_t

from warren.wire.table cimport check_table, decode_some, decode_table

cdef unsigned int _CONTENT_TYPE
cdef unsigned int _CONTENT_ENCODING
cdef unsigned int _HEADERS
cdef unsigned int _DELIVERY_MODE
cdef unsigned int _PRIORITY
cdef unsigned int _CORRELATION_ID
cdef unsigned int _REPLY_TO
cdef unsigned int _EXPIRATION
cdef unsigned int _MESSAGE_ID
cdef unsigned int _TIMESTAMP
cdef unsigned int _TYPE
cdef unsigned int _USER_ID
cdef unsigned int _APP_ID
cdef unsigned int _CLUSTER_ID
cdef unsigned int _CONTINUATION
cdef unsigned int _UP_TO_HEADERS
cdef Py_ssize_t _LIST_AT
cdef Py_ssize_t _FLAGS_SIZE
cdef tuple _PROPERTIES

cdef class BasicProperties:
    cdef public object content_type
    cdef public object content_encoding
    cdef public object headers
    cdef public object delivery_mode
    cdef public object priority
    cdef public object correlation_id
    cdef public object reply_to
    cdef public object expiration
    cdef public object message_id
    cdef public object timestamp
    cdef public object type
    cdef public object user_id
    cdef public object app_id
    cdef public object cluster_id

cdef class PropertyScan:
    cdef readonly unsigned int flags
    cdef readonly int delivery_mode
    cdef readonly int priority
    cdef readonly Py_ssize_t headers_at
    cdef readonly Py_ssize_t headers_end
    cdef readonly Py_ssize_t reply_to_at
    cdef readonly Py_ssize_t expiration_at
    cdef readonly Py_ssize_t user_id_at

    @cython.locals(raw='const unsigned char*', at=Py_ssize_t, flags='unsigned int')
    cpdef scan(self, bytes data, Py_ssize_t start, Py_ssize_t end)

    @cython.locals(raw='const unsigned char*', flags='unsigned int')
    cdef Py_ssize_t _scan_up_to_headers(self, bytes data, Py_ssize_t at, Py_ssize_t end) except -1

    cdef void _forget(self) noexcept

@cython.locals(at=Py_ssize_t)
cpdef dict decode_headers(bytes property_list)

@cython.locals(at=Py_ssize_t)
cpdef dict decode_some_headers(bytes property_list, dict wanted)

@cython.locals(data='const unsigned char*', at=Py_ssize_t, end=Py_ssize_t, flags='unsigned int')
cdef Py_ssize_t _headers_at(bytes property_list) except -1

@cython.locals(data='const unsigned char*', end=Py_ssize_t)
cpdef str text_at(bytes header, Py_ssize_t at)

@cython.locals(data='const unsigned char*', at=Py_ssize_t, value_at=Py_ssize_t, flags='unsigned int', flag='unsigned int')
cdef BasicProperties _decoded(bytes header, Py_ssize_t start)

cdef Py_ssize_t _after_string(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1

@cython.locals(size=uint32_t)
cdef Py_ssize_t _after_table(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1

cdef Py_ssize_t _octet(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1
