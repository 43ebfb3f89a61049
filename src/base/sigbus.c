#include "base/sigbus.h"

#ifdef __wasi__ /* no signals, and no mapped files */
berth_status berth__sigbus_catch(berth_error *err) {
  return berth__fail(err, BERTH_UNSUPPORTED, "WebAssembly has no signals to catch");
}

berth__watch *berth__sigbus_watch(const void *base, size_t size) {
  (void)base, (void)size;
  return NULL;
}

void berth__sigbus_unwatch(berth__watch *watch) { (void)watch; }

int berth__sigbus_is_lost(const berth__watch *watch) {
  (void)watch;
  return 0;
}
#else

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/* A fixed table, because the handler can neither lock nor follow pointers that others free. An entry is free (0), being
 * filled in (1), or in use. The handler looks for a mapping that is being read, which therefore stays in its entry. A
 * base and a size that do not belong together come from mappings that are changing; such a pair never contains an
 * address of another mapping. */
#define MAX_WATCHES 1024

struct berth__watch {
  atomic_uintptr_t base;
  atomic_size_t size;
  atomic_bool is_lost;
};

static struct berth__watch watches[MAX_WATCHES];
static atomic_bool is_installed;
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous;
static uintptr_t page_size;

/* Maps zeros from this page on, since the file ends before it. They are writable, because an arena may consist of a
 * file's pages. */
static bool sigbus_replace(struct berth__watch *watch, uintptr_t base, size_t size, uintptr_t address) {
  const uintptr_t page = address & ~(page_size - 1);
  const size_t rest = size - (size_t)(page - base);
  void *there = (unsigned char *)base + (page - base); /* NOLINT(performance-no-int-to-ptr): from a table of atomics */
  if (mmap(there, rest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    return false;
  atomic_store(&watch->is_lost, true);
  return true;
}

static bool sigbus_mend(const siginfo_t *info) {
  const uintptr_t address = (uintptr_t)info->si_addr;
  if (info->si_code <= 0) return false; /* sent by a process */
  for (size_t i = 0; i < MAX_WATCHES; i++) {
    struct berth__watch *watch = &watches[i];
    const uintptr_t base = atomic_load(&watch->base);
    const size_t size = atomic_load(&watch->size);
    if (base > 1 && address >= base && address - base < size && atomic_load(&watch->base) == base)
      return sigbus_replace(watch, base, size, address);
  }
  return false;
}

/* Restores the previous handler. */
static void sigbus_pass_on(int number, siginfo_t *info, void *context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else if (previous.sa_handler == SIG_DFL || (previous.sa_handler == SIG_IGN && info->si_code > 0)) {
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    (void)sigaction(number, &plain, NULL);
    (void)raise(number); /* delivered when this handler returns */
  } else if (previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
  }
}

static void sigbus_handle(int number, siginfo_t *info, void *context) {
  const int saved = errno;
  if (!sigbus_mend(info)) sigbus_pass_on(number, info, context);
  errno = saved;
}

static berth_status sigbus_install(berth_error *err) {
  struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
  if (atomic_load(&is_installed)) return BERTH_OK;
  page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
  action.sa_sigaction = sigbus_handle;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, NULL, &previous) != 0 || sigaction(SIGBUS, &action, NULL) != 0)
    return berth__fail(err, BERTH_UNSUPPORTED, "SIGBUS cannot be caught here: %s", strerror(errno));
  atomic_store(&is_installed, true);
  return BERTH_OK;
}

berth_status berth__sigbus_catch(berth_error *err) {
  pthread_mutex_lock(&install_lock);
  const berth_status status = sigbus_install(err);
  pthread_mutex_unlock(&install_lock);
  return status;
}

berth__watch *berth__sigbus_watch(const void *base, size_t size) {
  if (!atomic_load(&is_installed)) return NULL;
  for (size_t i = 0; i < MAX_WATCHES; i++) {
    struct berth__watch *watch = &watches[i];
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&watch->base, &none, 1)) continue;
    atomic_store(&watch->size, size);
    atomic_store(&watch->is_lost, false);
    atomic_store(&watch->base, (uintptr_t)base);
    return watch;
  }
  return NULL; /* table full: further files are not watched */
}

void berth__sigbus_unwatch(berth__watch *watch) {
  if (watch != NULL) atomic_store(&watch->base, 0);
}

int berth__sigbus_is_lost(const berth__watch *watch) { return watch != NULL && atomic_load(&watch->is_lost); }
#endif
