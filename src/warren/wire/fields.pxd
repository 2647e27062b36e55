cimport cython
from libc.stdint cimport uint64_t

cdef Py_ssize_t _IDS_SIZE

cdef class FieldType:
    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1
    cdef Py_ssize_t after(self, bytes payload, Py_ssize_t at) except -1
    cdef Py_ssize_t write(self, list values, Py_ssize_t at, list parts) except -1

cdef class Bits(FieldType):
    cdef Py_ssize_t _count
    cdef list _choices

    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1
    cdef Py_ssize_t after(self, bytes payload, Py_ssize_t at) except -1
    @cython.locals(octet=cython.uint, place=Py_ssize_t)
    cdef Py_ssize_t write(self, list values, Py_ssize_t at, list parts) except -1

cdef class Unsigned(FieldType):
    cdef Py_ssize_t _size

    @cython.locals(number=uint64_t, place=Py_ssize_t)
    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1
    cdef Py_ssize_t after(self, bytes payload, Py_ssize_t at) except -1
    cdef Py_ssize_t write(self, list values, Py_ssize_t at, list parts) except -1

cdef class ShortString(FieldType):
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1
    cdef Py_ssize_t after(self, bytes payload, Py_ssize_t at) except -1
    cdef Py_ssize_t write(self, list values, Py_ssize_t at, list parts) except -1

cdef class RawShortString(ShortString):
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1

cdef class LongString(FieldType):
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1
    @cython.locals(size=Py_ssize_t, place=Py_ssize_t)
    cdef Py_ssize_t after(self, bytes payload, Py_ssize_t at) except -1
    cdef Py_ssize_t write(self, list values, Py_ssize_t at, list parts) except -1

cdef class FieldTable(LongString):
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t read(self, bytes payload, Py_ssize_t at, list values) except -1
    cdef Py_ssize_t write(self, list values, Py_ssize_t at, list parts) except -1

@cython.locals(field_type=FieldType, at=Py_ssize_t, values=list)
cpdef list read_all(tuple field_types, bytes payload)
@cython.locals(field_type=FieldType, at=Py_ssize_t)
cpdef bint is_whole(tuple field_types, bytes payload) except -1
@cython.locals(field_type=FieldType, at=Py_ssize_t, parts=list)
cpdef bytes write_all(tuple field_types, bytes ids, list values)
@cython.locals(at=Py_ssize_t)
cpdef assign(object target, tuple names, list values)
