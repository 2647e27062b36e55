from libc.stdint cimport uint32_t

cdef extern from "warren/store/packing.h":
    cpdef bytes pack(
        uint32_t seed, bytearray fixed, bytes references, bytes address, bytes property_list, bytes content,
        bint is_copied
    )
