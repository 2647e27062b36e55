cimport cython
from libc.stdint cimport uint32_t

cdef Py_ssize_t _DEPTH_MAX
cdef Py_ssize_t _SIZE_BYTES
cdef unsigned char _VARIABLE
cdef unsigned char _UNKNOWN
cdef unsigned char _STRING
cdef unsigned char _TABLE
cdef unsigned char _ARRAY
cdef unsigned char _VOID
cdef bytes _SIZES
cdef dict _FIXED

cpdef dict decode_table(bytes data, Py_ssize_t start, Py_ssize_t end)
cpdef dict decode_some(bytes data, Py_ssize_t start, Py_ssize_t end, dict wanted)
cpdef check_table(bytes data, Py_ssize_t start, Py_ssize_t end)

@cython.locals(raw='const unsigned char*', at=Py_ssize_t, value_at=Py_ssize_t, table=dict, key=str)
cdef dict _entries(bytes data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t depth)

@cython.locals(raw='const unsigned char*', at=Py_ssize_t, value_at=Py_ssize_t, table=dict, key=str)
cdef dict _some_entries(bytes data, Py_ssize_t start, Py_ssize_t end, dict wanted)

@cython.locals(raw='const unsigned char*', at=Py_ssize_t, value_at=Py_ssize_t, elements=list)
cdef list _elements(bytes data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t depth)

@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t _check_entries(
    const unsigned char* data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t depth) except -1

@cython.locals(at=Py_ssize_t)
cdef Py_ssize_t _check_elements(
    const unsigned char* data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t depth) except -1

@cython.locals(kind='unsigned char', value_end=Py_ssize_t)
cdef Py_ssize_t _check_value(
    const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t depth) except -1

@cython.locals(size=Py_ssize_t, room=Py_ssize_t)
cdef Py_ssize_t _size(const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1

@cython.locals(raw='const unsigned char*', kind='unsigned char')
cdef object _value(bytes data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t depth)

cdef uint32_t _u32(const unsigned char* data, Py_ssize_t at) noexcept

@cython.locals(start=Py_ssize_t)
cdef _append_table(bytearray out, dict table, Py_ssize_t depth)

@cython.locals(start=Py_ssize_t)
cdef _append_array(bytearray out, object elements, Py_ssize_t depth)

@cython.locals(kind=str, data=bytes)
cdef _append_value(bytearray out, object value, Py_ssize_t depth)

cdef str _kind(object value)

cdef bytes _sized(Py_ssize_t size)
