from warren.model.message cimport Message as RoutedMessage
from warren.routing.exchange cimport BindingIndex, Exchange

cdef class Router:
    cdef readonly str vhost_name
    cdef readonly dict exchanges
    cdef public unsigned long long generation
    cdef BindingIndex _by_destination
    cdef dict _young
    cdef dict _old
    cdef Py_ssize_t _kept

    cpdef tuple route(self, bytes address, RoutedMessage message)
    cdef tuple _route_uncached(self, bytes address, message, list copies)
    cdef _keep(self, bytes address, tuple found)

cdef class Walk:
    cdef dict _exchanges
    cdef list _keys
    cdef object _message
    cdef readonly bint is_by_key

    cpdef tuple from_exchange(self, start)
    cdef _step(self, exchange)

cpdef str decode_name(bytes octets, Py_ssize_t at)
