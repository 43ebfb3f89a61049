/* Threads for WebAssembly, as far as the library uses them. Debian's wasi-libc has none: here a lock is a word with
 * WebAssembly's wait instructions, and a thread is a worker that the host has started in advance (see
 * berth_web_thread), to which pthread_create passes a function. Without WebAssembly's atomics there is one thread, and
 * pthread_create fails.
 *
 * The C library was built for one thread: only the thread that calls the module may allocate. */
#ifndef BERTH_WEB_PTHREAD_H
#define BERTH_WEB_PTHREAD_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t pthread_t; /* the number of a worker */
typedef struct pthread_mutex_t {
  _Atomic uint32_t state; /* 0: free; 1: held; 2: held, with waiters */
} pthread_mutex_t;
typedef struct pthread_cond_t {
  _Atomic uint32_t n_signals;
} pthread_cond_t;
typedef struct pthread_attr_t {
  char nothing; /* the host allocates stacks */
} pthread_attr_t;

int pthread_mutex_init(pthread_mutex_t *mutex, const void *none);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);

int pthread_cond_init(pthread_cond_t *cond, const void *none);
int pthread_cond_destroy(pthread_cond_t *cond);
int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int pthread_cond_signal(pthread_cond_t *cond);
int pthread_cond_broadcast(pthread_cond_t *cond);

int pthread_attr_init(pthread_attr_t *attr);
int pthread_attr_setstacksize(pthread_attr_t *attr, size_t size);
int pthread_attr_destroy(pthread_attr_t *attr);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *user);
int pthread_join(pthread_t thread, void **result);
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before);

#endif
