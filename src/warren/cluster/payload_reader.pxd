cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.message cimport Message, new_message, new_stored_message
from warren.wire.properties cimport PropertyScan

cdef int _SAME_ADDRESS
cdef int _SAME_PROPERTIES
cdef int _HAS_DIED
cdef int _DIED
cdef int _HAS_HEADERS
cdef int _HAS_EXPIRATION
cdef int _PERSISTENT
cdef int _CONTENT_END

@cython.final
cdef class PayloadReader:
    cdef bytes _data
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef bytes _address
    cdef bytes _properties
    cdef int _message_flags
    cdef int _priority
    cdef PropertyScan _scan
    cdef readonly uint64_t generation
    cdef readonly uint64_t index
    cdef readonly str vhost
    cdef readonly Py_ssize_t item_at
    cdef public list targets

    cpdef int next(self) except -1
    @cython.locals(data='const unsigned char*', at=Py_ssize_t, end=Py_ssize_t, value=uint64_t)
    cpdef uint64_t number(self, int size) except? 0
    @cython.locals(data='const unsigned char*', at=Py_ssize_t, end=Py_ssize_t)
    cpdef bytes octets(self, Py_ssize_t size)
    @cython.locals(content=bytes, message=Message)
    cpdef Message delivered(self, int flags, int message_flags, int64_t now)
    @cython.locals(content=bytes, message=Message)
    cpdef Message published(self, int flags, int64_t now, bint has_store)
    @cython.locals(size=Py_ssize_t, content=bytes, data='const unsigned char*')
    cdef bytes _content(self, int flags)
    @cython.locals(scan=PropertyScan, flags=cython.int)
    cdef _take_properties(self, bytes properties)

@cython.locals(data='const unsigned char*', size=Py_ssize_t, key_at=Py_ssize_t)
cdef bytes _checked(bytes address)
