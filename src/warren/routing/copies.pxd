cdef bytes _CC
cdef bytes _BCC

cpdef bint has_copies(bytes property_list) except -1
