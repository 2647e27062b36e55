/* Columns of what follows from the shapes of messages, as the bytes of Arrow's buffers: without an object of Python's
 * for any of it. shapes.py makes arrays of them, and does the same itself where this is not compiled.
 *
 *     shape │ address: exchange, routing key │ property list: flags u16, property … │
 *
 * Headers that are strings, numbers, true, false or void become text here, as wire/table_json would write them. All
 * others, and strings that are no UTF-8, are left to `others`, which is given the entries of the whole table. Nothing
 * is taken for granted of the bytes: what is cut short is a FrameError.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <string.h>

/* The columns, in the order in which shapes.py asks for them and is given them. */
enum {
    EXCHANGE, ROUTING_KEY, CONTENT_TYPE, CONTENT_ENCODING, CORRELATION_ID, REPLY_TO, EXPIRATION, MESSAGE_ID, TYPE,
    USER_ID, APP_ID, HEADERS_JSON, TEXTS,
    DELIVERY_MODE = TEXTS, PRIORITY, TIMESTAMP, HEADERS, COLUMNS,
    NONE
};

/* How properties follow one another, and how each is written. */
enum kind { TEXT, TABLE, OCTET, SECONDS };
static const struct {
    uint16_t flag;
    enum kind kind;
    int column;
} properties[] = {
    {1 << 15, TEXT, CONTENT_TYPE}, {1 << 14, TEXT, CONTENT_ENCODING}, {1 << 13, TABLE, HEADERS},
    {1 << 12, OCTET, DELIVERY_MODE}, {1 << 11, OCTET, PRIORITY}, {1 << 10, TEXT, CORRELATION_ID},
    {1 << 9, TEXT, REPLY_TO}, {1 << 8, TEXT, EXPIRATION}, {1 << 7, TEXT, MESSAGE_ID}, {1 << 6, SECONDS, TIMESTAMP},
    {1 << 5, TEXT, TYPE}, {1 << 4, TEXT, USER_ID}, {1 << 3, TEXT, APP_ID}, {1 << 2, TEXT, NONE},
};
enum { PROPERTIES = sizeof properties / sizeof *properties };

/* Later ones are none of which Arrow knows. */
static const uint64_t SECONDS_MAX = INT64_MAX / 1000000;
/* Headers of one message that are compared with each other: of more, `others` finds those that come twice. */
enum { HEADERS_MAX = 32 };

/* Octets that grow. */
typedef struct {
    char *data;
    size_t size, room;
} Heap;

/* Values one behind the other: strings with their ends, or numbers, and which are there (a bit each). */
typedef struct {
    Heap data, ends, there;
    Py_ssize_t count, there_count;
} Column;

typedef struct {
    Column columns[COLUMNS];
    /* Of all headers, one behind the other; the column HEADERS says where those of a message end. */
    Column keys, values;
    unsigned wanted;
    PyObject *others;
} Columns;

static void *more_of(Heap *heap, size_t count)
{
    if (!heap->data || heap->room - heap->size < count) {
        size_t room = heap->room + heap->room / 2 + count + 256;
        char *data = PyMem_Realloc(heap->data, room);
        if (!data) {
            PyErr_NoMemory();
            return NULL;
        }
        heap->data = data;
        heap->room = room;
    }
    heap->size += count;
    return heap->data + heap->size - count;
}

static int put(Heap *heap, const void *data, size_t count)
{
    void *at = more_of(heap, count);
    if (!at)
        return -1;
    memcpy(at, data, count);
    return 0;
}

#define PUT(heap, text) put(heap, text, sizeof(text) - 1)

/* Say of the next value whether it is there. */
static int note(Column *column, int is_there)
{
    if (column->count % 8 == 0 && put(&column->there, "", 1))
        return -1;
    if (is_there) {
        column->there.data[column->count / 8] |= (char)(1 << column->count % 8);
        column->there_count++;
    }
    column->count++;
    return 0;
}

static int put_end(Column *column, size_t end)
{
    if (end > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a column has more than 2 GiB");
        return -1;
    }
    int32_t number = (int32_t)end;
    return put(&column->ends, &number, sizeof number);
}

/* What is in the heap behind the value before is the next one. */
static int end_text(Column *column, int is_there)
{
    return note(column, is_there) || put_end(column, column->data.size) ? -1 : 0;
}

static int is_ascii(const uint8_t *data, size_t count)
{
    uint64_t all = 0, eight;
    for (; count >= 8; data += 8, count -= 8) {
        memcpy(&eight, data, 8);
        all |= eight;
    }
    for (; count; data++, count--)
        all |= *data;
    return !(all & 0x8080808080808080u);
}

static int is_utf8(const uint8_t *data, size_t count)
{
    if (is_ascii(data, count))
        return 1;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)count, NULL);
    if (!text) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(text);
    return 1;
}

/* A text, with the sign for it in place of what is no UTF-8. */
static int put_text(Column *column, const uint8_t *data, size_t count)
{
    if (is_ascii(data, count))
        return put(&column->data, data, count) || end_text(column, 1) ? -1 : 0;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)count, "replace");
    if (!text)
        return -1;
    Py_ssize_t size;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    int failed = !utf8 || put(&column->data, utf8, (size_t)size) || end_text(column, 1);
    Py_DECREF(text);
    return failed ? -1 : 0;
}

/* A string of JSON: only what has a meaning there is written otherwise. */
static int put_json(Heap *heap, const uint8_t *data, size_t count)
{
    if (PUT(heap, "\""))
        return -1;
    size_t begin = 0;
    for (size_t at = 0; at < count; at++) {
        uint8_t octet = data[at];
        if (octet >= ' ' && octet != '"' && octet != '\\')
            continue;
        /* What it is, and what it is written as. */
        static const char named[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
        const char *known = octet ? strchr(named, octet) : NULL;
        char escaped[7];
        if (known)
            snprintf(escaped, sizeof escaped, "\\%c", names[known - named]);
        else
            snprintf(escaped, sizeof escaped, "\\u%04x", octet);
        if (put(heap, data + begin, at - begin) || put(heap, escaped, strlen(escaped)))
            return -1;
        begin = at + 1;
    }
    return put(heap, data + begin, count - begin) || PUT(heap, "\"") ? -1 : 0;
}

static int cut_short(void)
{
    PyObject *errors = PyImport_ImportModule("warren.errors");
    PyObject *kind = errors ? PyObject_GetAttrString(errors, "FrameError") : NULL;
    if (kind)
        PyErr_SetString(kind, "content header cut short");
    Py_XDECREF(kind);
    Py_XDECREF(errors);
    return -1;
}

static uint64_t number_at(const uint8_t *at, int size)
{
    uint64_t number = 0;
    while (size--)
        number = number << 8 | *at++;
    return number;
}

/* Octets of a number by its type; 0 if it is none. */
static int number_size(uint8_t type)
{
    switch (type) {
    case 'b': case 'B': return 1;
    case 's': case 'u': return 2;
    case 'I': case 'i': return 4;
    case 'l': case 'L': case 'T': return 8;
    }
    return 0;
}

/* A value as text and as JSON: its size behind the type; 0 if it is for `others`, -1 with an exception. */
static Py_ssize_t put_value(Column *values, Heap *json, const uint8_t *at, const uint8_t *end)
{
    const uint8_t type = *at++;
    if (type == 'S') {
        if (end - at < 4)
            return cut_short();
        size_t size = number_at(at, 4);
        if ((size_t)(end - at - 4) < size)
            return cut_short();
        if (!is_utf8(at + 4, size))
            return 0;
        if (put(&values->data, at + 4, size) || end_text(values, 1) || put_json(json, at + 4, size))
            return -1;
        return 5 + (Py_ssize_t)size;
    }
    if (type == 'V')
        return end_text(values, 0) || PUT(json, "null") ? -1 : 1;
    if (type == 't') {
        if (at == end)
            return cut_short();
        const char *text = *at ? "true" : "false";
        return put(&values->data, text, strlen(text)) || end_text(values, 1) || put(json, text, strlen(text)) ? -1 : 2;
    }
    int size = number_size(type);
    if (!size)
        return 0;
    if (end - at < size)
        return cut_short();
    uint64_t number = number_at(at, size);
    char text[24];
    if (type == 'B' || type == 'u' || type == 'i' || type == 'L' || type == 'T')
        snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    else
        snprintf(text, sizeof text, "%lld", (long long)(int64_t)(number << (64 - 8 * size)) >> (64 - 8 * size));
    char marked[40];
    if (type == 'l')
        snprintf(marked, sizeof marked, "%s", text);
    else
        snprintf(marked, sizeof marked, "{\"$%c\":%s}", type, text);
    if (put(&values->data, text, strlen(text)) || end_text(values, 1) || put(json, marked, strlen(marked)))
        return -1;
    return 1 + size;
}

/* All headers of a message; 1 if they are for `others`, -1 with an exception. */
static int put_headers(Columns *all, const uint8_t *at, const uint8_t *end)
{
    Heap *json = &all->columns[HEADERS_JSON].data;
    const uint8_t *begins[HEADERS_MAX];
    int count = 0;
    if (PUT(json, "{"))
        return -1;
    while (at < end) {
        const uint8_t *key = at + 1;
        size_t size = *at;
        if ((size_t)(end - key) <= size)
            return cut_short();
        if (count == HEADERS_MAX || !is_utf8(key, size))
            return 1;
        for (int known = 0; known < count; known++)
            if (*begins[known] == size && !memcmp(begins[known] + 1, key, size))
                return 1;
        begins[count] = at;
        if ((count++ && PUT(json, ",")) || put(&all->keys.data, key, size) || end_text(&all->keys, 1)
            || put_json(json, key, size) || PUT(json, ":"))
            return -1;
        at = key + size;
        Py_ssize_t taken = put_value(&all->values, json, at, end);
        if (taken <= 0)
            return taken ? -1 : 1;
        at += taken;
    }
    return PUT(json, "}");
}

/* The same by `others`: a list of names and texts, or None for a text, and the JSON. */
static int put_others(Columns *all, const uint8_t *at, const uint8_t *end)
{
    PyObject *answer = PyObject_CallFunction(all->others, "y#", at, (Py_ssize_t)(end - at));
    PyObject *pairs, *json;
    int failed = !answer || !PyArg_ParseTuple(answer, "O!U", &PyList_Type, &pairs, &json);
    for (Py_ssize_t place = 0; !failed && place < PyList_GET_SIZE(pairs); place++) {
        const char *key, *value;
        Py_ssize_t key_size, value_size;
        failed = !PyArg_ParseTuple(PyList_GET_ITEM(pairs, place), "s#z#", &key, &key_size, &value, &value_size)
            || put(&all->keys.data, key, (size_t)key_size) || end_text(&all->keys, 1)
            || (value && put(&all->values.data, value, (size_t)value_size)) || end_text(&all->values, value != NULL);
    }
    if (!failed) {
        Py_ssize_t size;
        const char *text = PyUnicode_AsUTF8AndSize(json, &size);
        failed = !text || put(&all->columns[HEADERS_JSON].data, text, (size_t)size);
    }
    Py_XDECREF(answer);
    return failed ? -1 : 0;
}

/* Forget the values behind the first `count`, which end with the first `size` bytes. */
static void cut(Column *column, Py_ssize_t count, Py_ssize_t there_count, size_t size)
{
    while (column->count > count) {
        column->count--;
        column->there.data[column->count / 8] &= (char)~(1 << column->count % 8);
    }
    column->there_count = there_count;
    column->there.size = (size_t)(count + 7) / 8;
    column->ends.size = (size_t)(count + 1) * sizeof(int32_t);
    column->data.size = size;
}

static int put_table(Columns *all, const uint8_t *at, const uint8_t *end)
{
    Column *keys = &all->keys, *values = &all->values, *json = &all->columns[HEADERS_JSON];
    const Py_ssize_t count = keys->count, there_count = values->there_count;
    const size_t key_size = keys->data.size, value_size = values->data.size, json_size = json->data.size;
    int is_for_others = put_headers(all, at, end);
    if (is_for_others < 0)
        return -1;
    if (is_for_others) {
        cut(keys, count, count, key_size);
        cut(values, count, there_count, value_size);
        json->data.size = json_size;
        if (put_others(all, at, end))
            return -1;
    }
    Column *headers = &all->columns[HEADERS];
    return end_text(json, 1) || note(headers, 1) || put_end(headers, (size_t)keys->count) ? -1 : 0;
}

static int put_number(Column *column, const void *number, size_t size, int is_there)
{
    return put(&column->data, number, size) || note(column, is_there) ? -1 : 0;
}

/* The property at `at`: where it ends; NULL with an exception. */
static const uint8_t *put_property(Columns *all, int place, const uint8_t *at, const uint8_t *end)
{
    const int number = properties[place].column;
    Column *column = number < COLUMNS && all->wanted >> number & 1 ? &all->columns[number] : NULL;
    size_t size = 1;
    switch (properties[place].kind) {
    case TEXT:
        if (at == end || (size_t)(end - at - 1) < *at)
            goto short_one;
        size += *at;
        if (column && put_text(column, at + 1, size - 1))
            return NULL;
        break;
    case TABLE:
        size = 4;
        if (end - at < 4 || (size_t)(end - at - 4) < number_at(at, 4))
            goto short_one;
        size += number_at(at, 4);
        if (all->wanted & (1u << HEADERS | 1u << HEADERS_JSON) && put_table(all, at + 4, at + size))
            return NULL;
        break;
    case OCTET:
        if (at == end)
            goto short_one;
        const int32_t octet = *at;
        if (column && put_number(column, &octet, sizeof octet, 1))
            return NULL;
        break;
    case SECONDS:
        size = 8;
        if (end - at < 8)
            goto short_one;
        const uint64_t seconds = number_at(at, 8);
        const int64_t time = seconds > SECONDS_MAX ? 0 : (int64_t)seconds * 1000000;
        if (column && put_number(column, &time, sizeof time, seconds <= SECONDS_MAX))
            return NULL;
    }
    return at + size;
short_one:
    cut_short();
    return NULL;
}

static int put_address(Columns *all, const uint8_t *at, const uint8_t *end)
{
    for (int column = EXCHANGE; column <= ROUTING_KEY; column++) {
        if (at == end || (size_t)(end - at - 1) < *at)
            return cut_short();
        if (all->wanted >> column & 1 && put_text(&all->columns[column], at + 1, *at))
            return -1;
        at += 1 + *at;
    }
    return 0;
}

/* One shape: all columns, those that it has nothing for with nulls. */
static int put_shape(Columns *all, PyObject *shape, Py_ssize_t count)
{
    const char *address, *list;
    Py_ssize_t address_size, list_size;
    if (!PyArg_ParseTuple(shape, "y#y#", &address, &address_size, &list, &list_size))
        return -1;
    if (put_address(all, (const uint8_t *)address, (const uint8_t *)address + address_size))
        return -1;
    const uint8_t *at = (const uint8_t *)list, *end = at + list_size;
    if (list_size < 2)
        return cut_short();
    const uint64_t flags = number_at(at, 2);
    at += 2;
    for (int place = 0; place < PROPERTIES; place++)
        if (flags & properties[place].flag && !(at = put_property(all, place, at, end)))
            return -1;
    for (int number = 0; number < COLUMNS; number++) {
        Column *column = &all->columns[number];
        if (column->count > count)
            continue;
        static const int64_t nothing = 0;
        int failed = number < TEXTS ? end_text(column, 0)
            : number == HEADERS    ? note(column, 0) || put_end(column, (size_t)all->keys.count)
                                   : put_number(column, &nothing, number == TIMESTAMP ? 8 : 4, 0);
        if (failed)
            return -1;
    }
    return 0;
}

static void forget(Column *column)
{
    PyMem_Free(column->data.data);
    PyMem_Free(column->ends.data);
    PyMem_Free(column->there.data);
}

/* (how many are null, which are there, ends, bytes); None where all are null. */
static PyObject *told(const Column *column)
{
    if (!column->there_count && column->count)
        Py_RETURN_NONE;
    return Py_BuildValue("ny#y#y#", column->count - column->there_count, column->there.data,
                         (Py_ssize_t)column->there.size, column->ends.data, (Py_ssize_t)column->ends.size,
                         column->data.data ? column->data.data : "", (Py_ssize_t)column->data.size);
}

static PyObject *answer_of(Columns *all)
{
    PyObject *answer = PyList_New(COLUMNS + 2);
    for (int number = 0; answer && number < COLUMNS + 2; number++) {
        const Column *column = number < COLUMNS ? &all->columns[number] : number == COLUMNS ? &all->keys : &all->values;
        int is_wanted = all->wanted >> (number < COLUMNS ? number : HEADERS) & 1;
        PyObject *one = is_wanted ? told(column) : Py_NewRef(Py_None);
        if (one)
            PyList_SET_ITEM(answer, number, one);
        else
            Py_CLEAR(answer);
    }
    return answer;
}

static PyObject *decode(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *shapes;
    Columns all = {0};
    if (!PyArg_ParseTuple(arguments, "O!IO", &PyList_Type, &shapes, &all.wanted, &all.others))
        return NULL;
    int failed = put_end(&all.keys, 0) || put_end(&all.values, 0);
    for (int number = 0; !failed && number < COLUMNS; number++)
        failed = number < TEXTS || number == HEADERS ? put_end(&all.columns[number], 0) : 0;
    for (Py_ssize_t count = 0; !failed && count < PyList_GET_SIZE(shapes); count++)
        failed = put_shape(&all, PyList_GET_ITEM(shapes, count), count);
    PyObject *answer = failed ? NULL : answer_of(&all);
    for (int number = 0; number < COLUMNS; number++)
        forget(&all.columns[number]);
    forget(&all.keys);
    forget(&all.values);
    return answer;
}

static PyMethodDef methods[] = {
    {"decode", decode, METH_VARARGS, "Columns of some shapes, those of which the bits are set."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "warren.arrow.shape_columns",
    .m_doc = "Columns of what follows from the shapes of messages.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_shape_columns(void)
{
    return PyModule_Create(&module);
}
