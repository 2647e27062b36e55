cdef bytes _VERSION
cdef Py_ssize_t _ROWS_MAX
