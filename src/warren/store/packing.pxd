from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "warren/store/packing.h":
    cpdef bytes pack(
        uint32_t seed, bytearray fixed, bytes references, bytes address, bytes property_list, bytes content,
        bint is_copied
    )
    cpdef int put(bytearray data, Py_ssize_t at, int size, uint64_t value) except -1
    cpdef bytes copied(bytearray data, Py_ssize_t size)
    cpdef int64_t checksum_of(uint32_t seed, bytes data, Py_ssize_t begin, Py_ssize_t end) except -1
