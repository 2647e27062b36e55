cimport cython

cdef object _HEAD
cdef object _COVERED
cdef object _SIZE
cdef int _PART
cdef dict _KINDS

@cython.final
cdef class LinkFrameReader:
    cdef bytearray _pending
    cdef Py_ssize_t _needed
    cdef object _allowance

    cdef Py_ssize_t _complete(self, view) except -1
    cdef Py_ssize_t _size_at(self, view, Py_ssize_t start) except -1
    cdef _frame_at(self, view, Py_ssize_t start)
    cdef _check_size(self, Py_ssize_t size)
    cdef _frame(self, int kind, int flags, bytes head, bytes body)
