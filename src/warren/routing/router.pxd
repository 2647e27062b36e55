cimport cython

from warren.model.message cimport Message
from warren.routing.copies cimport has_copies
from warren.routing.exchange cimport Exchange

cdef int _HAS_HEADERS
cdef int _BY_CHANCE
cdef int _BY_KEY

cdef class Route
cdef class Walk

cdef class Router:
    cdef readonly str vhost_name
    cdef readonly dict exchanges
    cdef public unsigned long long generation
    cdef public object changed
    cdef object _by_destination
    cdef dict _copy_targets
    cdef dict _young
    cdef dict _old
    cdef Py_ssize_t _kept

    @cython.locals(route=Route)
    cpdef Route known(self, bytes address)
    cpdef tuple route(self, bytes address, Message message)
    @cython.locals(route=Route)
    cpdef Route find(self, bytes address, Message message)
    @cython.locals(walk=Walk)
    cdef Route _walk(self, bytes address, Message message, list copies, bint is_published)
    @cython.locals(found=tuple)
    cdef tuple _walked(self, Exchange exchange, Walk walk, bint is_published)
    cdef _keep(self, Route route)

@cython.final
cdef class Route:
    cdef readonly bytes address
    cdef readonly Exchange source
    cdef readonly object sole
    cdef readonly tuple destinations
    cdef readonly int decides

cdef class Walk:
    cdef dict _exchanges
    cdef list _keys
    cdef readonly Message message
    cdef readonly int decides
    cdef readonly list keepers

    @cython.locals(exchange=Exchange)
    cpdef tuple from_exchange(self, start)
    @cython.locals(decides=cython.int)
    cdef _step(self, Exchange exchange)

cpdef str decode_name(bytes data, Py_ssize_t at)
