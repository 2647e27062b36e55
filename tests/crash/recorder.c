/* Preloaded into a broker: records its calls on files and sockets, in order, and kills it at a chosen call.
 *
 *   WARREN_RECORD  the file to write to
 *   WARREN_ROOT    only files below this directory are recorded
 *   WARREN_KILL    "pwrite:17": SIGKILL at the 17th pwrite below the root, after half of it;
 *                  "fdatasync:3", "rename:1", "unlink:1", "open:4": before the call
 *                  "fdatasync:2:*.segment": only calls on files with such a path are counted
 *   WARREN_SINCE   "*.plan": calls are counted only after a file was renamed to such a path
 *
 * record │ kind u8 │ at u64 │ size of a u32 │ size of b u32 │ a │ b │     integers in the order of this machine
 *
 * Calls whose effect may exist after a power cut are recorded before they are made (writes, renames); calls after
 * which something is certain are recorded after them (syncs, data sent and received).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../gathered.h"

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int output = -1;
static char root[PATH_MAX];
static char kill_kind[32];
static char kill_path[PATH_MAX] = "*";
static const char *kill_since;
static long kill_at;
static long counted;
static int is_armed;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("WARREN_RECORD");
    const char *end = getenv("WARREN_KILL");
    const char *below = getenv("WARREN_ROOT");
    if (below) snprintf(root, sizeof root, "%s", below);
    if (path) output = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (end) sscanf(end, "%31[^:]:%ld:%4095s", kill_kind, &kill_at, kill_path);
    kill_since = getenv("WARREN_SINCE");
    is_armed = !kill_since;
}

static void put(const void *octets, size_t size) {
    const char *at = octets;
    while (size) {
        long done = syscall(SYS_write, output, at, size);
        if (done <= 0) _exit(97);
        at += done;
        size -= done;
    }
}

static void record(char kind, uint64_t at, const void *a, uint32_t a_size, const void *b, uint32_t b_size) {
    if (output < 0) return;
    pthread_mutex_lock(&lock);
    char head[17];
    head[0] = kind;
    memcpy(head + 1, &at, 8);
    memcpy(head + 9, &a_size, 4);
    memcpy(head + 13, &b_size, 4);
    put(head, sizeof head);
    put(a, a_size);
    put(b, b_size);
    pthread_mutex_unlock(&lock);
}

static int is_below(const char *path) {
    size_t size = strlen(root);
    return size && !strncmp(path, root, size) && (path[size] == '/' || !path[size]);
}

/* The path of an open file below the root; 0 for any other. */
static int path_of(int file, char *path) {
    char link[64];
    struct stat status;
    if (!root[0] || fstat(file, &status) || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_below(path);
}

static int is_client(int file) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    struct stat status;
    if (output < 0 || fstat(file, &status) || !S_ISSOCK(status.st_mode)) return 0;
    return !getsockname(file, (struct sockaddr *)&address, &size) && address.ss_family == AF_INET;
}

static int is_last(const char *kind, const char *path) {
    if (!kill_at || !is_armed || strcmp(kind, kill_kind) || fnmatch(kill_path, path, 0)) return 0;
    return __sync_add_and_fetch(&counted, 1) == kill_at;
}

static void note(char kind, uint64_t at, const char *a, const char *b) {
    record(kind, at, a, strlen(a), b, strlen(b));
}

/* Where `path` is, which may be given from an open directory; 0 if it is not below the root. */
static int place_of(int directory, const char *path, char *place) {
    if (path[0] == '/' || directory == AT_FDCWD) {
        snprintf(place, PATH_MAX, "%s", path);
        return is_below(place);
    }
    if (!path_of(directory, place)) return 0;
    size_t size = strlen(place);
    snprintf(place + size, PATH_MAX - size, "/%s", path);
    return 1;
}

static void opened(int directory, const char *path, int flags) {
    char place[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !place_of(directory, path, place)) return;
    if (is_last("open", place)) raise(SIGKILL);
    note('C', (flags & O_TRUNC) != 0, place, "");
}

#define MODE(flags, mode) \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) {
    REAL(int, "open", const char *, int, ...);
    mode_t mode = 0;
    MODE(flags, mode)
    opened(AT_FDCWD, path, flags);
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...);
    mode_t mode = 0;
    MODE(flags, mode)
    opened(AT_FDCWD, path, flags);
    return real(path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    REAL(int, "openat", int, const char *, int, ...);
    mode_t mode = 0;
    MODE(flags, mode)
    opened(directory, path, flags);
    return real(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...) {
    REAL(int, "openat64", int, const char *, int, ...);
    mode_t mode = 0;
    MODE(flags, mode)
    opened(directory, path, flags);
    return real(directory, path, flags, mode);
}

/* A store into shared memory is no call: where writes are recorded or counted, files cannot be mapped, and what would
 * be stored is written. */
void *mmap(void *where, size_t size, int rights, int flags, int file, off_t at) {
    REAL(void *, "mmap", void *, size_t, int, int, int, off_t);
    char path[PATH_MAX];
    int is_seen = output >= 0 || !strcmp(kill_kind, "pwrite");
    if (is_seen && file >= 0 && (flags & MAP_SHARED) && (rights & PROT_WRITE) && path_of(file, path)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return real(where, size, rights, flags, file, at);
}

ssize_t pwrite64(int file, const void *octets, size_t size, off_t at) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
    char path[PATH_MAX];
    if (path_of(file, path)) {
        if (is_last("pwrite", path)) {
            real(file, octets, size / 2, at);
            raise(SIGKILL);
        }
        record('W', at, path, strlen(path), octets, size);
    }
    return real(file, octets, size, at);
}

ssize_t pwrite(int file, const void *octets, size_t size, off_t at) { return pwrite64(file, octets, size, at); }

ssize_t pwritev64(int file, const struct iovec *pieces, int count, off_t at) {
    return write_gathered(pwrite64, file, pieces, count, at);
}

ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t at) {
    return pwritev64(file, pieces, count, at);
}

ssize_t write(int file, const void *octets, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    char path[PATH_MAX];
    if (is_client(file)) {
        ssize_t done = real(file, octets, size);
        if (done > 0) record('S', file, "", 0, octets, done);
        return done;
    }
    if (output >= 0 && path_of(file, path)) record('W', lseek(file, 0, SEEK_CUR), path, strlen(path), octets, size);
    return real(file, octets, size);
}

ssize_t writev(int file, const struct iovec *pieces, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    ssize_t done = real(file, pieces, count);
    if (done > 0 && is_client(file)) {
        ssize_t left = done;
        for (int at = 0; at < count && left; at++) {
            ssize_t size = (ssize_t)pieces[at].iov_len < left ? (ssize_t)pieces[at].iov_len : left;
            record('S', file, "", 0, pieces[at].iov_base, size);
            left -= size;
        }
    }
    return done;
}

ssize_t read(int file, void *octets, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    ssize_t done = real(file, octets, size);
    if (done > 0 && is_client(file)) record('I', file, "", 0, octets, done);
    return done;
}

int fdatasync(int file) {
    REAL(int, "fdatasync", int);
    char path[PATH_MAX];
    int counts = path_of(file, path);
    if (counts && is_last("fdatasync", path)) raise(SIGKILL);
    int status = real(file);
    if (counts && !status) note('Y', 0, path, "");
    return status;
}

int fsync(int file) {
    REAL(int, "fsync", int);
    char path[PATH_MAX];
    int counts = path_of(file, path);
    if (counts && is_last("fsync", path)) raise(SIGKILL);
    int status = real(file);
    if (counts && !status) note('Y', 0, path, "");
    return status;
}

int ftruncate64(int file, off_t size) {
    REAL(int, "ftruncate64", int, off_t);
    char path[PATH_MAX];
    if (path_of(file, path)) note('T', size, path, "");
    return real(file, size);
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

static void renamed(int from_directory, const char *from, int to_directory, const char *to) {
    char old[PATH_MAX], new[PATH_MAX];
    if (!place_of(from_directory, from, old) || !place_of(to_directory, to, new)) return;
    if (is_last("rename", new)) raise(SIGKILL);
    if (kill_since && !fnmatch(kill_since, new, 0)) is_armed = 1;
    note('R', 0, old, new);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    renamed(AT_FDCWD, from, AT_FDCWD, to);
    return real(from, to);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    renamed(from_directory, from, to_directory, to);
    return real(from_directory, from, to_directory, to);
}

static void unlinked(int directory, const char *path) {
    char place[PATH_MAX];
    if (!place_of(directory, path, place)) return;
    if (is_last("unlink", place)) raise(SIGKILL);
    note('U', 0, place, "");
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    unlinked(AT_FDCWD, path);
    return real(path);
}

int unlinkat(int directory, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    unlinked(directory, path);
    return real(directory, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    int counts = is_below(path);
    if (counts && is_last("mkdir", path)) raise(SIGKILL);
    int done = real(path, mode);
    if (counts && !done) note('M', 0, path, "");
    return done;
}
