from warren.model.confirm_listener cimport ConfirmListener
from warren.store.segment_log cimport SegmentLog

cdef class GroupRecords(ConfirmListener):
    cpdef prepare(self, SegmentLog log)
    cpdef write(self, SegmentLog log)
    cpdef write_entries(self, SegmentLog log)
