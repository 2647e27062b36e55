cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from warren.model.value cimport Value
from warren.store.group_record cimport message_count_of
from warren.store.packing cimport copied, put
from warren.store.record cimport uint16, uint32, uint64

cdef int _VERSION
cdef int _LEVEL_SHIFT
cdef uint64_t _POSITIONS
cdef Py_ssize_t _SECTION_SIZE
cdef Py_ssize_t _ENQUEUE_SIZE
cdef Py_ssize_t _REACH_SIZE
cdef Py_ssize_t _SETTLE_SIZE
cdef tuple _ITEM_SIZES
cdef int _KINDS_END
cdef int _ENQUEUE
cdef int _REACH
cdef int _RETURN
cdef int _HOLD
cdef int _SETTLE
cdef int _FORGET
cdef int _RETREAT
cdef bytearray _COMMANDS
cdef object _ACKNOWLEDGED

@cython.final
@cython.no_gc
cdef class Enqueue(Value):
    cdef readonly object enqueuer
    cdef readonly uint64_t first
    cdef readonly uint64_t count

@cython.locals(enqueue=Enqueue)
cpdef Enqueue new_enqueue(object enqueuer, uint64_t first, uint64_t count)

@cython.final
@cython.no_gc
cdef class Reach(Value):
    cdef readonly int level
    cdef readonly uint64_t position

@cython.locals(reach=Reach)
cpdef Reach new_reach(int level, uint64_t position)

@cython.final
@cython.no_gc
cdef class SettledRun(Value):
    cdef readonly int level
    cdef readonly uint64_t first
    cdef readonly uint64_t count
    cdef public uint64_t size
    cdef public object reason

@cython.locals(run=SettledRun)
cpdef SettledRun new_settled_run(int level, uint64_t first, uint64_t count, uint64_t size)

@cython.final
@cython.no_gc
cdef class QuorumBatch(Value):
    cdef public tuple runs
    cdef public tuple enqueued
    cdef public tuple reaches
    cdef public tuple returned
    cdef public tuple held
    cdef public tuple settled
    cdef public tuple forgotten
    cdef public tuple retreats

@cython.locals(
    enqueued=tuple, reaches=tuple, settled=tuple, data=bytearray, size=Py_ssize_t, at=Py_ssize_t, level=uint64_t,
    position=uint64_t, numbers=Enqueue, reach=Reach, positions=SettledRun,
)
cpdef bytes encode(QuorumBatch batch)
@cython.locals(batch=QuorumBatch)
cpdef QuorumBatch decode(bytes commands, tuple runs)
cdef Py_ssize_t _encoded_size(QuorumBatch batch) except -1
cdef Py_ssize_t _section_size(tuple items, Py_ssize_t item_size) except -1
cdef Py_ssize_t _put_section(bytearray data, Py_ssize_t at, int kind, Py_ssize_t count) except -1
cdef Py_ssize_t _put_rows(bytearray data, Py_ssize_t at, int kind, list rows) except -1
@cython.locals(
    data='const unsigned char*', end=Py_ssize_t, at=Py_ssize_t, first=Py_ssize_t, version=cython.int, kind=cython.int,
    before=cython.int, count=uint32_t, size=Py_ssize_t,
)
cdef _take_sections(QuorumBatch batch, bytes commands)
cdef Py_ssize_t _item_size(int kind, int version) except -1
@cython.locals(messages=uint32_t)
cdef tuple _enqueued(const unsigned char* data, Py_ssize_t at, uint32_t count)
@cython.locals(key=uint64_t)
cdef tuple _reaches(const unsigned char* data, Py_ssize_t at, uint32_t count)
@cython.locals(key=uint64_t, behind=uint64_t, position=uint64_t, messages=uint32_t, run=SettledRun)
cdef tuple _settled(const unsigned char* data, Py_ssize_t at, uint32_t count)
@cython.locals(count=int64_t, each=Enqueue)
cdef bint _divides(tuple enqueued, tuple runs) except -1
@cython.locals(first=uint64_t, behind=uint64_t, level=uint64_t, run=SettledRun)
cdef bint _is_in_order(tuple settled) except -1
