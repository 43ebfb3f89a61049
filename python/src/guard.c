/* Objects that one thread may use at a time: a lock, waited for with the GIL released; and their treatment in a forked
 * process, which has its parent's memory but none of its threads. */
#include <pthread.h>

#include "py.h"

static unsigned guard_generation;         /* counts forks: a child's differs from its parent's */
static _Thread_local int guard_callbacks; /* this thread is in a callback of the library */

static void guard_forked(void) { guard_generation++; }

int py_guard_init_module(void) {
  if (pthread_atfork(NULL, NULL, guard_forked) == 0) return 0;
  PyErr_NoMemory();
  return -1;
}

int py_guard_init(py_guard *guard, int is_alone) {
  guard->lock = PyThread_allocate_lock();
  guard->owner = 0;
  guard->generation = guard_generation;
  guard->is_alone = is_alone;
  if (guard->lock != NULL) return 0;
  PyErr_NoMemory();
  return -1;
}

void py_guard_free(py_guard *guard) {
  if (guard->lock != NULL && !py_guard_is_lost(guard)) PyThread_free_lock(guard->lock);
  guard->lock = NULL;
}

int py_guard_is_lost(const py_guard *guard) {
  return guard->generation != guard_generation && (!guard->is_alone || guard->owner != 0);
}

int py_guard_enter(py_guard *guard, const char *what) {
  if (guard->generation != guard_generation) {
    if (py_guard_is_lost(guard)) {
      py_invalid(
          "the %s was made before this process was forked, and its threads are in the parent: make it in the "
          "process that uses it, or with threads=1 on the cpu",
          what);
      return -1;
    }
    guard->generation = guard_generation;
  }
  const unsigned long me = PyThread_get_thread_ident();
  if (!PyThread_acquire_lock(guard->lock, NOWAIT_LOCK)) {
    if (guard->owner == me || guard_callbacks > 0) {
      py_invalid("the %s is running: what it calls cannot use it", what);
      return -1;
    }
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(guard->lock, WAIT_LOCK);
    Py_END_ALLOW_THREADS;
  }
  guard->owner = me;
  return 0;
}

void py_guard_leave(py_guard *guard) {
  guard->owner = 0;
  PyThread_release_lock(guard->lock);
}

void py_callback_enter(PyGILState_STATE *state) {
  *state = PyGILState_Ensure();
  guard_callbacks++;
}

void py_callback_leave(PyGILState_STATE state) {
  guard_callbacks--;
  PyGILState_Release(state);
}
