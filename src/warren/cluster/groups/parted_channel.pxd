cimport cython

@cython.final
cdef class PartedChannel:
    cdef object _purpose
    cdef object _find
    cdef object _waiting
    cdef list _parts
    cdef Py_ssize_t _parts_size

    cpdef send(self, int kind, bytes body)
    cpdef continue_sending(self)
    cpdef bytes received(self, int kind, bytes body)
    cpdef lost(self)
    cdef bint _takes_more(self) except -1
