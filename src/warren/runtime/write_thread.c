/* A thread that does the jobs of a disk, and never takes the interpreter's lock: the loop, which holds it nearly all
 * of the time, need not stop for each of the calls that a job makes. runtime/file_writer.py hands it one job at a
 * time.
 *
 *     loop                                           thread
 *     submit(): notes the steps ─────────── asked ──▶ openat, pwritev, fdatasync, renameat … up to the first error
 *     readable ◀── told (eventfd) ─────────────────── notes the error, and the step that failed
 *     result(): lets go of the steps
 *
 * What belongs to the job is the loop's before `asked` and after `told`, and the thread's between them.
 */
#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kinds of steps, by their first member; file_writer.py has the same numbers. A file is a descriptor, or
 * ~n for the one that the n-th OPEN of the job has opened; a directory is a descriptor, and names are in it. */
enum kind {
    OPEN,   /* directory, name: to read and write */
    WRITE,  /* file, offset, list of bytes */
    SYNC,   /* file: its contents */
    COMMIT, /* directory: the names in it */
    RENAME, /* directory, old, new: no error if there is no such file */
    DELETE, /* directory, name: no error if there is no such file */
    KINDS,
};
static const Py_ssize_t sizes[KINDS] = {3, 4, 2, 2, 4, 3};

typedef struct {
    enum kind kind;
    int file; /* or the directory */
    off_t at;
    Py_ssize_t first_part, part_count;
    const char *name, *new_name;
} Step;

typedef struct {
    PyObject_HEAD
    pthread_t thread;
    /* Set before `asked` is: the thread ends without a job that it has not begun. */
    int is_running;
    sem_t asked;
    int told;
    /* The job, while there is one: `job` keeps its bytes and names alive, `parts` is where its bytes lie. */
    PyObject *job;
    Step *steps;
    Py_ssize_t step_count, step_room;
    struct iovec *parts;
    Py_ssize_t part_count, part_room;
    /* What its OPEN steps have opened; there is room for as many as there are steps. */
    int *opened;
    Py_ssize_t opened_count;
    Py_ssize_t failed;
    int error;
} WriteThread;

/* Write the parts of a step behind one another; 0, or the number of the error. */
static int write_parts(WriteThread *self, const Step *step, int file)
{
    struct iovec *part = self->parts + step->first_part, *end = part + step->part_count;
    off_t at = step->at;
    while (part < end) {
        int count = end - part < IOV_MAX ? (int)(end - part) : IOV_MAX;
        ssize_t written = pwritev(file, part, count, at);
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

/* 0, or the number of the error. */
static int perform(WriteThread *self, const Step *step)
{
    int file = step->file < 0 ? self->opened[~step->file] : step->file;
    switch (step->kind) {
    case OPEN:
        file = openat(step->file, step->name, O_RDWR | O_CLOEXEC);
        if (file < 0)
            return errno;
        self->opened[self->opened_count++] = file;
        return 0;
    case WRITE:
        return write_parts(self, step, file);
    case SYNC:
        return fdatasync(file) ? errno : 0;
    case COMMIT:
        return fsync(file) ? errno : 0;
    case RENAME:
        return renameat(step->file, step->name, step->file, step->new_name) && errno != ENOENT ? errno : 0;
    case DELETE:
        return unlinkat(step->file, step->name, 0) && errno != ENOENT ? errno : 0;
    default:
        return EINVAL;
    }
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
        self->error = 0;
        for (self->failed = 0; self->failed < self->step_count; self->failed++)
            if ((self->error = perform(self, &self->steps[self->failed])))
                break;
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
    PyMem_Free(self->steps);
    PyMem_Free(self->opened);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* Make room for `count` members of `size` bytes in the array at `*array`; -1 with an exception. */
static int make_room(void *array, Py_ssize_t *room, Py_ssize_t count, size_t size)
{
    if (count <= *room)
        return 0;
    void *larger = PyMem_Realloc(*(void **)array, (size_t)count * size);
    if (!larger) {
        PyErr_NoMemory();
        return -1;
    }
    *(void **)array = larger;
    *room = count;
    return 0;
}

/* Note where the bytes of `chunks` lie; -1 with an exception. */
static int note_parts(WriteThread *self, Step *step, PyObject *chunks)
{
    if (!PyList_CheckExact(chunks)) {
        PyErr_Format(PyExc_TypeError, "the chunks are %.80s, not a list", Py_TYPE(chunks)->tp_name);
        return -1;
    }
    Py_ssize_t count = PyList_GET_SIZE(chunks);
    if (make_room(&self->parts, &self->part_room, self->part_count + count, sizeof *self->parts))
        return -1;
    step->first_part = self->part_count;
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
    step->part_count = self->part_count - step->first_part;
    return 0;
}

/* The name at `place` of `tuple`; NULL with an exception. */
static const char *name_at(PyObject *tuple, Py_ssize_t place)
{
    Py_ssize_t size;
    const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(tuple, place), &size);
    if (name && (size_t)size != strlen(name)) {
        PyErr_SetString(PyExc_ValueError, "embedded null character");
        return NULL;
    }
    return name;
}

/* Note what `tuple` asks for, behind `opened` steps OPEN; -1 with an exception. */
static int note_step(WriteThread *self, Step *step, PyObject *tuple, Py_ssize_t opened)
{
    long kind = -1, file;
    if (PyTuple_CheckExact(tuple) && PyTuple_GET_SIZE(tuple) >= 2)
        kind = PyLong_AsLong(PyTuple_GET_ITEM(tuple, 0));
    if (PyErr_Occurred())
        return -1;
    if (kind < 0 || kind >= KINDS || PyTuple_GET_SIZE(tuple) != sizes[kind]) {
        PyErr_Format(PyExc_TypeError, "there is no step %.200R", tuple);
        return -1;
    }
    file = PyLong_AsLong(PyTuple_GET_ITEM(tuple, 1));
    if (PyErr_Occurred())
        return -1;
    if (file > INT_MAX || file < (kind == WRITE || kind == SYNC ? -opened : 0)) {
        PyErr_Format(PyExc_ValueError, "there is no file %ld", file);
        return -1;
    }
    step->kind = (enum kind)kind;
    step->file = (int)file;
    switch (step->kind) {
    case WRITE:
        step->at = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, 2));
        return PyErr_Occurred() ? -1 : note_parts(self, step, PyTuple_GET_ITEM(tuple, 3));
    case RENAME:
        step->new_name = name_at(tuple, 3);
        if (!step->new_name)
            return -1;
        /* fall through */
    case OPEN:
    case DELETE:
        step->name = name_at(tuple, 2);
        return step->name ? 0 : -1;
    default:
        return 0;
    }
}

static PyObject *write_thread_submit(WriteThread *self, PyObject *steps)
{
    if (!PyList_CheckExact(steps)) {
        PyErr_SetString(PyExc_TypeError, "submit takes a list of steps");
        return NULL;
    }
    if (!self->is_running || self->job) {
        PyErr_SetString(PyExc_RuntimeError, self->job ? "a job is in progress" : "the thread is closed");
        return NULL;
    }
    Py_ssize_t count = PyList_GET_SIZE(steps), room = self->step_room, opened = 0;
    if (make_room(&self->steps, &room, count, sizeof *self->steps)
        || make_room(&self->opened, &self->step_room, count, sizeof *self->opened))
        return NULL;
    self->part_count = 0;
    for (Py_ssize_t place = 0; place < count; place++) {
        Step *step = &self->steps[place];
        if (note_step(self, step, PyList_GET_ITEM(steps, place), opened))
            return NULL;
        opened += step->kind == OPEN;
    }
    self->step_count = count;
    self->opened_count = 0;
    self->job = Py_NewRef(steps);
    sem_post(&self->asked);
    Py_RETURN_NONE;
}

static PyObject *write_thread_result(WriteThread *self, PyObject *Py_UNUSED(ignored))
{
    uint64_t ended;
    if (read(self->told, &ended, sizeof ended) != sizeof ended)
        Py_RETURN_NONE;
    Py_CLEAR(self->job);
    PyObject *opened = PyTuple_New(self->opened_count);
    for (Py_ssize_t place = 0; opened && place < self->opened_count; place++) {
        PyObject *file = PyLong_FromLong(self->opened[place]);
        if (!file)
            Py_CLEAR(opened);
        else
            PyTuple_SET_ITEM(opened, place, file);
    }
    return opened ? Py_BuildValue("inN", self->error, self->failed, opened) : NULL;
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
    for (Py_ssize_t place = 0; self->job && place < self->opened_count; place++)
        close(self->opened[place]);
    Py_CLEAR(self->job);
    sem_destroy(&self->asked);
    close(self->told);
    self->told = -1;
    Py_DECREF(self);
    Py_RETURN_NONE;
}

static PyMethodDef write_thread_methods[] = {
    {"submit", (PyCFunction)write_thread_submit, METH_O,
     "Perform the steps of a list, which must not change, in order and up to the first that fails."},
    {"result", (PyCFunction)write_thread_result, METH_NOARGS,
     "Of the job that has ended: the errno or 0, the place of the failed step, and the descriptors that it has\n"
     "opened, which are the caller's from now on. None if it has not ended. Another may be submitted then."},
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
