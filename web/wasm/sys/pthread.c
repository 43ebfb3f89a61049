#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "../exports.h"

/* ---- Waiting -------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t n_dead; /* workers that stopped with an error */

#ifdef BERTH_WEB_THREADS
#define FOR_EVER INT64_C(-1)
#define A_SECOND INT64_C(1000000000) /* in ns */
#define TIMED_OUT 2

static _Thread_local bool is_worker;

/* The caller checks now and then, because a dead worker ends no wait. */
static void wait_while(_Atomic uint32_t *word, uint32_t value) {
  const int64_t time = is_worker ? FOR_EVER : A_SECOND;
  while (__builtin_wasm_memory_atomic_wait32((int *)word, (int)value, time) == TIMED_OUT)
    if (atomic_load(&n_dead) != 0) __builtin_trap();
}
static void become_worker(void) { is_worker = true; }
static void wake(_Atomic uint32_t *word, uint32_t most) { __builtin_wasm_memory_atomic_notify((int *)word, most); }
#else
/* There is no other thread to wait for. */
static void wait_while(_Atomic uint32_t *word, uint32_t value) {
  (void)word;
  (void)value;
}
static void wake(_Atomic uint32_t *word, uint32_t most) {
  (void)word;
  (void)most;
}
static void become_worker(void) {}
#endif

int pthread_mutex_init(pthread_mutex_t *mutex, const void *none) {
  (void)none;
  atomic_init(&mutex->state, 0);
  return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex) {
  (void)mutex;
  return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  uint32_t state = 0;
  if (atomic_compare_exchange_strong(&mutex->state, &state, 1)) return 0;
  while (atomic_exchange(&mutex->state, 2) != 0) wait_while(&mutex->state, 2);
  return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  if (atomic_exchange(&mutex->state, 0) == 2) wake(&mutex->state, 1);
  return 0;
}

int pthread_cond_init(pthread_cond_t *cond, const void *none) {
  (void)none;
  atomic_init(&cond->n_signals, 0);
  return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond) {
  (void)cond;
  return 0;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
  uint32_t seen = atomic_load(&cond->n_signals);
  pthread_mutex_unlock(mutex);
  wait_while(&cond->n_signals, seen);
  return pthread_mutex_lock(mutex);
}

static int signal_some(pthread_cond_t *cond, uint32_t most) {
  atomic_fetch_add(&cond->n_signals, 1);
  wake(&cond->n_signals, most);
  return 0;
}

int pthread_cond_signal(pthread_cond_t *cond) { return signal_some(cond, 1); }
int pthread_cond_broadcast(pthread_cond_t *cond) { return signal_some(cond, UINT32_MAX); }

/* ---- Threads -------------------------------------------------------------------------------------------------- */

enum {
  ABSENT, /* the host has no worker with this number */
  IDLE,
  GIVEN, /* it has work, or will find it when it starts */
  DONE   /* and has not been joined */
};

typedef struct worker {
  _Atomic uint32_t state;
  void *(*start)(void *);
  void *user, *result;
} worker;

static worker workers[BERTH_WEB_MAX_WORKERS];

int berth_web_thread_add(uint32_t number) {
  if (number >= BERTH_WEB_MAX_WORKERS) {
    web_error = (berth_error){BERTH_NOMEM, "there are too many threads; close a session, or use fewer"};
    return 0;
  }
  atomic_store(&workers[number].state, IDLE);
  return 1;
}

uint32_t berth_web_thread_idle(void) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < BERTH_WEB_MAX_WORKERS; i++) n += atomic_load(&workers[i].state) == IDLE;
  return n;
}

uint32_t berth_web_thread_local_size(void) {
#ifdef BERTH_WEB_THREADS
  return (uint32_t)__builtin_wasm_tls_size();
#else
  return 0;
#endif
}

void berth_web_thread_died(void) { atomic_fetch_add(&n_dead, 1); }
uint32_t berth_web_thread_dead(void) { return atomic_load(&n_dead); }

void berth_web_thread(uint32_t number) {
  worker *self = &workers[number];
  become_worker();
  for (;;) {
    uint32_t state = atomic_load(&self->state);
    if (state != GIVEN) {
      wait_while(&self->state, state);
      continue;
    }
    self->result = self->start(self->user);
    atomic_store(&self->state, DONE);
    wake(&self->state, UINT32_MAX);
  }
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *user) {
  (void)attr;
  for (uint32_t i = 0; i < BERTH_WEB_MAX_WORKERS; i++) {
    worker *idle = &workers[i];
    if (atomic_load(&idle->state) != IDLE) continue;
    idle->start = start;
    idle->user = user;
    atomic_store(&idle->state, GIVEN);
    wake(&idle->state, UINT32_MAX);
    *thread = i;
    return 0;
  }
  return EAGAIN;
}

int pthread_join(pthread_t thread, void **result) {
  worker *ended = &workers[thread];
  for (uint32_t state; (state = atomic_load(&ended->state)) != DONE;) wait_while(&ended->state, state);
  if (result != NULL) *result = ended->result;
  atomic_store(&ended->state, IDLE);
  return 0;
}

int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) {
  (void)how;
  if (before != NULL) *before = *set;
  return 0;
}

int pthread_attr_init(pthread_attr_t *attr) {
  attr->nothing = 0;
  return 0;
}

int pthread_attr_setstacksize(pthread_attr_t *attr, size_t size) {
  (void)attr;
  (void)size;
  return 0;
}

int pthread_attr_destroy(pthread_attr_t *attr) {
  (void)attr;
  return 0;
}
