cimport cython

from warren.model.message cimport Message
from warren.routing.exchange cimport Binding, Exchange
from warren.wire.properties cimport decode_some_headers

cdef int _HAS_HEADERS
cdef object _PRESENT

cdef class HeaderIndex
cdef class Rule

cdef class HeadersExchange(Exchange):
    cdef dict _rules
    cdef readonly dict _index
    cdef readonly dict _wanted
    cdef Rule _always
    cdef unsigned long long _turn

    @cython.locals(found=list, headers=dict, header_index=HeaderIndex)
    cpdef route(self, str routing_key, Message message)
    cdef _try(self, object filed, dict headers, list found)
    cdef _try_one(self, Rule rule, dict headers, list found)
    cdef _take(self, Rule rule, list found)
    @cython.locals(header_index=HeaderIndex)
    cdef _add_to_index(self, Rule rule)

@cython.final
cdef class HeaderIndex:
    cdef readonly object present
    cdef readonly dict by_value

    cpdef add(self, object value, Rule rule)
    cpdef remove(self, object value, Rule rule)
    cpdef Py_ssize_t size(self, object value) except -1
    cpdef bint is_empty(self) noexcept
    cdef object _get(self, object value)
    cdef _put(self, object value, object filed)

@cython.final
cdef class Rule:
    cdef readonly bint is_any
    cdef readonly object facts
    cdef readonly object bindings
    cdef object _place
    cdef tuple _others
    cdef unsigned long long turn
    cdef Py_hash_t _hash

    cpdef add(self, Binding binding)
    cpdef remove(self, Binding binding)
    cpdef places(self)
    cdef bint is_met_by(self, dict headers) except -1

cpdef object comparable(object value)
