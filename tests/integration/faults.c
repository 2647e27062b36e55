/* Disk faults for a process that is started with this library in LD_PRELOAD.
 *
 * The file that WARREN_TEST_FAULTS names is read before each call that changes a file, and before each pread.
 * Each of its lines is a rule, of which the first that matches applies:
 *
 *     call what number path [at]
 *
 * call    fdatasync, fsync, read (pread), write (pwrite, pwritev), open (open, openat), rename
 * what    errno: the call fails with `number`; delay: it takes `number` ms longer; short: `number` bytes are
 *         written, and the next call fails with EIO; hang: it waits while the file of the rules is locked (flock)
 * path    the beginning of the path of the file
 * at      a byte offset in the file: the rule applies only to calls that read or write this byte
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../gathered.h"

struct rule {
    int is_met;
    char what[16];
    long number;
};

/* The first rule for `call` on `path` that applies to the bytes from `at` on. */
static struct rule look_up(const char *call, const char *path, off64_t at, size_t count)
{
    struct rule found = {0, "", 0};
    const char *name = getenv("WARREN_TEST_FAULTS");
    char text[4096];
    /* Not with open and read, which this library replaces. */
    long file = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return found;
    long size = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    text[size > 0 ? size : 0] = 0;
    char *rest = text;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char rule_call[16], prefix[PATH_MAX];
        long octet = 0;
        int fields = sscanf(line, "%15s %15s %ld %4095s %ld", rule_call, found.what, &found.number, prefix, &octet);
        if (fields < 4 || (fields == 5 && (octet < at || octet >= at + (off64_t)count)))
            continue;
        if (!strcmp(rule_call, call) && !strncmp(prefix, path, strlen(prefix))) {
            found.is_met = 1;
            return found;
        }
    }
    return found;
}

static struct rule rule_of_octets(const char *call, int file, off64_t at, size_t count)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = 0;
    return look_up(call, path, at, count);
}

static struct rule rule_of_file(const char *call, int file)
{
    return rule_of_octets(call, file, 0, 0);
}

/* -1 with errno if the call is to fail; else 0, after the delay if there is one. */
static int obey(struct rule rule)
{
    if (!rule.is_met)
        return 0;
    if (!strcmp(rule.what, "errno")) {
        errno = (int)rule.number;
        return -1;
    }
    if (!strcmp(rule.what, "delay")) {
        struct timespec pause = {rule.number / 1000, rule.number % 1000 * 1000000};
        nanosleep(&pause, NULL);
    }
    if (!strcmp(rule.what, "hang")) {
        long file = syscall(SYS_openat, AT_FDCWD, getenv("WARREN_TEST_FAULTS"), O_RDONLY | O_CLOEXEC);
        flock((int)file, LOCK_SH);
        syscall(SYS_close, file);
    }
    return 0;
}

int fdatasync(int file)
{
    return obey(rule_of_file("fdatasync", file)) ? -1 : (int)syscall(SYS_fdatasync, file);
}

int fsync(int file)
{
    return obey(rule_of_file("fsync", file)) ? -1 : (int)syscall(SYS_fsync, file);
}

ssize_t pwrite64(int file, const void *octets, size_t size, off64_t at)
{
    static __thread int is_short;
    struct rule rule = rule_of_octets("write", file, at, size);
    if (rule.is_met && !strcmp(rule.what, "short")) {
        is_short = !is_short;
        if (!is_short) {
            errno = EIO;
            return -1;
        }
        if (size > (size_t)rule.number)
            size = (size_t)rule.number;
    } else if (obey(rule)) {
        return -1;
    }
    return syscall(SYS_pwrite64, file, octets, size, at);
}

ssize_t pwrite(int file, const void *octets, size_t size, off_t at)
{
    return pwrite64(file, octets, size, at);
}

ssize_t pwritev64(int file, const struct iovec *pieces, int count, off64_t at)
{
    return write_gathered(pwrite64, file, pieces, count, at);
}

ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t at)
{
    return pwritev64(file, pieces, count, at);
}

ssize_t pread64(int file, void *octets, size_t size, off64_t at)
{
    if (obey(rule_of_octets("read", file, at, size)))
        return -1;
    return syscall(SYS_pread64, file, octets, size, at);
}

ssize_t pread(int file, void *octets, size_t size, off_t at)
{
    return pread64(file, octets, size, at);
}

int openat64(int directory, const char *name, int flags, ...)
{
    char path[PATH_MAX] = "";
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list more;
        va_start(more, flags);
        mode = va_arg(more, mode_t);
        va_end(more);
    }
    if (name[0] != '/' && directory != AT_FDCWD) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t size = readlink(link, path, sizeof path - 2);
        path[size > 0 ? size : 0] = 0;
        strcat(path, "/");
    }
    strncat(path, name, sizeof path - strlen(path) - 1);
    if (obey(look_up("open", path, 0, 0)))
        return -1;
    return (int)syscall(SYS_openat, directory, name, flags | O_LARGEFILE, mode);
}

int openat(int directory, const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return openat64(directory, name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return openat64(AT_FDCWD, name, flags, mode);
}

int open(const char *name, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return openat64(AT_FDCWD, name, flags, mode);
}

int renameat(int old_directory, const char *old, int new_directory, const char *new)
{
    if (obey(rule_of_file("rename", old_directory)))
        return -1;
    return (int)syscall(SYS_renameat, old_directory, old, new_directory, new);
}
