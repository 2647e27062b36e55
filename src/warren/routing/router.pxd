cimport cython

from warren.model.message cimport Message

cdef int _HAS_HEADERS

cdef class Route
cdef class Walk

cdef class Router:
    cdef readonly str vhost_name
    cdef readonly dict exchanges
    cdef public unsigned long long generation
    cdef object _by_destination
    cdef dict _young
    cdef dict _old
    cdef Py_ssize_t _kept

    @cython.locals(route=Route)
    cpdef Route known(self, bytes address)
    @cython.locals(route=Route)
    cpdef tuple route(self, bytes address, Message message)
    @cython.locals(walk=Walk, found=tuple)
    cdef tuple _walk(self, bytes address, Message message, list copies)
    cdef _keep(self, Route route)

@cython.final
cdef class Route:
    cdef readonly bytes address
    cdef readonly object sole
    cdef readonly tuple destinations

cdef class Walk:
    cdef dict _exchanges
    cdef list _keys
    cdef Message _message
    cdef readonly bint is_by_key

    cpdef tuple from_exchange(self, start)
    cdef _step(self, exchange)

cpdef str decode_name(bytes octets, Py_ssize_t at)
