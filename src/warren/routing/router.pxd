from warren.model.message cimport Message
from warren.routing.exchange cimport BindingIndex

cdef int _HAS_HEADERS

cdef class Router:
    cdef readonly str vhost_name
    cdef readonly dict exchanges
    cdef public unsigned long long generation
    cdef BindingIndex _by_destination
    cdef dict _young
    cdef dict _old
    cdef Py_ssize_t _kept

    cpdef tuple route(self, bytes address, Message message)
    cdef tuple _route_uncached(self, bytes address, Message message, list copies)
    cdef _keep(self, bytes address, tuple found)

cdef class Walk:
    cdef dict _exchanges
    cdef list _keys
    cdef Message _message
    cdef readonly bint is_by_key

    cpdef tuple from_exchange(self, start)
    cdef _step(self, exchange)

cpdef str decode_name(bytes octets, Py_ssize_t at)
