cimport cython

from warren.queues.queue cimport Consumer

cdef Py_ssize_t _LISTED_EMPTY_MAX

@cython.final
cdef class ConsumerSet:
    cdef readonly bint is_single_active
    cdef readonly bint is_paused
    cdef bint _is_special
    cdef readonly Consumer active
    cdef readonly Py_ssize_t count
    cdef object _all
    cdef dict _by_priority
    cdef list _listed
    cdef public object demand_listener

    @cython.locals(turn=_Turn)
    cpdef add(self, Consumer consumer)
    @cython.locals(turn=_Turn)
    cpdef bint remove(self, Consumer consumer) except -1
    cpdef bint unpark(self, Consumer consumer) except -1
    @cython.locals(turn=_Turn, consumer=Consumer, listed=list, at=Py_ssize_t)
    cpdef Consumer next(self)
    @cython.locals(turn=_Turn, consumer=Consumer)
    cpdef bint has_ready(self, object priority_min) except -1
    @cython.locals(active=Consumer)
    cdef Consumer _next_active(self)
    cdef _Turn _turn_of(self, Consumer consumer)
    cdef _append(self, _Turn turn, Consumer consumer)
    cdef Py_ssize_t _place_of(self, _Turn turn) except -1

@cython.final
cdef class _Turn:
    cdef readonly object priority
    cdef Py_ssize_t members
    cdef bint is_listed
    cdef Consumer first

    @cython.locals(first=Consumer, last=Consumer)
    cdef append(self, Consumer consumer)
    @cython.locals(after=Consumer, before=Consumer)
    cdef drop(self, Consumer consumer)
