cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.message cimport StoredMessage, new_stored_message
from warren.queues.quorum.batch_codec cimport decode
from warren.queues.quorum.raft_storage cimport QuorumPayload, new_quorum_payload
from warren.replication.raft.raft_messages cimport new_entry
from warren.store.group_record cimport message_count_of, new_position_run
from warren.wire.properties cimport PropertyScan

cdef dict _ENTRY_KINDS
cdef dict _MESSAGE_KINDS
cdef object _NORMAL
cdef object _APPEND
cdef object _SNAPSHOT
cdef object _PROPOSE
cdef uint64_t _NUMBER_END
cdef int _LEVEL_SHIFT
cdef uint64_t _POSITIONS
cdef uint64_t _POSITION_MAX
cdef uint64_t _PRIORITY_MAX
cdef Py_ssize_t _ENTRY_HEAD_SIZE
cdef Py_ssize_t _RUN_SIZE
cdef int _CONTENT_FLAGS
cdef int _ABSENT
cdef int _SAME_ADDRESS
cdef int _SAME_PROPERTIES
cdef int _SAME_PRIORITY
cdef int _SAME_TIME
cdef int _HAS_DIED
cdef int _DIED
cdef int _CONTENT_END

@cython.final
cdef class RaftMessageReader:
    cdef bytes _data
    cdef Py_ssize_t _at
    cdef Py_ssize_t _end
    cdef PropertyScan _scan
    cdef bytes _address
    cdef bytes _properties
    cdef int _flags
    cdef int _priority
    cdef int64_t _published_at

    @cython.locals(data='const unsigned char*', at=Py_ssize_t, end=Py_ssize_t, value=uint64_t)
    cpdef uint64_t number(self, int size) except? 0
    @cython.locals(at=Py_ssize_t, end=Py_ssize_t)
    cpdef bytes octets(self, Py_ssize_t size)
    @cython.locals(at=Py_ssize_t, size=Py_ssize_t)
    cpdef tuple numbers(self, layout)
    @cython.locals(found=uint64_t)
    cpdef uint64_t index(self) except? 0
    @cython.locals(
        group=uint64_t, kind=cython.int, to=uint64_t, sender=uint64_t, term=uint64_t, index=uint64_t,
        log_term=uint64_t, commit=uint64_t, hint=uint64_t,
    )
    cpdef tuple message(self)
    @cython.locals(count=int64_t)
    cdef tuple _entries(self, uint64_t first)
    @cython.locals(
        term=uint64_t, kind=cython.int, size=int64_t, commands_size=int64_t, run_count=int64_t, runs=tuple,
        commands=bytes,
    )
    cdef _entry(self, uint64_t index)
    @cython.locals(key=uint64_t, count=uint64_t, level=uint64_t, first=uint64_t, found=list)
    cdef tuple _runs(self, uint64_t index, int64_t run_count)
    @cython.locals(count=int64_t, messages=list, payload=QuorumPayload)
    cdef _quorum_payload(self, uint64_t index, tuple runs, bytes commands)
    cpdef begin_contents(self)
    @cython.locals(
        flags=cython.int, size=Py_ssize_t, address=bytes, properties=bytes, body=bytes, data='const unsigned char*',
        message=StoredMessage,
    )
    cpdef StoredMessage content(self)

@cython.locals(data='const unsigned char*', size=Py_ssize_t, key_at=Py_ssize_t)
cdef bytes _checked_address(bytes address)

cdef _check_place(uint64_t key, uint64_t level, uint64_t position)

cdef _kind(number)
