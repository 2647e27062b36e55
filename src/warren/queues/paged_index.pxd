cimport cython
from libc.stdint cimport int64_t, uint64_t

from warren.model.column cimport Column
from warren.model.ring cimport Ring

cdef Py_ssize_t _BLOCK_SIZE
cdef Py_ssize_t _GAP_MAX

@cython.final
cdef class IndexBlock:
    cdef readonly uint64_t first
    cdef public Py_ssize_t passed
    cdef readonly Column locations

@cython.final
cdef class PagedIndex:
    cdef readonly Py_ssize_t count
    cdef Ring _blocks
    cdef IndexBlock _last

    @cython.locals(last=IndexBlock, length=Py_ssize_t, gap=Py_ssize_t)
    cpdef append(self, uint64_t position, uint64_t location)
    @cython.locals(block=IndexBlock)
    cpdef uint64_t first_position(self) except? 0
    @cython.locals(block=IndexBlock)
    cpdef uint64_t first_location(self) except? 0
    @cython.locals(block=IndexBlock)
    cpdef pass_first(self)
    @cython.locals(number=Py_ssize_t, begin=int64_t, place=int64_t, block=IndexBlock, locations=Column)
    cpdef list peek(self, int64_t first, Py_ssize_t count)
    @cython.locals(block=IndexBlock, location=uint64_t)
    cpdef object take_some(self, Py_ssize_t count)
    cpdef uint64_t end(self) except? 0
    @cython.locals(block=IndexBlock)
    cpdef bint holds(self, uint64_t position) except -1
    @cython.locals(block=IndexBlock, location=uint64_t)
    cpdef uint64_t take(self, uint64_t position) except? 0
    @cython.locals(
        block=IndexBlock, number=Py_ssize_t, positions=Column, all_locations=Column, locations=Column,
        place=Py_ssize_t, location=uint64_t
    )
    cpdef tuple columns(self)
    @cython.locals(locations=Column)
    cdef _trim(self, IndexBlock block)
    @cython.locals(number=Py_ssize_t, block=IndexBlock)
    cdef IndexBlock _block_of(self, uint64_t position)
    @cython.locals(low=Py_ssize_t, high=Py_ssize_t, middle=Py_ssize_t, block=IndexBlock)
    cdef Py_ssize_t _first_behind(self, uint64_t position) except -1
