/* For preloaded libraries: performs a pwritev as one pwrite. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

typedef ssize_t (*write_at)(int file, const void *octets, size_t size, off_t at);

static ssize_t write_gathered(write_at write, int file, const struct iovec *pieces, int count, off_t at)
{
    size_t size = 0, done = 0;
    for (int place = 0; place < count; place++)
        size += pieces[place].iov_len;
    char *octets = malloc(size);
    if (!octets)
        abort();
    for (int place = 0; place < count; done += pieces[place++].iov_len)
        memcpy(octets + done, pieces[place].iov_base, pieces[place].iov_len);
    ssize_t written = write(file, octets, size, at);
    int error = errno;
    free(octets);
    errno = error;
    return written;
}
