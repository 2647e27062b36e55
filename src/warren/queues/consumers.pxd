cimport cython

from warren.model.ring cimport Ring
from warren.queues.queue cimport Consumer

@cython.final
cdef class ConsumerSet:
    cdef readonly bint is_single_active
    cdef readonly bint is_paused
    cdef bint _is_special
    cdef readonly Consumer active
    cdef readonly Py_ssize_t count
    cdef dict _all
    cdef list _groups

    cpdef add(self, Consumer consumer)
    cpdef bint remove(self, Consumer consumer) except -1
    cpdef bint unpark(self, Consumer consumer) except -1
    @cython.locals(turn=_Turn, consumer=Consumer, ready=Ring)
    cpdef Consumer next(self)
    @cython.locals(active=Consumer)
    cdef Consumer _next_active(self)
    @cython.locals(turn=_Turn)
    cdef _Turn _turn_of(self, Consumer consumer)
    @cython.locals(turn=_Turn)
    cdef _Turn _turn(self, object priority)

@cython.final
cdef class _Turn:
    cdef readonly object priority
    cdef public Py_ssize_t members
    cdef readonly Ring ready
