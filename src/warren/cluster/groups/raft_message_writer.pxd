cimport cython
from libc.stdint cimport int64_t

from warren.model.message cimport StoredMessage, has_died, published_at_of
from warren.store.group_record cimport message_count_of
from warren.store.packing cimport copied, put

cdef bytes _ABSENT
cdef int _BODY_ON_DISK
cdef int _SAME_ADDRESS
cdef int _SAME_PROPERTIES
cdef int _SAME_PRIORITY
cdef int _SAME_TIME
cdef int _HAS_DIED
cdef int _IS_REJECTED
cdef int _IS_FORCED
cdef int _HAS_INDEX
cdef int _HAS_COMMIT
cdef int _HAS_HINT
cdef int _HAS_CONTEXT
cdef int _HAS_ENTRIES
cdef int _HAS_SNAPSHOT
cdef bytearray _MESSAGE_BYTES
cdef bytearray _HEAD_BYTES

@cython.final
cdef class ContentWriter:
    cdef readonly list parts
    cdef readonly Py_ssize_t size
    cdef bytes _address
    cdef bytes _properties
    cdef int _priority
    cdef int64_t _published_at

    cpdef add(self, bytes part)
    @cython.locals(content=bytes)
    cpdef write(self, StoredMessage message)
    @cython.locals(
        head=bytearray, at=Py_ssize_t, flags=cython.int, published_at=int64_t, priority=cython.int, address=bytes,
        properties=bytes, has_address=bint, has_properties=bint,
    )
    cdef _add_head(self, StoredMessage message, Py_ssize_t size)

@cython.locals(writer=ContentWriter, runs=tuple, commands=bytes, count=Py_ssize_t, message=StoredMessage)
cpdef object encode_entry(object entry, object contents)

@cython.locals(head=bytearray, at=Py_ssize_t, context=bytes, flags=cython.int, parts=list)
cpdef list encode_message(group, message, entries=?)
