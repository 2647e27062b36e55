cimport cython
from libc.stdint cimport uint32_t, uint64_t

from warren.model.message cimport Message
from warren.store.packing cimport copied, put

cdef int _SAME_ADDRESS
cdef int _SAME_PROPERTIES
cdef int _SAME_QUEUES
cdef int _PUBLISH
cdef int _SETTLE
cdef int _DELIVER
cdef int _DELIVER_AT
cdef int _SETTLE_AT
cdef uint32_t _PLACES_MAX
cdef Py_ssize_t _TARGETS_MAX
cdef Py_ssize_t _BATCH_SIZE
cdef Py_ssize_t _BATCH_PIECES
cdef int _NONE
cdef bytearray _HEAD_BYTES

@cython.final
cdef class PayloadWriter:
    cdef readonly Py_ssize_t size
    cdef list _parts
    cdef bytes _address
    cdef bytes _properties
    cdef Message _message
    cdef int _flags
    cdef uint64_t _queue
    cdef list _more
    cdef uint64_t _sole_queue
    cdef uint64_t _run_queue
    cdef int _run_how
    cdef uint64_t _run_first
    cdef uint32_t _run_count

    cpdef publish(self, Message message, uint64_t queue, int flags)
    cpdef settle(self, int how, uint64_t number)
    @cython.locals(count=uint32_t)
    cpdef bint settle_at(self, uint64_t queue, int how, uint64_t place) except -1
    @cython.locals(head=bytearray)
    cpdef deliver(self, Message message, uint32_t consumer, uint32_t attempts, int flags)
    @cython.locals(head=bytearray, flags=cython.int)
    cpdef deliver_at(self, Message message, uint32_t consumer, uint32_t attempts, uint64_t place)
    cpdef bint is_empty(self)
    cpdef bint is_full(self)
    cpdef bytes take(self, bytes head)
    cdef _add(self, bytes part)
    @cython.locals(head=bytearray)
    cdef _end(self)
    @cython.locals(head=bytearray, at=Py_ssize_t)
    cdef _end_run(self)
    @cython.locals(head=bytearray, more=list, flags=cython.int, is_same=bint)
    cdef _end_message(self, Message message)
    @cython.locals(flags=cython.int, address=bytes, properties=bytes)
    cdef int _shared(self, Message message) except -1
    @cython.locals(content=bytes, parts=list, address=bytes, properties=bytes)
    cdef _add_message(self, bytearray head, Py_ssize_t at, Message message, int flags)
