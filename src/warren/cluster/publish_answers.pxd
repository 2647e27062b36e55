from libc.stdint cimport uint64_t

from warren.model.confirm_listener cimport ConfirmListener

cdef class PublishAnswers(ConfirmListener):
    cdef object _changed
    cdef bint _is_told
    cdef readonly uint64_t last
    cdef uint64_t _answered
    cdef uint64_t _run_first
    cdef uint64_t _run_end
    cdef dict _others
    cdef set _refused

    cpdef uint64_t next(self) except 0
    cpdef expect(self, uint64_t sequence)
    cpdef done(self, uint64_t first, uint64_t last)
    cpdef refused(self, uint64_t sequence)
    cpdef refuse(self, uint64_t sequence)
    cdef _tell(self)
