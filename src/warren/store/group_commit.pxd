cimport cython
from libc.stdint cimport uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.store.store_port cimport StorePort

cdef Py_ssize_t _PENDING_SIZE_MAX

@cython.final
cdef class GroupCommit:
    cdef object _disk
    cdef StorePort _port
    cdef object _source
    cdef bint _is_announced
    cdef readonly bint is_announced_for_later
    cdef Py_ssize_t _pending_size
    cdef bint _is_busy
    cdef list _steps
    cdef readonly object failure
    cdef list _waiting
    cdef list _batch_waiting
    cdef ConfirmListener _asking
    cdef uint64_t _asked_first
    cdef uint64_t _asked_last
    cdef object _on_closed
    cdef bint _is_closed
    cdef bint _is_refused

    cpdef bint has_waiting(self) except -1
    @cython.locals(before=Py_ssize_t)
    cpdef add(self, Py_ssize_t size)
    cpdef announce(self)
    cpdef announce_later(self)
    cpdef confirm(self, ConfirmListener confirmation, uint64_t sequence)
    @cython.locals(confirmation=ConfirmListener, first=uint64_t, last=uint64_t)
    cdef _confirm(self)
    cdef _end_asking(self)
