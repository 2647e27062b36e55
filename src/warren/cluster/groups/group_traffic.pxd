cimport cython

from warren.cluster.groups.group_ticks cimport GroupTicks
from warren.cluster.groups.parted_channel cimport PartedChannel
from warren.cluster.groups.raft_message_reader cimport RaftMessageReader
from warren.cluster.groups.replica_outbox cimport ReplicaOutbox
from warren.cluster.groups.replica_place cimport ReplicaPlace
from warren.cluster.groups.snapshot_receiver cimport SnapshotReceiver

cdef object _TICKED
cdef object _HEARTBEATS

@cython.final
cdef class GroupTraffic:
    cdef object _node
    cdef object _links
    cdef object _later
    cdef object _after
    cdef bint _is_tick_due
    cdef dict _places
    cdef dict _outboxes
    cdef dict _bulk
    cdef bint _is_flush_due
    cdef readonly GroupTicks ticks
    cdef readonly object leaders
    cdef object _snapshots
    cdef SnapshotReceiver _received
    cdef dict _early
    cdef dict _earlier
    cdef Py_ssize_t _early_count
    cdef public Py_ssize_t dropped_count

    @cython.locals(place=ReplicaPlace)
    cpdef proposed(self, number)
    @cython.locals(place=ReplicaPlace)
    cpdef send(self, number, messages)
    @cython.locals(reader=RaftMessageReader)
    cpdef received(self, link, purpose, int kind, bytes body)
    cdef _send(self, ReplicaPlace place, message)
    @cython.locals(place=ReplicaPlace)
    cdef _step(self, node, number, message)
    cpdef _flush_later(self)
    @cython.locals(lost=list, outbox=ReplicaOutbox, is_more=bint)
    cdef _flush(self)
    @cython.locals(outbox=ReplicaOutbox)
    cdef PartedChannel _channel(self, node, purpose)
