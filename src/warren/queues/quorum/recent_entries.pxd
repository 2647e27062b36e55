from libc.stdint cimport int64_t

cdef class RecentEntries:
    cdef int64_t _term_before
    cdef Py_ssize_t _message_count
    cdef object _entries

    cpdef bint has(self, int64_t index) except -1
