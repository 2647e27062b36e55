/* What the kernel takes of a message that comes alone, whatever broker receives it.
 *
 *     gcc -O2 -pthread -o message_alone bench/micro/message_alone.c
 *     ./message_alone RATE SECONDS                 transient, 16 bytes: read, and written to the consumer
 *     ./message_alone RATE SECONDS DIRECTORY       persistent, 1 KiB: written to a file there and synced by a thread,
 *                                                  then confirmed and delivered; the consumer acknowledges each
 *
 * A broker has to make these calls at least, when its event loop waits in epoll and its syncs in a thread. What they
 * do with the message is nothing: no protocol, no queue. The publisher and the consumer are processes of their own,
 * on loopback sockets. Prints the CPU time of the middle process for each message, with that of its thread.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* With the frames of AMQP around the body: a publish with its header, a confirm, an acknowledgement. */
enum { TRANSIENT = 60, PERSISTENT = 1100, CONFIRM = 21, ACKNOWLEDGEMENT = 21 };

static int file = -1, told;
static sem_t asked;
static size_t job_size;
static char record[65536];

static void must(int is_right, const char *what)
{
    if (is_right)
        return;
    perror(what);
    exit(1);
}

static void *sync_each(void *nothing)
{
    const uint64_t one = 1;
    off_t at = 0;
    for (;;) {
        while (sem_wait(&asked))
            ;
        must(pwrite(file, record, job_size, at) == (ssize_t)job_size, "pwrite");
        at += (off_t)job_size;
        must(!fdatasync(file), "fdatasync");
        must(write(told, &one, sizeof one) == sizeof one, "eventfd");
    }
    return nothing;
}

static void send_all(int to, size_t size)
{
    static const char zeros[65536];
    while (size) {
        ssize_t sent = write(to, zeros, size);
        must(sent > 0 || errno == EINTR, "write");
        size -= sent > 0 ? (size_t)sent : 0;
    }
}

static double cpu_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
           + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* Pass messages on until the publisher closes its socket; prints the CPU time for each. */
static void broker(int publisher, int consumer, size_t size)
{
    static char input[65536];
    struct epoll_event event = {.events = EPOLLIN}, found[3];
    int loop = epoll_create1(0), is_busy = 0;
    size_t waiting = 0, received = 0, confirming = 0;
    int sources[3] = {publisher, consumer, told};
    for (int n = 0; n < (file < 0 ? 2 : 3); n++) {
        event.data.fd = sources[n];
        must(!epoll_ctl(loop, EPOLL_CTL_ADD, sources[n], &event), "epoll_ctl");
    }
    double before = cpu_s();
    for (int has_ended = 0; !has_ended;) {
        int count = epoll_wait(loop, found, 3, -1);
        for (int n = 0; n < count; n++) {
            int from = found[n].data.fd;
            if (from == told) {
                uint64_t number;
                must(read(told, &number, sizeof number) == sizeof number, "eventfd");
                is_busy = 0;
                send_all(publisher, CONFIRM);
                send_all(consumer, confirming);
            } else {
                ssize_t size_read = read(from, input, sizeof input);
                has_ended |= from == publisher && size_read <= 0;
                if (from == publisher && size_read > 0) {
                    received += (size_t)size_read;
                    waiting += (size_t)size_read;
                }
            }
        }
        if (file < 0 && waiting) {
            send_all(consumer, waiting);
            waiting = 0;
        } else if (waiting && !is_busy) {
            job_size = confirming = waiting < sizeof record ? waiting : sizeof record;
            waiting -= job_size;
            is_busy = 1;
            sem_post(&asked);
        }
    }
    double count = (double)received / (double)size;
    printf("%.1f µs of CPU time for each of %.0f messages\n", (cpu_s() - before) / count * 1e6, count);
}

/* Publish at `rate` per second, and read the confirms that have arrived. */
static void publish(int to, double rate, double seconds, size_t size)
{
    char input[4096];
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (long n = 0, all = (long)(rate * seconds); n < all; n++) {
        due.tv_nsec += (long)(1e9 / rate);
        while (due.tv_nsec >= 1000000000) {
            due.tv_nsec -= 1000000000;
            due.tv_sec++;
        }
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL))
            ;
        send_all(to, size);
        while (recv(to, input, sizeof input, MSG_DONTWAIT) > 0)
            ;
    }
}

/* Read until the socket is closed, and acknowledge each persistent message. */
static void consume(int from, size_t size, int acknowledges)
{
    static char input[65536];
    ssize_t size_read;
    for (size_t read_size = 0; (size_read = read(from, input, sizeof input)) > 0;) {
        read_size += (size_t)size_read;
        for (; acknowledges && read_size >= size; read_size -= size)
            send_all(from, ACKNOWLEDGEMENT);
    }
}

static int connected(const struct sockaddr_in *address)
{
    int one = 1, to = socket(AF_INET, SOCK_STREAM, 0);
    must(!connect(to, (const struct sockaddr *)address, sizeof *address), "connect");
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return to;
}

static int accepted(int listener)
{
    int one = 1, from = accept(listener, NULL, NULL);
    must(from >= 0, "accept");
    setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return from;
}

int main(int count, char **arguments)
{
    must(count == 3 || count == 4, "usage: message_alone RATE SECONDS [DIRECTORY]");
    double rate = atof(arguments[1]), seconds = atof(arguments[2]);
    int is_persistent = count == 4;
    size_t size = is_persistent ? PERSISTENT : TRANSIENT;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(!bind(listener, (struct sockaddr *)&address, sizeof address) && !listen(listener, 2), "listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    if (!fork()) {
        publish(connected(&address), rate, seconds, size);
        return 0;
    }
    int publisher = accepted(listener);
    if (!fork()) {
        close(publisher);
        consume(connected(&address), size, is_persistent);
        return 0;
    }
    int consumer = accepted(listener);
    told = eventfd(0, EFD_CLOEXEC);
    if (is_persistent) {
        pthread_t thread;
        file = open(arguments[3], O_TMPFILE | O_RDWR, 0600);
        must(file >= 0 && !posix_fallocate(file, 0, (off_t)((rate + 1) * seconds * (double)size)), "open");
        /* As a broker does that makes its files ahead of time: a sync then writes no names and no sizes. */
        must(!fsync(file) && !sem_init(&asked, 0, 0), "fsync");
        must(!pthread_create(&thread, NULL, sync_each, NULL), "pthread_create");
    }
    broker(publisher, consumer, size);
    close(publisher);
    shutdown(consumer, SHUT_RDWR);
    while (wait(NULL) > 0)
        ;
    return 0;
}
