/* The clock of a process and its children, set back by as many seconds as the file CLOCK_BACK_S says, read as it changes.

   Time that only runs forward is left alone, as it is when a machine's clock is set. Debian's libfaketime 0.9.10 can't
   be used: with that time left alone, clock_nanosleep fails with EINVAL, and so does Python's time.sleep. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *back(void) {
    static volatile long none = 0, *found = 0;
    if (!found) {
        const char *path = getenv("CLOCK_BACK_S");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *there = file < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        found = there == MAP_FAILED ? &none : there;
    }
    return found;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= *back();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    int failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed && now) now->tv_sec -= *back();
    return failed;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

/* Whoever waits until a time of day waits as long as that clock says. */
static struct timespec later(const struct timespec *until) {
    struct timespec shifted = *until;
    shifted.tv_sec += *back();
    return shifted;
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec now, shifted;
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    /* A condition may wait by the other clock, which its attributes hide: that one counts from the machine's start. */
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
    if (until->tv_sec < now.tv_sec / 2) return real(c, m, until);
    shifted = later(until);
    return real(c, m, &shifted);
}

int sem_timedwait(sem_t *s, const struct timespec *until) {
    static int (*real)(sem_t *, const struct timespec *);
    struct timespec shifted = later(until);
    if (!real) real = dlsym(RTLD_NEXT, "sem_timedwait");
    return real(s, &shifted);
}
