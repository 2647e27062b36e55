cimport cython

from warren.model.first_items cimport drop_first
from warren.replication.raft.raft_messages cimport Entry

cdef object _CHANGE

cdef class RaftLog:
    cdef object _storage
    cdef object _trace
    cdef long long _applying_bytes_max
    cdef long long _applying_bytes
    cdef bint _is_applying_paused
    cdef list _batches
    cdef object _changes
    cdef list _entries
    cdef readonly long long applied
    cdef readonly long long applying
    cdef readonly long long commit
    cdef readonly long long in_progress
    cdef readonly bint is_snapshot_in_progress
    cdef readonly long long offset
    cdef readonly object snapshot

    cpdef first_index(self)
    cpdef last_index(self)
    cpdef last_id(self)
    @cython.locals(place=Py_ssize_t)
    cpdef term(self, index)
    cpdef bint matches(self, index, term) except -1
    cpdef bint has_change_to_apply(self) except -1
    cpdef last_unstable(self)
    cpdef entries(self, first, bytes_max)
    @cython.locals(tail=list)
    cpdef slice(self, first, last, bytes_max)
    cpdef take_snapshot(self)
    @cython.locals(place=Py_ssize_t, begin=Entry, first=cython.longlong)
    cpdef append(self, entries)
    @cython.locals(place=Py_ssize_t)
    cpdef append_after(self, previous, entries, commit)
    cpdef append_applied(self, index)
    cpdef commit_to(self, index)
    @cython.locals(place=Py_ssize_t, count=Py_ssize_t)
    cpdef tuple next_unstable(self)
    cpdef next_snapshot(self)
    cpdef hand_over(self)
    cpdef written(self, index, term)
    @cython.locals(first=Entry, last=Entry)
    cpdef commit_written(self, tuple entries)
    cpdef tuple next_committed(self, bint is_unstable_allowed)
    cpdef applicable(self, bint is_unstable_allowed)
    @cython.locals(last=Entry, index=cython.longlong, payloads=cython.longlong, size=cython.longlong)
    cpdef apply_handed_out(self, entries, bint is_unstable_allowed)
    @cython.locals(
        count=Py_ssize_t, last=cython.longlong, size=cython.longlong, payloads=cython.longlong, released=cython.longlong
    )
    cpdef long long has_applied(self, long long index) except -1
    cdef _leave_tail(self, long long index)
    @cython.locals(entry=Entry)
    cdef _note_changes(self, entries)

cpdef entry_bytes(entry)
cpdef entries_bytes(entries)
@cython.locals(entry=Entry, size=cython.longlong)
cpdef long long payload_bytes(entries) except -1
@cython.locals(count=Py_ssize_t)
cdef list _limited(list entries, bytes_max)
