from libc.stdint cimport int64_t

from warren.queues.queue cimport Consumer, Queue, QueueHost

cdef class VhostQueue(Queue):
    # What a message on its way looks at comes last, so that it lies beside what a kind of queue puts first.
    cdef readonly str name
    cdef readonly str vhost_name
    cdef public object owner
    cdef public object history
    cdef readonly object demand_listener
    cdef public bint is_auto_delete
    cdef public int64_t broker_published_count
    cdef readonly int64_t got_count
    cdef readonly int64_t got_no_ack_count
    cdef readonly int64_t got_empty_count
    cdef readonly int64_t redelivered_count
    cdef readonly int64_t used_at
    cdef readonly bint is_deleted
    cdef readonly object settings
    cdef QueueHost _host
    cdef readonly int64_t acknowledged_count
    cdef readonly int64_t delivered_count
    cdef readonly int64_t unacked_count
    cdef readonly int64_t unacked_bytes
    cdef readonly int64_t published_count
    cdef readonly int64_t delivered_no_ack_count
    cdef public bint is_dirty

    cpdef unpark(self, Consumer consumer)
    cpdef mark_stats_dirty(self)
