cimport cython
from libc.stdint cimport int64_t, uint64_t

cdef object _BEGIN_FRAME
cdef object _PART_FRAME
cdef object _OBEYED_FRAME
cdef object _PART
cdef Py_ssize_t _PART_OVERHEAD

@cython.final
cdef class _Part:
    cdef readonly uint64_t number
    cdef readonly int kind
    cdef readonly bint is_last
    cdef readonly object data
    cdef readonly Py_ssize_t size

@cython.final
cdef class LinkSession:
    cdef object _listener
    cdef object _random_bytes
    cdef uint64_t _own
    cdef uint64_t _peers
    cdef object _sent
    cdef object _unsent
    cdef uint64_t _last
    cdef uint64_t _last_sent
    cdef int64_t _kept_size
    cdef int64_t _sent_size
    cdef int64_t _window
    cdef bint _is_full
    cdef uint64_t _obeyed
    cdef list _pieces
    cdef int64_t _pieces_size
    cdef int _pieces_kind
    cdef bint _is_connected
    cdef bint _is_open
    cdef int _begins
    cdef bint _is_begin_due
    cdef bint _is_obeyed_due
    cdef int64_t _untold_size
    cdef readonly int64_t frame_count
    cdef readonly int resumed_count
    cdef readonly int lost_count

    cpdef send(self, int kind, body)
    cpdef receive(self, frame)
    @cython.locals(frames=list, size=Py_ssize_t, part=_Part)
    cpdef list take_output(self, Py_ssize_t size_max)
    cdef _add(self, _Part part)
    cdef bint _is_within_window(self, _Part part) except -1
    @cython.locals(data=bytes, head=bytes, size=Py_ssize_t, number=uint64_t, kind=cython.int)
    cdef _part(self, frame)
    cdef _peer_obeyed(self, bytes body)
    @cython.locals(part=_Part)
    cdef _release(self, parts, uint64_t number)
    cdef _drop_pieces(self)
