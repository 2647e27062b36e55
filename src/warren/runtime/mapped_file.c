/* A file that is written through shared memory: a store into a page instead of a system call. What was stored
 * survives the end of the process, whatever ended it, as what `pwrite` was given does: the page is the page cache's.
 *
 * A page that cannot be read or given room when it is first written to raises SIGBUS, where `pwrite` fails. `write`
 * catches the signal and raises OSError.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* One entry of a file, as the compiler stores it with one instruction where the processor has one for 16 bytes: SIGKILL
 * cannot come between its halves. */
typedef long long Entry __attribute__((vector_size(16)));

/* Where a write goes on after a SIGBUS; NULL outside of a write. */
static __thread sigjmp_buf *after_fault;
static struct sigaction before;

static void fault(int number, siginfo_t *info, void *context)
{
    if (after_fault)
        siglongjmp(*after_fault, 1);
    /* Not ours: the access is repeated under the handler of before. */
    (void)info;
    (void)context;
    sigaction(number, &before, NULL);
}

typedef struct {
    PyObject_HEAD
    char *octets;
    Py_ssize_t size;
} MappedFile;

static PyObject *mapped_file_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    int file;
    Py_ssize_t size;
    static char *names[] = {"file", "size", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "in", names, &file, &size))
        return NULL;
    if (size <= 0) {
        PyErr_Format(PyExc_ValueError, "%zd bytes cannot be mapped", size);
        return NULL;
    }
    MappedFile *self = (MappedFile *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->octets = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (self->octets == MAP_FAILED) {
        self->octets = NULL;
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(self);
        return NULL;
    }
    self->size = size;
    return (PyObject *)self;
}

static PyObject *mapped_file_close(MappedFile *self, PyObject *Py_UNUSED(ignored))
{
    if (self->octets)
        munmap(self->octets, (size_t)self->size);
    self->octets = NULL;
    self->size = 0;
    Py_RETURN_NONE;
}

static void mapped_file_dealloc(MappedFile *self)
{
    if (self->octets)
        munmap(self->octets, (size_t)self->size);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* False if the page cannot be written to. */
static int store(char *to, const char *octets, size_t size)
{
    sigjmp_buf here;
    if (sigsetjmp(here, 0)) {
        after_fault = NULL;
        return 0;
    }
    after_fault = &here;
    if (size == sizeof(Entry) && (uintptr_t)to % sizeof(Entry) == 0) {
        Entry entry;
        memcpy(&entry, octets, sizeof entry);
        *(volatile Entry *)to = entry;
    } else {
        memcpy(to, octets, size);
    }
    /* The fault comes before the handler is let go of. */
    __asm__ volatile("" ::: "memory");
    after_fault = NULL;
    return 1;
}

static PyObject *mapped_file_write(MappedFile *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "write takes a place and bytes");
        return NULL;
    }
    Py_ssize_t at = PyLong_AsSsize_t(args[0]), size = PyBytes_GET_SIZE(args[1]);
    if (at == -1 && PyErr_Occurred())
        return NULL;
    if (at < 0 || size > self->size || at > self->size - size) {
        PyErr_Format(PyExc_ValueError, "%zd bytes from byte %zd on are not in a file of %zd bytes", size, at, self->size);
        return NULL;
    }
    if (!store(self->octets + at, PyBytes_AS_STRING(args[1]), (size_t)size)) {
        errno = EIO;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *mapped_file_size(MappedFile *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->size);
}

static PyMethodDef mapped_file_methods[] = {
    {"write", (PyCFunction)(void (*)(void))mapped_file_write, METH_FASTCALL,
     "Write bytes from a place on, all of which must be in the file. OSError if the page cannot be written to."},
    {"close", (PyCFunction)mapped_file_close, METH_NOARGS, "Unmap the file, to which nothing can be written then."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef mapped_file_attributes[] = {
    {"size", (getter)mapped_file_size, NULL, "The bytes that can be written; 0 after `close`.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject mapped_file_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "warren.runtime.mapped_file.MappedFile",
    .tp_doc = "The first `size` bytes of the open file `file`, which is as large; the descriptor may be closed.\n"
              "OSError if the file system does not share memory.",
    .tp_basicsize = sizeof(MappedFile),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = mapped_file_new,
    .tp_dealloc = (destructor)mapped_file_dealloc,
    .tp_methods = mapped_file_methods,
    .tp_getset = mapped_file_attributes,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "warren.runtime.mapped_file",
    .m_doc = "Files that are written through shared memory.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_mapped_file(void)
{
    PyObject *made = PyModule_Create(&module);
    if (!made || PyType_Ready(&mapped_file_type)
        || PyModule_AddObjectRef(made, "MappedFile", (PyObject *)&mapped_file_type)) {
        Py_XDECREF(made);
        return NULL;
    }
    /* Without SA_NODEFER the signal would stay blocked behind the jump. */
    struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &before)) {
        Py_DECREF(made);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    return made;
}
