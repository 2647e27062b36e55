cimport cython

from warren.store.store_port cimport StorePort

cdef double _SETTLED_S
cdef double _SETTLED_EARLY_S

@cython.final
cdef class LoopStorePort(StorePort):
    cdef object _loop
    cdef str _name
    cdef object _on_failed
    cdef str _when_full
    cdef public object store
    cdef public object credit
    cdef public object note_failure
    cdef bint _is_behind
    cdef bint _is_settling
    cdef double _settle_at_s
    cdef public bint is_transient
    cdef readonly bint is_full
    cdef public bint is_over
    cdef readonly object failure

    cpdef _commit(self)
    @cython.locals(left_s=double)
    cpdef _settle(self)
    cdef _fail(self, object error)
