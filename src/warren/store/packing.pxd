from libc.stdint cimport int64_t, uint32_t

cdef extern from "warren/store/packing.h":
    cpdef bytes pack(
        uint32_t seed, bytearray fixed, bytes references, bytes address, bytes property_list, bytes content,
        bint is_copied
    )
    cpdef int64_t checksum_of(uint32_t seed, bytes data, Py_ssize_t begin, Py_ssize_t end) except -1
