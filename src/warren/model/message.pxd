cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef class Message:
    cdef readonly bytes address
    cdef readonly bytes property_list
    cdef readonly bytes content
    cdef uint32_t _published_high
    cdef uint16_t _published_low
    cdef public uint8_t flags
    cdef public uint8_t priority

@cython.final
cdef class StoredMessage(Message):
    cdef public uint64_t location
    cdef public uint32_t references

@cython.locals(message=Message)
cpdef Message new_message(bytes address, bytes property_list, bytes content, int64_t now)

@cython.locals(message=StoredMessage)
cpdef StoredMessage new_stored_message(bytes address, bytes property_list, bytes content, int64_t now)

@cython.locals(stored=StoredMessage)
cpdef StoredMessage stored_copy(Message message, int flag)

@cython.locals(address=bytes, property_list=bytes, bodiless=StoredMessage)
cpdef StoredMessage without_body(StoredMessage message, StoredMessage like)

cpdef bint has_died(Message message) except -1

cpdef Py_ssize_t body_size_of(Message message)

@cython.locals(high=int64_t)
cpdef int64_t published_at_of(Message message)
