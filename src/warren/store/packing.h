/* What packing.py says, for the compiled build: one allocation for a record, and no call of Python's.
 *
 * The checksum is google-crc32c's, by the C function that its extension module is linked with. Where that cannot be
 * found, as when the library was built from Python alone, its Python function is called.
 */
#ifndef WARREN_STORE_PACKING_H
#define WARREN_STORE_PACKING_H

#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

typedef uint32_t (*warren_extend)(uint32_t checksum, const uint8_t *data, size_t count);

static warren_extend warren_fast_extend;
static PyObject *warren_slow_extend;

/* Find one of the two; -1 with an exception if there is no such library. */
static int warren_find_extend(void)
{
    PyObject *library = PyImport_ImportModule("google_crc32c");
    if (!library)
        return -1;
    warren_slow_extend = PyObject_GetAttrString(library, "extend");
    Py_DECREF(library);
    if (!warren_slow_extend)
        return -1;
    PyObject *extension = PyImport_ImportModule("google_crc32c._crc32c");
    PyObject *path = extension ? PyObject_GetAttrString(extension, "__file__") : NULL;
    void *loaded = path ? dlopen(PyUnicode_AsUTF8(path), RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (loaded)
        warren_fast_extend = (warren_extend)dlsym(loaded, "crc32c_extend");
    Py_XDECREF(path);
    Py_XDECREF(extension);
    PyErr_Clear();
    return 0;
}

/* Go on with `*checksum` over `count` bytes; -1 with an exception. */
static int warren_checksum(uint32_t *checksum, const char *data, Py_ssize_t count)
{
    if (!warren_slow_extend && warren_find_extend())
        return -1;
    if (warren_fast_extend) {
        *checksum = warren_fast_extend(*checksum, (const uint8_t *)data, (size_t)count);
        return 0;
    }
    PyObject *answer = PyObject_CallFunction(warren_slow_extend, "Iy#", *checksum, data, count);
    if (!answer)
        return -1;
    *checksum = (uint32_t)PyLong_AsUnsignedLong(answer);
    Py_DECREF(answer);
    return PyErr_Occurred() ? -1 : 0;
}

/* Over `bytes` from `begin` to before `end`; -1 with an exception. */
static inline int64_t checksum_of(uint32_t seed, PyObject *data, Py_ssize_t begin, Py_ssize_t end)
{
    return warren_checksum(&seed, PyBytes_AS_STRING(data) + begin, end - begin) ? -1 : (int64_t)seed;
}

static inline char *warren_put(char *at, const char *data, Py_ssize_t count)
{
    memcpy(at, data, (size_t)count);
    return at + count;
}

static inline char *warren_put_uint32(char *at, uint32_t number)
{
    const char data[4] = {(char)(number >> 24), (char)(number >> 16), (char)(number >> 8), (char)number};
    return warren_put(at, data, 4);
}

/* Write `value` at `at` as an integer of `size` bytes, big-endian; -1 with an exception if there is no room. */
static inline int put(PyObject *data, Py_ssize_t at, int size, uint64_t value)
{
    if (at < 0 || at + size > PyByteArray_GET_SIZE(data) || (size < 8 && value >> (8 * size))) {
        PyErr_Format(PyExc_OverflowError, "%llu in %d bytes from %zd on, of %zd", (unsigned long long)value, size, at,
                     PyByteArray_GET_SIZE(data));
        return -1;
    }
    char *to = PyByteArray_AS_STRING(data) + at;
    for (int place = size - 1; place >= 0; place--) {
        to[place] = (char)value;
        value >>= 8;
    }
    return 0;
}

/* The first `size` bytes of `data`, or all if there are fewer. */
static inline PyObject *copied(PyObject *data, Py_ssize_t size)
{
    const Py_ssize_t there = PyByteArray_GET_SIZE(data);
    return PyBytes_FromStringAndSize(PyByteArray_AS_STRING(data), size < there ? size : there);
}

static inline PyObject *pack(uint32_t seed, PyObject *fixed, PyObject *references, PyObject *address,
                             PyObject *property_list, PyObject *content, int is_copied)
{
    enum { HEAD = 8 };
    const Py_ssize_t content_size = PyBytes_GET_SIZE(content);
    const Py_ssize_t rest = PyByteArray_GET_SIZE(fixed) + PyBytes_GET_SIZE(references) + PyBytes_GET_SIZE(address)
        + PyBytes_GET_SIZE(property_list) + (is_copied ? content_size : 0);
    PyObject *record = PyBytes_FromStringAndSize(NULL, HEAD + rest);
    if (!record)
        return NULL;
    char *begin = PyBytes_AS_STRING(record);
    char *at = begin + HEAD;
    at = warren_put(at, PyByteArray_AS_STRING(fixed), PyByteArray_GET_SIZE(fixed));
    at = warren_put(at, PyBytes_AS_STRING(references), PyBytes_GET_SIZE(references));
    at = warren_put(at, PyBytes_AS_STRING(address), PyBytes_GET_SIZE(address));
    at = warren_put(at, PyBytes_AS_STRING(property_list), PyBytes_GET_SIZE(property_list));
    if (is_copied)
        warren_put(at, PyBytes_AS_STRING(content), content_size);
    uint32_t checksum = seed;
    if (warren_checksum(&checksum, begin + HEAD, rest)
        || (!is_copied && warren_checksum(&checksum, PyBytes_AS_STRING(content), content_size))) {
        Py_DECREF(record);
        return NULL;
    }
    /* The kind, the first byte behind the head, is not counted. */
    const Py_ssize_t size = rest - 1 + (is_copied ? 0 : content_size);
    warren_put_uint32(warren_put_uint32(begin, (uint32_t)size), checksum);
    return record;
}

#endif
