cimport cython

cdef Py_ssize_t _SIZE_MIN
cdef Py_ssize_t _SHIFT
cdef Py_ssize_t _SIZE_MAX
cdef Py_ssize_t _MASK_MAX
cdef Py_ssize_t _GAPS_MAX

@cython.final
cdef class Ring:
    cdef list _first
    cdef list _behind
    cdef list _last
    cdef list _spare
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _gaps
    cdef Py_ssize_t _head
    cdef Py_ssize_t _limit
    cdef readonly Py_ssize_t count

    @cython.locals(at=Py_ssize_t)
    cpdef void append(self, object item)
    @cython.locals(at=Py_ssize_t, mask=Py_ssize_t)
    cpdef object popleft(self)
    @cython.locals(at=Py_ssize_t)
    cpdef object get(self, Py_ssize_t place)
    @cython.locals(at=Py_ssize_t, block=list)
    cpdef object take(self, Py_ssize_t place)
    cpdef clear(self)
    cdef _use(self, list items, Py_ssize_t count)
    @cython.locals(number=Py_ssize_t)
    cdef list _block(self, Py_ssize_t position)
    @cython.locals(items=list, start=Py_ssize_t)
    cdef Py_ssize_t _make_room(self) except -1
    @cython.locals(items=list, block=list, place=Py_ssize_t)
    cdef _add_block(self)
    @cython.locals(behind=list)
    cdef _pass_block(self)
