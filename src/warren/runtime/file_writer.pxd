cimport cython

@cython.final
cdef class FileJob:
    cdef readonly list steps
    cdef readonly list names
    cdef readonly list replaced
    cdef readonly list opened

    cpdef add(self, str name, tuple step)

@cython.locals(job=FileJob, known=dict)
cpdef FileJob job_of(object steps, int directory, dict files, bint is_synced)

cdef object _file_of(FileJob job, dict known, int directory, str name)

cdef _replace(FileJob job, dict known, str name)

@cython.final
cdef class FileWriter:
    cdef object _loop
    cdef object _thread
    cdef object _jobs

    @cython.locals(job=FileJob)
    cpdef do(self, FileJob job, object done)
    @cython.locals(following=FileJob)
    cpdef _tell(self)
