cimport cython


@cython.final
cdef class Flusher:
    cdef object _call_soon
    cdef object _write
    cdef list _dirty
    cdef list _full
    cdef list _busy

    cpdef mark(self, object owner)
    cpdef mark_full(self, object owner)
    cpdef flush_full(self)
    cpdef mark_busy(self, object owner)
    cpdef _process_busy(self)
    cpdef _flush(self)
