cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.column cimport Column
from warren.model.message cimport StoredMessage, body_size_of
from warren.queues.paged_index cimport PagedIndex
from warren.queues.quorum.batch_codec cimport SettledRun
from warren.store.cursor cimport QueueCursor
from warren.store.group_log cimport GroupLog
from warren.store.group_record cimport PositionRun
from warren.store.message_store cimport MessageStore

cdef int _HAS_EXPIRATION
cdef object _PURGED

@cython.final
cdef class LevelMessages:
    cdef public uint64_t end
    cdef public int64_t byte_count
    cdef readonly PagedIndex index
    cdef public Column expiring

@cython.final
cdef class ReplicaMessages:
    cdef dict _levels
    cdef GroupLog _log
    cdef MessageStore _store
    cdef object _settled
    cdef dict _received
    cdef dict _unsynced
    cdef uint64_t _unsynced_index

    cpdef uint64_t end(self, int level) except? 0
    @cython.locals(
        place=Py_ssize_t, run=PositionRun, messages=LevelMessages, index=PagedIndex, first=uint64_t,
        position=uint64_t, end=uint64_t, message=StoredMessage
    )
    cpdef keep(self, list entered, runs)
    @cython.locals(
        run=SettledRun, messages=LevelMessages, index=PagedIndex, first=uint64_t, position=uint64_t, end=uint64_t
    )
    cpdef forget(self, settled)
    @cython.locals(
        sizes=list, place=Py_ssize_t, run=PositionRun, first=uint64_t, size=int64_t, position=uint64_t,
        message=StoredMessage
    )
    cpdef tuple arrive(self, arrived, runs)
    @cython.locals(
        place=Py_ssize_t, run=PositionRun, messages=LevelMessages, first=uint64_t, position=uint64_t,
        location=uint64_t, locations=list, at=Py_ssize_t
    )
    cpdef enter(self, uint64_t index, runs, sizes)
    @cython.locals(run=SettledRun, positions=Column, locations=Column, size=int64_t)
    cpdef settle(self, settled)
    @cython.locals(
        index=PagedIndex, log=GroupLog, positions=Column, locations=Column, position=uint64_t, location=uint64_t
    )
    cdef tuple _taken(self, int level, uint64_t first, uint64_t count)
    @cython.locals(cursor=QueueCursor, messages=LevelMessages, place=Py_ssize_t)
    cdef _release(self, int level, Column positions, Column locations, int64_t size)
    cdef LevelMessages _level(self, int level)
