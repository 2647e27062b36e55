from libc.stdint cimport int64_t

# Some implementations are interpreted: what they set is public.
cdef class DrivenConnection:
    cdef public int64_t changes
    cdef public bint has_more
    cdef public bint is_open

    cpdef receive(self, bytes data, int work=*)
    cpdef process_more(self, int work=*)
    cpdef list take_output(self)
    cpdef output_written(self)
