cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message
from warren.queues.local cimport LocalQueue
from warren.queues.queue cimport Consumer, Delivery

cdef int _ACCEPTED
cdef int _HAS_HEADERS

cdef class StreamQueue(LocalQueue):
    cdef object _store
    cdef readonly object log
    cdef bint _is_paused
    cdef dict _readers
    cdef dict _ready
    cdef dict _waiting
    cdef Py_ssize_t _chunk_readers
    cdef dict _watchers
    cdef dict _deferred
    cdef object _offset_header

    cpdef int publish(self, Message message, ConfirmListener confirmation, uint64_t sequence) except -1
    @cython.locals(work_max=int64_t)
    cpdef pump(self)
    cpdef expire(self)
    cpdef Delivery get(self, bint no_ack=*)
    cpdef acknowledge(self, Delivery delivery)
    cpdef requeue(self, Delivery delivery, int reason=*)
    cpdef reject(self, Delivery delivery)
    cpdef consumer_ready(self, Consumer consumer)
    cpdef unpark(self, Consumer consumer)
    @cython.locals(consumer=Consumer, delivery=Delivery)
    cdef _serve(self, object reader, int64_t work_max)
    @cython.locals(message=Message)
    cdef Message _message(self, object chunk, object offset)
