cimport cython

@cython.final
cdef class Ring:
    cdef list _items
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _head
    cdef readonly Py_ssize_t count

    cpdef void append(self, object item)
    @cython.locals(head=Py_ssize_t)
    cpdef object popleft(self)
    cpdef object get(self, Py_ssize_t place)
    @cython.locals(at=Py_ssize_t)
    cpdef object take(self, Py_ssize_t place)
    @cython.locals(items=list, head=Py_ssize_t, behind=Py_ssize_t)
    cdef void _resize(self, Py_ssize_t capacity)
