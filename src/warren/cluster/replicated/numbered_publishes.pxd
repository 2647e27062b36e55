cimport cython
from libc.stdint cimport uint64_t

from warren.model.confirm_listener cimport ConfirmListener
from warren.model.message cimport Message, body_size_of

@cython.final
cdef class NumberedPublish:
    cdef readonly Message message
    cdef readonly ConfirmListener listener
    cdef readonly uint64_t sequence
    cdef public list more

    cpdef done(self)
    cpdef refused(self)

cdef class NumberedPublishes(ConfirmListener):
    cdef object _publishes
    cdef Py_ssize_t _refused_count
    cdef readonly Py_ssize_t byte_count
    cdef readonly uint64_t first

    cpdef expect(self, uint64_t sequence)
    cpdef done(self, uint64_t first, uint64_t last)
    cpdef refused(self, uint64_t sequence)
    cpdef add(self, Message message, ConfirmListener listener, uint64_t sequence)
    @cython.locals(publish=NumberedPublish)
    cpdef bint confirm(self, Py_ssize_t count) except -1
    @cython.locals(publish=NumberedPublish)
    cpdef Py_ssize_t refuse(self, Py_ssize_t count) except -1
    @cython.locals(publish=NumberedPublish)
    cdef NumberedPublish _take(self)
