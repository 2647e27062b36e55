from libc.stdint cimport int64_t, uint32_t, uint64_t

cimport cython
from warren.model.message cimport StoredMessage, new_stored_message, published_at_of
from warren.store.packing cimport checksum_of, copied, pack, put

cdef Py_ssize_t _HEAD_SIZE
cdef Py_ssize_t _REFERENCE_SIZE
cdef Py_ssize_t _RUN_SIZE
cdef Py_ssize_t _GROUP_SIZE
cdef Py_ssize_t _FIXED_SIZE
cdef Py_ssize_t _COPIED_SIZE_MAX
cdef bytearray _FIXED
cdef bytearray _REFERENCE
cdef bytearray _RUN
cdef bytearray _KIND

@cython.locals(fixed=bytearray)
cpdef bytes encode(int kind, bytes body, uint32_t seed)
@cython.locals(data=bytearray)
cpdef bytes encode_run(uint32_t queue, uint64_t first, uint64_t count)
@cython.locals(
    address=bytes, property_list=bytes, content=bytes, fixed=bytearray, is_copied=bint,
)
cpdef encode_message(StoredMessage message, bytes references, uint32_t seed, list chunks)
@cython.locals(parts=Py_ssize_t)
cpdef Py_ssize_t message_record_size(StoredMessage message, bytes references)
@cython.locals(data=bytearray)
cpdef bytes encode_reference(uint32_t queue, uint64_t position)
@cython.locals(source='const unsigned char*', end=Py_ssize_t, checksum=int64_t)
cpdef Py_ssize_t is_intact(bytes data, Py_ssize_t at, uint32_t seed) except -1
@cython.locals(
    source='const unsigned char*', body=Py_ssize_t, address_at=Py_ssize_t, list_at=Py_ssize_t, content_at=Py_ssize_t,
    message=StoredMessage,
)
cpdef StoredMessage decode_message(bytes data, Py_ssize_t at, Py_ssize_t size)
@cython.locals(source='const unsigned char*', content_at=Py_ssize_t)
cpdef bytes decode_body(bytes data, Py_ssize_t at, Py_ssize_t size)
cpdef uint64_t group_size(const unsigned char* data, Py_ssize_t at) noexcept
@cython.locals(key_at=Py_ssize_t, value_at=Py_ssize_t)
cpdef tuple decode_marker(bytes data, Py_ssize_t at, Py_ssize_t size)
cpdef Py_ssize_t first_reference(Py_ssize_t at) noexcept
cpdef Py_ssize_t reference_count(const unsigned char* data, Py_ssize_t at) noexcept
@cython.locals(body=Py_ssize_t, before=Py_ssize_t)
cpdef Py_ssize_t content_size(const unsigned char* data, Py_ssize_t at, Py_ssize_t size) noexcept
cpdef uint32_t uint16(const unsigned char* data, Py_ssize_t at) noexcept
@cython.locals(high=uint32_t)
cpdef uint32_t uint32(const unsigned char* data, Py_ssize_t at) noexcept
@cython.locals(high=uint64_t)
cpdef uint64_t uint64(const unsigned char* data, Py_ssize_t at) noexcept
