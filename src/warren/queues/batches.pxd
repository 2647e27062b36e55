cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.model.message cimport Message, published_at_of
from warren.queues.taking_queue cimport TakingQueue
from warren.queues.queue cimport Delivery

@cython.final
cdef class MessageColumns:
    cdef readonly Py_ssize_t count
    cdef readonly int64_t byte_count
    cdef readonly bint has_redelivered
    cdef object _places_array
    cdef object _times_array
    cdef object _kinds_array
    cdef object _ends_array
    cdef int64_t[::1] _places
    cdef int64_t[::1] _times
    cdef uint32_t[::1] _kinds
    cdef uint32_t[::1] _ends
    cdef list _is_redelivered
    cdef list _bodies
    cdef dict _known
    cdef bytes _address
    cdef bytes _property_list
    cdef uint32_t _kind

    cpdef add(self, int64_t place, Message message, bint is_redelivered)
    @cython.locals(count=Py_ssize_t)
    cdef _append(self, int64_t place, Message message, bytes body, bint is_redelivered)
    @cython.locals(byte_count=int64_t, count=Py_ssize_t, delivery=Delivery)
    cpdef Py_ssize_t add_deliveries(
        self, TakingQueue queue, list deliveries, int64_t first, int64_t bytes_max
    ) except -1
    cdef _number_shape(self, Message message)

@cython.locals(byte_count=int64_t, delivery=Delivery)
cpdef int64_t take_batch(TakingQueue queue, list taken, Py_ssize_t count, int64_t bytes_max) except -1
@cython.locals(number=Py_ssize_t, delivery=Delivery, place=int64_t)
cpdef extend_ranges(TakingQueue queue, list deliveries, Py_ssize_t first, list found)
@cython.locals(number=Py_ssize_t, delivery=Delivery)
cpdef acknowledge_batch(TakingQueue queue, list deliveries, Py_ssize_t first, Py_ssize_t end)
