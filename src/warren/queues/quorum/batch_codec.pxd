cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.store.group_record cimport message_count_of

cdef object _SECTION_PACK
cdef object _ENQUEUE_PACK
cdef object _REACH_PACK
cdef object _SETTLE_PACK
cdef object _LEVEL_SHIFT

@cython.locals(parts=list, items=tuple, reaches=tuple, runs=tuple)
cpdef bytes encode(batch)
cdef _add_section(list parts, kind, tuple items, row)
@cython.locals(count=int64_t)
cdef bint _divides(tuple enqueued, tuple runs) except -1
@cython.locals(first=uint64_t, behind=uint64_t, level=uint64_t)
cdef bint _is_in_order(tuple settled) except -1
