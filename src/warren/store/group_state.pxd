cimport cython
from libc.stdint cimport uint64_t

from warren.model.first_items cimport drop_first
from warren.store.group_record cimport GroupEntry, PositionRun, entry_size

cdef class GroupState:
    cdef readonly uint64_t number
    cdef public uint64_t replica
    cdef public str reason
    cdef public list damage
    cdef public uint64_t since
    cdef public object hard
    cdef public uint64_t commit
    cdef readonly object snapshot
    cdef readonly uint64_t first
    cdef readonly uint64_t term_before
    cdef readonly uint64_t last
    cdef readonly uint64_t last_term
    cdef public list entries
    cdef public Py_ssize_t tail_size
    cdef public dict snapshot_ends
    cdef public dict ends
    cdef public dict offsets
    cdef public set segments

    @cython.locals(offsets=object)
    cpdef uint64_t stored(self, int level, uint64_t position) except? 0
    @cython.locals(offsets=object)
    cpdef uint64_t logical(self, int level, uint64_t stored) except? 0
    @cython.locals(ends=dict, run=PositionRun)
    cpdef bint fits(self, tuple runs) except -1
    @cython.locals(runs=tuple, run=PositionRun, commit=uint64_t)
    cpdef append(self, GroupEntry entry)
    @cython.locals(entry=GroupEntry, run=PositionRun)
    cpdef compact(self, snapshot)
    @cython.locals(place=Py_ssize_t, last=GroupEntry)
    cpdef forget(self, uint64_t index)
