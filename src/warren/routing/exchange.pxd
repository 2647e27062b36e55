cdef class Binding:
    cdef readonly object source
    cdef readonly str key
    cdef readonly object arguments
    cdef readonly object destination
    cdef Py_hash_t _hash

cdef class BindingIndex:
    cdef dict _groups
    cdef readonly Py_ssize_t count

    cpdef bint add(self, key, binding) except -1
    cpdef remove(self, key, binding)
    cpdef get(self, key)
    cpdef Py_ssize_t size(self, key) except -1

cdef class Exchange:
    cdef readonly str name
    cdef readonly object settings
    cdef readonly object random_octets
    cdef public object _alternate
    cdef public BindingIndex _bindings
    cdef public object _watcher
