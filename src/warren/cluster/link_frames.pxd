cimport cython

cdef object _HEAD
cdef object _COVERED
cdef int _PART
cdef dict _KINDS

@cython.final
cdef class LinkFrameReader:
    cdef bytearray _pending
    cdef Py_ssize_t _needed
    cdef object _allowance

    cdef _check_size(self, Py_ssize_t size)
    cdef _frame(self, int kind, int flags, bytes head, bytes body)
