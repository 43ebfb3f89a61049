/* berth_session_run takes no memory: not from the context, not from the C library, not from the system.
 *
 * The C library's functions are replaced in this program by ones that count (with AddressSanitizer: by its hooks). The
 * system calls are counted by strace, which runs this program again; where strace is missing that part is skipped. */
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static _Atomic uint64_t library_calls;

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#if defined(HAS_ASAN)
#define COUNTS_LIBRARY 1
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));
static void saw_malloc(const volatile void *ptr, size_t size) {
  (void)ptr, (void)size;
  atomic_fetch_add(&library_calls, 1);
}
static void saw_free(const volatile void *ptr) {
  if (ptr != NULL) atomic_fetch_add(&library_calls, 1);
}
static void count_library_calls(void) {
  static bool is_installed;
  if (!is_installed) assert_true(__sanitizer_install_malloc_and_free_hooks(saw_malloc, saw_free) > 0);
  is_installed = true;
}
#elif defined(__GLIBC__)
#define COUNTS_LIBRARY 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *ptr);
void *malloc(size_t size) {
  atomic_fetch_add(&library_calls, 1);
  return __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  atomic_fetch_add(&library_calls, 1);
  return __libc_calloc(count, size);
}
void *realloc(void *ptr, size_t size) {
  atomic_fetch_add(&library_calls, 1);
  return __libc_realloc(ptr, size);
}
void *aligned_alloc(size_t align, size_t size) {
  atomic_fetch_add(&library_calls, 1);
  return __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size) {
  atomic_fetch_add(&library_calls, 1);
  *out = __libc_memalign(align, size);
  return *out == NULL ? 12 : 0; /* ENOMEM */
}
void free(void *ptr) {
  if (ptr != NULL) atomic_fetch_add(&library_calls, 1);
  __libc_free(ptr);
}
static void count_library_calls(void) {}
#else
#define COUNTS_LIBRARY 0
static void count_library_calls(void) {}
#endif

/* One graph a kind of work; sizes at which threads are worth their while. */
static const char *const graphs[] = {
    "graph \"mlp\" { input %x : f32[64, 128] param %w : f32[128, 256] const %b : f32[1] = [0.5]\n"
    "  %m = matmul(%x, %w) %a = add(%m, %b) %g = gelu(%a) %s = softmax(%g) %l = layer_norm(%s) %r = reduce_mean(%l)\n"
    "  output \"s\" = %s output \"r\" = %r }",
    "graph \"conv\" { input %x : f32[2, 8, 32, 32] param %w : f32[16, 8, 3, 3] param %t : f32[16, 4, 2, 2]\n"
    "  %c = conv(%x, %w) {pads = [1, 1, 1, 1]} %r = relu(%c) %p = max_pool(%r) {kernel = [2, 2], strides = [2, 2]}\n"
    "  %u = conv_transpose(%p, %t) {strides = [2, 2]} %n = group_norm(%u) {groups = 2} %a = avg_pool(%n) {kernel = [3, "
    "3]}\n"
    "  output \"a\" = %a }",
    "graph \"attention\" { input %x : f32[2, 64, 192] input %p : i64[64] %q, %k, %v = split(%x) {axis = 2}\n"
    "  %o = rope(%q, %p) {heads = 4} %a = attention(%o, %k, %v) {heads = 4, mode = \"causal\"} %n = rms_norm(%a)\n"
    "  %c = concat(%n, %a) {axis = 2} output \"c\" = %c }",
    "graph \"moves\" { input %x : f32[100, 300] input %i : i64[50] input %j : i64[2, 300] input %u : f32[2, 300]\n"
    "  %t = transpose(%x) {perm = [1, 0]} %e = exp(%t) %g = gather(%x, %i) {axis = 0} %s = scatter(%x, %j, %u) {axis = "
    "0}\n"
    "  %k, %l = top_k(%s) {k = 5} %c = cumsum(%s) {axis = 1} %p = pad(%g) {pads = [1, 1, 1, 1]} %m = arg_max(%c) {axis "
    "= 1}\n"
    "  %h = cast(%c) {to = \"f16\"} %w = where(%b, %x, %s) %b = lt(%x, %s) %d = clamp(%w) {min = 0} %z = flatten(%d)\n"
    "  output \"e\" = %e output \"k\" = %k output \"p\" = %p output \"m\" = %m output \"h\" = %h output \"z\" = %z }",
    "graph \"extents\" { input %x : f32[64, 64] %b = eq(%x, %x) %a = non_zero(%b) %t = transpose(%a) {perm = [1, 0]}\n"
    "  %g = gather_nd(%x, %t) %s = softmax(%g) {axis = 0} %n = non_zero(%x) %e = shape(%n) %u, %f, %i, %c = "
    "unique(%x)\n"
    "  %k = concat(%t, %t) {axis = 1} output \"s\" = %s output \"n\" = %n output \"e\" = %e output \"u\" = %u\n"
    "  output \"k\" = %k }",
};
#define N_GRAPHS (sizeof graphs / sizeof graphs[0])

typedef struct job {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
} job;

static void start(job *j, const char *text, uint32_t n_threads, uint32_t flags) {
  static const float zeros[65536];
  berth_error err;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(j, 0, sizeof *j);
  desc.n_threads = n_threads;
  desc.flags = flags;
  j->ctx = test_context_counting(&j->alloc);
  TEST_OK(berth_graph_parse(j->ctx, text, strlen(text), &j->graph, &err));
  TEST_OK(berth_session_create(j->graph, &desc, &j->session, &err));
  for (uint32_t i = 0; i < berth_graph_n_params(j->graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(j->graph, berth_graph_param_at(j->graph, i), &info, &err));
    assert_true(info.size <= sizeof zeros);
    TEST_OK(berth_session_set_param(j->session, info.name, zeros, (size_t)info.size, &err));
  }
}

/* Whether every thread but this one sleeps. */
static bool others_sleep(void) {
  char path[300], line[256];
  bool all = true;
  DIR *tasks = opendir("/proc/self/task");
  if (tasks == NULL) return true;
  for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    if (entry->d_name[0] == '.' || atol(entry->d_name) == (long)getpid()) continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    const char *end = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    all = all && end != NULL && end[2] == 'S';
    fclose(file);
  }
  closedir(tasks);
  return all;
}

/* A thread that starts takes memory by itself (with AddressSanitizer also in its first moments): wait until all of the
 * pool's threads wait for work. */
static void settle(void) {
  int quiet = 0;
  for (int i = 0; i < 6000 && quiet < 3; i++) { /* a minute: a busy machine has other things to do */
    usleep(10000);
    quiet = others_sleep() ? quiet + 1 : 0;
  }
}

static void finish(job *j) {
  berth_session_destroy(j->session);
  berth_graph_destroy(j->graph);
  test_context_done(j->ctx, &j->alloc);
}

static void run_takes_no_memory(void **state) {
  static const uint32_t threads[] = {1, 2, 4};
  (void)state;
  count_library_calls();
  for (size_t k = 0; k < N_GRAPHS * 6; k++) {
    job j;
    berth_error err;
    start(&j, graphs[k % N_GRAPHS], threads[k / N_GRAPHS % 3], k < N_GRAPHS * 3 ? 0 : BERTH_SESSION_CHECKED);
    settle();
    uint64_t context = atomic_load(&j.alloc.calls), bytes = atomic_load(&j.alloc.live_bytes);
    uint64_t before = atomic_load(&library_calls);
    berth_status status = BERTH_OK;
    for (int round = 0; round < 3 && status == BERTH_OK; round++) status = berth_session_run(j.session, &err);
    uint64_t after = atomic_load(&library_calls);
    TEST_OK(status);
    assert_int_equal(atomic_load(&j.alloc.calls), context);
    assert_int_equal(atomic_load(&j.alloc.live_bytes), bytes);
    if (after != before) fail_msg("graph %zu: %llu calls of malloc and free", k, (unsigned long long)(after - before));
    finish(&j);
  }
}

static void the_counter_counts(void **state) {
  (void)state;
  if (!COUNTS_LIBRARY) TEST_SKIP("this C library's malloc cannot be counted");
  count_library_calls();
  uint64_t before = atomic_load(&library_calls);
  void *volatile block = malloc(10);
  free(block);
  assert_true(atomic_load(&library_calls) >= before + 2);
}

/* ---- System calls --------------------------------------------------------------------------------------------- */

/* What strace runs: getppid marks where a run begins and where it ends. */
static int run_traced(void) {
  for (size_t k = 0; k < N_GRAPHS; k++) {
    job j;
    start(&j, graphs[k], 4, 0);
    settle();
    getppid();
    berth_status status = berth_session_run(j.session, NULL);
    getppid();
    if (status != BERTH_OK) return 1;
    finish(&j);
  }
  return 0;
}

/* Runs strace on this program; false: there is none, or it may not trace here. */
static bool trace(const char *report) {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return false;
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it cannot look for leaks while it is traced */
    if (freopen("/dev/null", "w", stderr) == NULL) _exit(127);
    execlp("strace", "strace", "-f", "-o", report, "-e", "trace=memory,getppid", self, "--traced", (char *)NULL);
    _exit(127);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_makes_no_system_call_that_takes_memory(void **state) {
  char line[512];
  int markers = 0, seen = 0;
  (void)state;
  const char *report = test_path("trace.txt");
  if (!trace(report)) TEST_SKIP("strace is not installed, or may not trace");
  FILE *file = fopen(report, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    if (strstr(line, "getppid(") != NULL) {
      markers++;
    } else if (markers % 2 == 1) {
      print_error("during a run: %s", line);
      seen++;
    }
  }
  fclose(file);
  assert_int_equal(markers, 2 * N_GRAPHS);
  assert_int_equal(seen, 0);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--traced") == 0) return run_traced();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_counter_counts),
      cmocka_unit_test(run_takes_no_memory),
      cmocka_unit_test(run_makes_no_system_call_that_takes_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
