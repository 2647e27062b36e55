cimport cython

from warren.runtime.file_writer cimport FileJob, FileWriter

@cython.final
cdef class DirectoryDisk:
    cdef object _loop
    cdef object _worker
    cdef FileWriter _writer
    cdef bint _is_writing
    cdef object _on_written
    cdef object _job_ended
    cdef FileJob _job
    cdef object _steps
    cdef object _done
    cdef bint _is_synced
    cdef dict _files
    cdef dict _read_from
    cdef dict _noted
    cdef dict _mapped
    cdef bint _is_mappable
    cdef bint _is_closed
    cdef int _directory

    cpdef note(self, str name, object at, bytes data)
    cdef object _map(self, str name, object end)
    cdef _write_note(self, str name, object at, bytes data)
    @cython.locals(job=FileJob)
    cpdef submit(self, object steps, object done)
    @cython.locals(job=FileJob)
    cpdef _written(self, object end)
