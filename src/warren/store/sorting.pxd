cimport cython
from warren.model.column cimport Column

@cython.locals(index=Py_ssize_t, first=Py_ssize_t)
cdef list _rows(Column positions)
@cython.locals(at=Py_ssize_t, early=tuple)
cdef tuple _merged(tuple columns, list rows)
@cython.locals(
    positions=Column, locations=Column, sizes=Column,
    merged_positions=Column, merged_locations=Column, merged_sizes=Column,
    left=Py_ssize_t, left_end=Py_ssize_t, right=Py_ssize_t, right_end=Py_ssize_t, index=Py_ssize_t,
)
cdef _merge(tuple columns, tuple early, tuple late, tuple merged)
