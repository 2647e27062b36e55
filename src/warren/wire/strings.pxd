cdef str _ERRORS

cpdef str decode_text(bytes data)
cpdef bytes encode_text(text)
cpdef bytes encode_short_string(text)
cpdef bytes encode_long_string(text)
