cdef class Binding:
    cdef readonly object source
    cdef readonly str key
    cdef readonly object arguments
    cdef readonly object destination
    cdef Py_hash_t _hash

cdef class Exchange:
    cdef readonly str name
    cdef readonly object settings
    cdef readonly object random_bytes
    cdef public long long published_in
    cdef public long long published_out
    cdef public object history
    cdef public object _alternate
    cdef public object _bindings
    cdef public object _watcher
