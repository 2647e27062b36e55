cimport cython
from libc.stdint cimport uint32_t, uint64_t

from warren.cluster.attachment cimport Attachment
from warren.cluster.home_node cimport HomeNode
from warren.cluster.queue_traffic cimport QueueTraffic
from warren.cluster.replicated.numbered_publishes cimport NumberedPublishes
from warren.cluster.replicated.unsettled_places cimport UnsettledPlaces
from warren.model.message cimport Message
from warren.queues.queue cimport Consumer, Delivery, new_delivery

cdef int _ACCEPTED
cdef int _RETURNED
cdef int _CHANNEL_ENDED

cdef class LeaderTraffic(QueueTraffic):
    cdef object _listener
    cdef uint64_t _run
    cdef HomeNode _home
    cdef readonly bint is_connected
    cdef bint _has_begun
    cdef readonly NumberedPublishes publishes
    cdef readonly UnsettledPlaces unsettled
    cdef readonly dict stamps
    cdef object _last_stamp

    cpdef bint answered(self, Py_ssize_t count, bint is_refused) except -1
    cpdef lost(self)
    @cython.locals(delivery=Delivery, home=HomeNode, consumer=Consumer)
    cpdef deliver(self, Attachment attachment, Message message, uint64_t place, uint32_t attempts)
    cpdef int send(self, Message message) except -1
    @cython.locals(is_new=bint)
    cpdef settle(self, int how, uint64_t place)
