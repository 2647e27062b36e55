cimport cython
from libc.stdint cimport int64_t, uint8_t

from warren.model.message cimport Message, new_message

@cython.final
cdef class LastTransform:
    cdef readonly bint is_dropped
    cdef bytes _address
    cdef bytes _property_list
    cdef bint _is_redelivered
    cdef int64_t _second
    cdef bytes _new_address
    cdef bytes _new_list
    cdef uint8_t _new_flags

    cdef bint applies(self, Message message, bint is_redelivered, int64_t second) except -1
    @cython.locals(changed=Message)
    cdef Message apply(self, Message message, int64_t now)
    @cython.locals(property_list=bytes)
    cdef bint is_new(self, Message message, Message transformed) except -1
    cdef keep(self, Message message, Message transformed, bint is_redelivered, int64_t second)
