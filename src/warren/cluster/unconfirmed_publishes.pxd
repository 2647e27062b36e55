cimport cython
from libc.stdint cimport uint64_t

from warren.model.confirm_listener cimport ConfirmListener

@cython.final
cdef class PublishRun:
    cdef readonly ConfirmListener listener
    cdef public uint64_t first
    cdef public uint64_t end

@cython.final
cdef class UnconfirmedPublishes:
    cdef readonly Py_ssize_t count
    cdef object _runs
    cdef PublishRun _last

    @cython.locals(last=PublishRun)
    cpdef add(self, ConfirmListener listener, uint64_t sequence)
    @cython.locals(run=PublishRun, first=uint64_t, done=Py_ssize_t)
    cpdef confirm(self, Py_ssize_t count)
    @cython.locals(run=PublishRun, sequence=uint64_t)
    cpdef refuse(self, Py_ssize_t count)
    cdef _pass(self, PublishRun run, Py_ssize_t count)
