cimport cython

from warren.model.value cimport Value

@cython.final
@cython.no_gc
cdef class Entry(Value):
    cdef readonly long long term
    cdef readonly long long index
    cdef readonly object kind
    cdef readonly object payload
    cdef public long long size
