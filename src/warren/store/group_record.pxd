cimport cython
from libc.stdint cimport int64_t

cdef Py_ssize_t _ENTRY_SIZE
cdef Py_ssize_t _RUN_SIZE
cdef object _ENTRY_PACK
cdef object _RUN_PACK
cdef object _LEVEL_SHIFT

@cython.locals(count=int64_t)
cpdef int64_t message_count_of(tuple runs) except -1
cpdef Py_ssize_t entry_size(tuple runs, bytes commands) except -1
@cython.locals(runs=tuple, parts=list)
cpdef bytes encode_entry(group, entry)
