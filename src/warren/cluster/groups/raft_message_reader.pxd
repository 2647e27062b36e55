cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.message cimport StoredMessage, new_stored_message
from warren.wire.properties cimport PropertyScan

cdef dict _ENTRY_KINDS
cdef dict _MESSAGE_KINDS
cdef object _NORMAL
cdef object _APPEND
cdef object _SNAPSHOT
cdef object _PROPOSE
cdef uint64_t _NUMBER_END
cdef int _CONTENT_FLAGS
cdef int _ABSENT
cdef int _SAME_ADDRESS
cdef int _SAME_PROPERTIES
cdef int _SAME_PRIORITY
cdef int _SAME_TIME
cdef int _HAS_DIED
cdef int _DIED
cdef int _CONTENT_END

@cython.final
cdef class RaftMessageReader:
    cdef bytes _data
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef PropertyScan _scan
    cdef bytes _address
    cdef bytes _properties
    cdef int _flags
    cdef int _priority
    cdef int64_t _published_at

    @cython.locals(data='const unsigned char*', at=Py_ssize_t, end=Py_ssize_t, value=uint64_t)
    cpdef uint64_t number(self, int size) except? 0
    @cython.locals(at=Py_ssize_t, end=Py_ssize_t)
    cpdef bytes octets(self, Py_ssize_t size)
    @cython.locals(at=Py_ssize_t, size=Py_ssize_t)
    cpdef tuple numbers(self, layout)
    @cython.locals(found=uint64_t)
    cpdef uint64_t index(self) except? 0
    cdef tuple _entries(self, first)
    cdef _entry(self, index)
    cdef _run(self, index)
    cdef _quorum_payload(self, index, tuple runs, bytes commands)
    cpdef begin_contents(self)
    @cython.locals(
        flags=cython.int, size=Py_ssize_t, address=bytes, properties=bytes, body=bytes, data='const unsigned char*',
        message=StoredMessage,
    )
    cpdef StoredMessage content(self)

@cython.locals(data='const unsigned char*', size=Py_ssize_t, key_at=Py_ssize_t)
cdef bytes _checked_address(bytes address)

cdef _kind(number)
