/* A thread that writes and syncs, and never takes the interpreter's lock: the loop, which holds it nearly all of
 * the time, need not stop for each of the four calls that a job makes. runtime/writer.py hands it one job at a time.
 *
 *     loop                                           thread
 *     submit(): notes where the bytes lie ── asked ──▶ pwritev … fdatasync
 *     readable ◀── told (eventfd) ─────────────────── notes the error
 *     result(): lets go of the bytes
 *
 * What belongs to the job is the loop's before `asked` and after `told`, and the thread's between them.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct {
    PyObject_HEAD
    pthread_t thread;
    /* Set before `asked` is: the thread ends without a job that it has not begun. */
    int is_running;
    sem_t asked;
    int told;
    /* The job, while there is one: `chunks` is a list of bytes, and `parts` is where they lie. */
    PyObject *chunks;
    struct iovec *parts;
    Py_ssize_t part_count;
    Py_ssize_t part_room;
    int file;
    off_t at;
    int is_synced;
    int error;
} WriteThread;

/* Write all parts behind one another; 0, or the number of the error. */
static int write_parts(WriteThread *self)
{
    struct iovec *part = self->parts, *end = part + self->part_count;
    off_t at = self->at;
    while (part < end) {
        int count = end - part < IOV_MAX ? (int)(end - part) : IOV_MAX;
        ssize_t written = pwritev(self->file, part, count, at);
        if (written < 0)
            return errno;
        if (!written)
            return EIO;
        at += written;
        for (; part < end && (size_t)written >= part->iov_len; part++)
            written -= (ssize_t)part->iov_len;
        if (written) {
            part->iov_base = (char *)part->iov_base + written;
            part->iov_len -= (size_t)written;
        }
    }
    return 0;
}

static void *serve(void *argument)
{
    WriteThread *self = argument;
    const uint64_t one = 1;
    for (;;) {
        while (sem_wait(&self->asked))
            ;
        if (!self->is_running)
            return NULL;
        self->error = write_parts(self);
        if (!self->error && self->is_synced && fdatasync(self->file))
            self->error = errno;
        /* An eventfd that counts to one at most takes all eight bytes at once. */
        if (write(self->told, &one, sizeof one) != sizeof one)
            abort();
    }
}

/* Without signals: Python's own threads take them, and no call here is interrupted. */
static int start(WriteThread *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&self->thread, NULL, serve, self);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static PyObject *refuse(int error)
{
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *write_thread_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char *name;
    static char *names[] = {"name", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s", names, &name))
        return NULL;
    WriteThread *self = (WriteThread *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->told < 0 || sem_init(&self->asked, 0, 0)) {
        Py_DECREF(self);
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    self->is_running = 1;
    int error = start(self);
    if (error) {
        Py_DECREF(self);
        return refuse(error);
    }
    pthread_setname_np(self->thread, name);
    /* The thread holds on to it until it is closed. */
    Py_INCREF(self);
    return (PyObject *)self;
}

static void write_thread_dealloc(WriteThread *self)
{
    if (self->told >= 0)
        close(self->told);
    PyMem_Free(self->parts);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Where the bytes of `chunks` lie; -1 with an exception. */
static int note_parts(WriteThread *self, PyObject *chunks)
{
    Py_ssize_t count = PyList_GET_SIZE(chunks);
    if (count > self->part_room) {
        struct iovec *parts = PyMem_Realloc(self->parts, (size_t)count * sizeof *parts);
        if (!parts) {
            PyErr_NoMemory();
            return -1;
        }
        self->parts = parts;
        self->part_room = count;
    }
    self->part_count = 0;
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *chunk = PyList_GET_ITEM(chunks, place);
        if (!PyBytes_CheckExact(chunk)) {
            PyErr_Format(PyExc_TypeError, "chunk %zd is %.80s, not bytes", place, Py_TYPE(chunk)->tp_name);
            return -1;
        }
        if (!PyBytes_GET_SIZE(chunk))
            continue;
        struct iovec *part = &self->parts[self->part_count++];
        part->iov_base = PyBytes_AS_STRING(chunk);
        part->iov_len = (size_t)PyBytes_GET_SIZE(chunk);
    }
    return 0;
}

static PyObject *write_thread_submit(WriteThread *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyList_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "submit takes a file, a place in it, a list of bytes, and whether to sync");
        return NULL;
    }
    if (!self->is_running || self->chunks) {
        PyErr_SetString(PyExc_RuntimeError, self->chunks ? "a job is under way" : "the thread is closed");
        return NULL;
    }
    long file = PyLong_AsLong(args[0]);
    long long at = PyLong_AsLongLong(args[1]);
    int is_synced = PyObject_IsTrue(args[3]);
    if (PyErr_Occurred() || note_parts(self, args[2]))
        return NULL;
    self->file = (int)file;
    self->at = at;
    self->is_synced = is_synced;
    self->chunks = Py_NewRef(args[2]);
    sem_post(&self->asked);
    Py_RETURN_NONE;
}

static PyObject *write_thread_result(WriteThread *self, PyObject *Py_UNUSED(ignored))
{
    uint64_t ended;
    if (read(self->told, &ended, sizeof ended) != sizeof ended)
        Py_RETURN_NONE;
    Py_CLEAR(self->chunks);
    return PyLong_FromLong(self->error);
}

static PyObject *write_thread_fileno(WriteThread *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromLong(self->told);
}

static PyObject *write_thread_close(WriteThread *self, PyObject *Py_UNUSED(ignored))
{
    if (!self->is_running)
        Py_RETURN_NONE;
    self->is_running = 0;
    sem_post(&self->asked);
    Py_BEGIN_ALLOW_THREADS
    pthread_join(self->thread, NULL);
    Py_END_ALLOW_THREADS
    Py_CLEAR(self->chunks);
    sem_destroy(&self->asked);
    close(self->told);
    self->told = -1;
    Py_DECREF(self);
    Py_RETURN_NONE;
}

static PyMethodDef write_thread_methods[] = {
    {"submit", (PyCFunction)(void (*)(void))write_thread_submit, METH_FASTCALL,
     "Write the chunks (a list of bytes, which must not change) into the open file from a byte on, then sync it."},
    {"result", (PyCFunction)write_thread_result, METH_NOARGS,
     "The errno of the job that has ended, 0 if all is well; None if it has not. Another may be submitted then."},
    {"fileno", (PyCFunction)write_thread_fileno, METH_NOARGS, "Readable when a job has ended."},
    {"close", (PyCFunction)write_thread_close, METH_NOARGS, "End the thread, when the job that it has begun is done; nobody is told of it."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject write_thread_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "warren.runtime.write_thread.WriteThread",
    .tp_doc = "A thread that does one job at a time; belongs to one loop.",
    .tp_basicsize = sizeof(WriteThread),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = write_thread_new,
    .tp_dealloc = (destructor)write_thread_dealloc,
    .tp_methods = write_thread_methods,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "warren.runtime.write_thread",
    .m_doc = "A thread that writes and syncs, and never takes the interpreter's lock.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_write_thread(void)
{
    PyObject *made = PyModule_Create(&module);
    if (!made || PyType_Ready(&write_thread_type)
        || PyModule_AddObjectRef(made, "WriteThread", (PyObject *)&write_thread_type)) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
