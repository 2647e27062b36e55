from warren.session.outbox cimport Outbox

cdef class Throttle:
    cdef Outbox _outbox
    cdef readonly Py_ssize_t held_size
    cdef public str reason
    cdef public bint tells
    cdef readonly bint is_blocked

    cpdef hold_publisher(self)
    cpdef held(self, Py_ssize_t size)
    cpdef released(self, Py_ssize_t size)
