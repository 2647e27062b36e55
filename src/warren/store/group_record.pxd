cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.value cimport Value
from warren.store.packing cimport copied, put

cdef Py_ssize_t _ENTRY_SIZE
cdef Py_ssize_t _RUN_SIZE
cdef int _LEVEL_SHIFT
cdef uint64_t _POSITIONS
cdef bytearray _HEAD

@cython.final
@cython.no_gc
cdef class PositionRun(Value):
    cdef readonly int level
    cdef readonly uint64_t first
    cdef readonly uint64_t count

@cython.locals(run=PositionRun)
cpdef PositionRun new_position_run(int level, uint64_t first, uint64_t count)

@cython.final
@cython.no_gc
cdef class GroupEntry(Value):
    cdef readonly uint64_t index
    cdef readonly uint64_t term
    cdef readonly uint64_t commit
    cdef readonly int kind
    cdef public tuple runs
    cdef public bytes commands

@cython.locals(entry=GroupEntry)
cpdef GroupEntry new_group_entry(uint64_t index, uint64_t term, uint64_t commit, int kind)

@cython.locals(count=int64_t, run=PositionRun)
cpdef int64_t message_count_of(tuple runs) except -1
cpdef Py_ssize_t entry_size(tuple runs, bytes commands) except -1
@cython.locals(
    runs=tuple, run=PositionRun, at=Py_ssize_t, size=Py_ssize_t, head=bytearray, level=uint64_t, first=uint64_t
)
cpdef bytes encode_entry(uint64_t group, GroupEntry entry)
