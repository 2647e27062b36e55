cimport cython
from cpython.array cimport array

@cython.locals(positions=array, index=Py_ssize_t, first=Py_ssize_t)
cdef list _rows(object positions)
cdef tuple _merged(tuple columns, list rows)
@cython.locals(
    left=Py_ssize_t, left_end=Py_ssize_t, right=Py_ssize_t, right_end=Py_ssize_t, index=Py_ssize_t,
)
cdef _merge(tuple columns, tuple early, tuple late, tuple merged)
