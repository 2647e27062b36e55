/* What a write and a sync cost an event loop that waits in epoll: by a thread, and as linked jobs of io_uring.
 *
 *     gcc -O2 -pthread -o write_and_sync bench/micro/write_and_sync.c
 *     ./write_and_sync DIRECTORY [RATE [SECONDS [ROUNDS]]]      400 a second for 5 seconds, 5 rounds of both, by default
 *
 * Each job writes 1,100 bytes behind the last ones and syncs the data of the file; its end arrives at an eventfd. With
 * DIRECTORY in memory the sync costs nothing. Prints the CPU time of the process for each job.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { SIZE = 1100 };

static int file, told;
static off_t at;
static char record[SIZE];
static sem_t asked;

static void must(int is_right, const char *what)
{
    if (is_right)
        return;
    perror(what);
    exit(1);
}

static double cpu_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec)
           + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* --- by a thread --- */

static void *serve(void *nothing)
{
    const uint64_t one = 1;
    for (;;) {
        while (sem_wait(&asked))
            ;
        must(pwrite(file, record, SIZE, at) == SIZE && !fdatasync(file), "write and sync");
        must(write(told, &one, sizeof one) == sizeof one, "eventfd");
    }
    return nothing;
}

static void ask_thread(void)
{
    sem_post(&asked);
}

static void take_thread(void) {}

/* --- by io_uring --- */

static int ring;
static struct io_uring_params parameters;
static char *submissions, *completions;
static struct io_uring_sqe *entries;

#define PART(of, offset) ((unsigned *)((of) + (offset)))

static int open_ring(void)
{
    ring = (int)syscall(SYS_io_uring_setup, 8, &parameters);
    if (ring < 0)
        return 0;
    size_t room = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    submissions = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    room = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    completions = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
    room = parameters.sq_entries * sizeof *entries;
    entries = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
    must(submissions != MAP_FAILED && completions != MAP_FAILED && (void *)entries != MAP_FAILED, "mmap");
    must(!syscall(SYS_io_uring_register, ring, IORING_REGISTER_EVENTFD, &told, 1), "eventfd of the ring");
    return 1;
}

static void ask_ring(void)
{
    unsigned *tail = PART(submissions, parameters.sq_off.tail);
    unsigned mask = *PART(submissions, parameters.sq_off.ring_mask);
    for (unsigned n = 0; n < 2; n++) {
        unsigned place = (*tail + n) & mask;
        entries[place] = (struct io_uring_sqe){.opcode = n ? IORING_OP_FSYNC : IORING_OP_WRITE, .fd = file};
        if (n) {
            entries[place].fsync_flags = IORING_FSYNC_DATASYNC;
        } else {
            /* The sync begins when the write has ended, and only its end is told. */
            entries[place].flags = IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
            entries[place].addr = (uint64_t)(uintptr_t)record;
            entries[place].len = SIZE;
            entries[place].off = (uint64_t)at;
        }
        PART(submissions, parameters.sq_off.array)[place] = place;
    }
    __atomic_store_n(tail, *tail + 2, __ATOMIC_RELEASE);
    while (syscall(SYS_io_uring_enter, ring, 2, 0, 0, NULL, 0) < 0)
        must(errno == EINTR, "io_uring_enter");
}

static void take_ring(void)
{
    unsigned *head = PART(completions, parameters.cq_off.head);
    unsigned mask = *PART(completions, parameters.cq_off.ring_mask);
    struct io_uring_cqe *ends = (struct io_uring_cqe *)(completions + parameters.cq_off.cqes);
    while (*head != __atomic_load_n(PART(completions, parameters.cq_off.tail), __ATOMIC_ACQUIRE)) {
        errno = -ends[*head & mask].res;
        must(ends[*head & mask].res >= 0, "a job of io_uring");
        __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    }
}

/* --- the loop --- */

static double cpu_us_of_job(double rate, long jobs, void (*ask)(void), void (*take)(void))
{
    struct epoll_event event = {.events = EPOLLIN}, found[2];
    struct itimerspec each = {{0, (long)(1e9 / rate)}, {0, (long)(1e9 / rate)}};
    int loop = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    for (int n = 0; n < 2; n++) {
        event.data.fd = n ? told : timer;
        must(!epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event), "epoll_ctl");
    }
    must(!timerfd_settime(timer, 0, &each, NULL), "timerfd_settime");
    double before = cpu_s();
    int is_busy = 0;
    for (long done = 0; done < jobs;) {
        int count = epoll_wait(loop, found, 2, -1);
        must(count >= 0 || errno == EINTR, "epoll_wait");
        for (int n = 0; n < count; n++) {
            uint64_t number;
            must(read(found[n].data.fd, &number, sizeof number) == sizeof number, "read");
            if (found[n].data.fd == told) {
                take();
                at += SIZE;
                done++;
                is_busy = 0;
            } else if (!is_busy) {
                is_busy = 1;
                ask();
            }
        }
    }
    double used = cpu_s() - before;
    close(loop);
    close(timer);
    return used / (double)jobs * 1e6;
}

int main(int count, char **arguments)
{
    must(count > 1, "usage: write_and_sync DIRECTORY [RATE [SECONDS [ROUNDS]]]");
    double rate = count > 2 ? atof(arguments[2]) : 400, seconds = count > 3 ? atof(arguments[3]) : 5;
    int rounds = count > 4 ? atoi(arguments[4]) : 5;
    long jobs = (long)(rate * seconds);
    pthread_t thread;
    told = eventfd(0, EFD_CLOEXEC);
    file = open(arguments[1], O_TMPFILE | O_RDWR, 0600);
    must(file >= 0 && !posix_fallocate(file, 0, 2L * rounds * jobs * SIZE) && !fsync(file), "open");
    must(!sem_init(&asked, 0, 0) && !pthread_create(&thread, NULL, serve, NULL), "pthread_create");
    int has_ring = open_ring();
    if (!has_ring)
        perror("no io_uring");
    for (int n = 0; n < rounds; n++) {
        printf("thread %.0f µs", cpu_us_of_job(rate, jobs, ask_thread, take_thread));
        if (has_ring)
            printf(", io_uring %.0f µs", cpu_us_of_job(rate, jobs, ask_ring, take_ring));
        printf(" of CPU time for each of %ld jobs\n", jobs);
        fflush(stdout);
    }
    return 0;
}
