cimport cython

from warren.model.value cimport Value

cdef object _NORMAL

@cython.final
@cython.no_gc
cdef class Entry(Value):
    cdef readonly long long term
    cdef readonly long long index
    cdef readonly object kind
    cdef readonly object payload
    cdef public long long size

@cython.locals(entry=Entry)
cpdef Entry new_entry(long long term, long long index, object payload, long long size)
