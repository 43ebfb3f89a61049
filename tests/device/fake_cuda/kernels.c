/* Kernels of the fake driver: sources become C files, those a shared library, and its functions are called for every
 * thread of every group. Threads of groups with barriers are coroutines. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "fake.h"

struct fake_kernel {
  void (*call)(void **params);
  unsigned *group, *thread;
  void (**barrier)(void);
  char entry[64];
  unsigned n_params;
  unsigned shared; /* bytes requested by launches */
  bool has_barriers;
  bool awaits; /* it waits before it uses results of previous kernels */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- From CUDA C to C, and from Metal to C++ ---- */

extern const unsigned char fake_cuda_shim[], fake_metal_shim[]; /* shim.h, shim_metal.h */
extern const size_t fake_cuda_shim_size, fake_metal_shim_size;

typedef struct language {
  const char *ending;    /* suffix of collected sources */
  const char *file;      /* suffix of the generated files */
  const char *batch;     /* the file with all of them */
  const char *compiler;  /* with its options */
  const char *head;      /* beginning of the line that declares a kernel, up to the word before its name */
  const char *linkage;   /* precedes a function that is looked up by name */
  const char *parameter; /* expression for parameter %u */
  const char *last;      /* additional parameters */
} language;
static const language cuda_c = {".cu", "c", "batch", "cc -std=gnu11", "BERTH_KERNEL(", "", "*(void **)p[%u]", ""};
static const language metal = {".metal",
                               "cc",
                               "batch_metal",
                               "c++ -std=gnu++14",
                               "kernel void",
                               "extern \"C\" ",
                               "fake_pointer{*(void **)p[%u]}",
                               ", blockIdx.x, threadIdx.x"};

static const language *language_of(const char *source) {
  return strstr(source, "<metal_stdlib>") != NULL ? &metal : &cuda_c;
}

static void write_shim(FILE *out, const language *l) {
  if (l == &metal)
    fwrite(fake_metal_shim, 1, fake_metal_shim_size, out);
  else
    fwrite(fake_cuda_shim, 1, fake_cuda_shim_size, out);
}

static const char *const shared_names[] = {"berth_div_i32",    "berth_rem_i32",    "berth_div_u32", "berth_rem_u32",
                                           "berth_multiply_0", "berth_multiply_1", "berth_load_0",  "berth_load_1",
                                           "berth_add_0",      "berth_add_1",      "berth_to_half", "berth_pack_half",
                                           "berth_quotient"};

static uint64_t hash(const char *text) {
  uint64_t h = 1469598103934665603u;
  for (; *text != '\0'; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

/* The source after the prologue: from the comment with the kernel's name on. */
static const char *body_of(const char *source) {
  const char *at = strstr(source, "\n// ");
  return at != NULL ? at + 1 : NULL;
}

/* Functions in which threads wait for others. */
static const char *const meetings[] = {"__syncthreads", "threadgroup_barrier", "berth_exchange(", "simd_shuffle_xor("};

static bool read_head(const char *body, const language *l, fake_kernel *k) {
  const char *head = strstr(body, l->head), *name = head != NULL ? strchr(head + strlen(l->head), ' ') : NULL;
  const char *open = name != NULL ? strchr(name, '(') : NULL, *close = open != NULL ? strstr(open, ") {") : NULL;
  if (close == NULL || (size_t)(open - name - 1) >= sizeof k->entry) return false;
  memcpy(k->entry, name + 1, (size_t)(open - name - 1));
  k->entry[open - name - 1] = '\0';
  for (const char *c = open; c < close; c++) k->n_params += *c == '*';
  for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++)
    k->has_barriers = k->has_barriers || strstr(body, meetings[i]) != NULL;
  return true;
}

/* One kernel of a file, with unique names. */
static void write_kernel(FILE *out, const char *body, const language *l, const fake_kernel *k, uint64_t id) {
  for (size_t i = 0; i < sizeof shared_names / sizeof *shared_names; i++)
    fprintf(out, "#undef %s\n#define %s %s_%016llx\n", shared_names[i], shared_names[i], shared_names[i],
            (unsigned long long)id);
  fprintf(out, "#define %s e_%016llx\n%s", k->entry, (unsigned long long)id, body);
  fprintf(out, "%svoid k_%016llx(void **p) { %s(", l->linkage, (unsigned long long)id, k->entry);
  for (unsigned i = 0; i < k->n_params; i++) {
    fputs(i != 0 ? ", " : "", out);
    fprintf(out, l->parameter, i);
  }
  fprintf(out, "%s); }\n#undef %s\n", l->last, k->entry);
}

static const char *folder(void) {
  const char *path = getenv("FAKE_CUDA_DIR");
  return path != NULL ? path : "/nonexistent";
}

/* ---- From C to a library ---- */

static int compile(const language *l, const char *stem) {
  char command[4 * 4096];
  snprintf(command, sizeof command,
           "%s -O0 -w -fPIC -shared -ffp-contract=off -fno-strict-aliasing -o '%s.so.new' '%s.%s' -lm && "
           "mv '%s.so.new' '%s.so'",
           l->compiler, stem, stem, l->file, stem, stem);
  return system(command);
}

/* All collected sources together: of CUDA C, and of Metal. */
static void *batches[2];
static bool has_looked[2];

static bool ends_with(const char *name, const char *ending) {
  const size_t n = strlen(name), m = strlen(ending);
  return n >= m && strcmp(name + n - m, ending) == 0;
}

static char *read_file(const char *path) {
  struct stat about;
  FILE *file = fopen(path, "r");
  if (file == NULL || fstat(fileno(file), &about) != 0) return NULL;
  char *text = calloc(1, (size_t)about.st_size + 1);
  const size_t n = text != NULL ? fread(text, 1, (size_t)about.st_size, file) : 0;
  fclose(file);
  if (n == (size_t)about.st_size) return text;
  free(text);
  return NULL;
}

static void add_collected(FILE *out, const language *l, const char *name) {
  char path[4096];
  fake_kernel k = {0};
  snprintf(path, sizeof path, "%s/%s", folder(), name);
  char *source = read_file(path);
  if (source != NULL && body_of(source) != NULL && read_head(body_of(source), l, &k))
    write_kernel(out, body_of(source), l, &k, hash(source));
  free(source);
}

static void *open_batch(const language *l) {
  char stem[4000], path[4096];
  DIR *dir = opendir(folder());
  const struct dirent *entry;
  snprintf(stem, sizeof stem, "%s/%s", folder(), l->batch);
  snprintf(path, sizeof path, "%s.so", stem);
  if (dir != NULL && access(path, R_OK) != 0) {
    snprintf(path, sizeof path, "%s.%s", stem, l->file);
    FILE *out = fopen(path, "w");
    if (out != NULL) {
      write_shim(out, l);
      while ((entry = readdir(dir)) != NULL)
        if (ends_with(entry->d_name, l->ending)) add_collected(out, l, entry->d_name);
      fclose(out);
      if (compile(l, stem) != 0) fprintf(stderr, "fake_cuda: the collected kernels do not compile: see %s\n", path);
    }
    snprintf(path, sizeof path, "%s.so", stem);
  }
  if (dir != NULL) closedir(dir);
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *batch_of(const language *l) {
  const int which = l == &metal;
  if (!has_looked[which]) batches[which] = open_batch(l);
  has_looked[which] = true;
  return batches[which];
}

static void *compile_alone(const char *source, const fake_kernel *k, uint64_t id) {
  const language *l = language_of(source);
  char stem[4000], path[4096];
  snprintf(stem, sizeof stem, "%s/%016llx", folder(), (unsigned long long)id);
  snprintf(path, sizeof path, "%s.so", stem);
  if (access(path, R_OK) != 0) {
    snprintf(path, sizeof path, "%s.%s", stem, l->file);
    FILE *out = fopen(path, "w");
    if (out == NULL) return NULL;
    write_shim(out, l);
    write_kernel(out, body_of(source), l, k, id);
    fclose(out);
    if (compile(l, stem) != 0) return NULL;
    snprintf(path, sizeof path, "%s.so", stem);
  }
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static bool find_in(void *library, uint64_t id, fake_kernel *k) {
  char name[32];
  snprintf(name, sizeof name, "k_%016llx", (unsigned long long)id);
  void *call = library != NULL ? dlsym(library, name) : NULL;
  if (call == NULL) return false;
  memcpy(&k->call, &call, sizeof call);
  k->group = dlsym(library, "blockIdx");
  k->thread = dlsym(library, "threadIdx");
  k->barrier = dlsym(library, "fake_barrier");
  return true;
}

static void collect(const char *source) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%016llx%s", folder(), (unsigned long long)hash(source), language_of(source)->ending);
  FILE *out = fopen(path, "w");
  if (out == NULL) return;
  fputs(source, out);
  fclose(out);
}

fake_kernel *fake_kernel_load(const char *source) {
  fake_kernel *k = calloc(1, sizeof *k);
  const char *body = body_of(source);
  bool is_good = k != NULL && body != NULL && read_head(body, language_of(source), k);
  pthread_mutex_lock(&lock);
  if (is_good && getenv("FAKE_CUDA_COLLECT") != NULL) {
    collect(source);
  } else if (is_good) {
    const uint64_t id = hash(source);
    is_good = find_in(batch_of(language_of(source)), id, k) || find_in(compile_alone(source, k, id), id, k);
  }
  pthread_mutex_unlock(&lock);
  if (is_good) return k;
  free(k);
  return NULL;
}

void fake_kernel_free(fake_kernel *kernel) { free(kernel); }
int fake_kernel_has_entry(const fake_kernel *kernel, const char *name) { return strcmp(kernel->entry, name) == 0; }
void fake_kernel_allow_shared(fake_kernel *kernel, unsigned bytes) { kernel->shared = bytes; }
unsigned fake_kernel_shared(const fake_kernel *kernel) { return kernel->shared; }
void fake_kernel_let_await(fake_kernel *kernel) { kernel->awaits = true; }
int fake_kernel_awaits(const fake_kernel *kernel) { return kernel->awaits; }
unsigned fake_kernel_n_params(const fake_kernel *kernel) { return kernel->n_params; }

/* ---- Running, one group after the other ---- */

#define MOST_THREADS 1024
#define STACK ((size_t)256 << 10)

static struct {
  ucontext_t scheduler, threads[MOST_THREADS];
  bool is_over[MOST_THREADS];
  unsigned now;
  char *stacks;
  const fake_kernel *kernel;
  void **params;
} group;

static void barrier(void) { swapcontext(&group.threads[group.now], &group.scheduler); }

static void thread_main(void) {
  group.kernel->call(group.params);
  group.is_over[group.now] = true;
}

/* Runs from one barrier to the next; it is a kernel's error if only some threads end in between. */
static bool run_coroutines(unsigned n) {
  volatile unsigned n_over = 0; /* other stacks run in between */
  for (unsigned t = 0; t < n; t++) {
    getcontext(&group.threads[t]);
    group.threads[t].uc_stack.ss_sp = group.stacks + t * STACK;
    group.threads[t].uc_stack.ss_size = STACK;
    group.threads[t].uc_link = &group.scheduler;
    group.is_over[t] = false;
    makecontext(&group.threads[t], thread_main, 0);
  }
  while (n_over < n) {
    n_over = 0;
    for (unsigned t = 0; t < n; t++) {
      group.now = t;
      *group.kernel->thread = t;
      swapcontext(&group.scheduler, &group.threads[t]);
      n_over = n_over + group.is_over[t];
    }
    if (n_over != 0 && n_over != n) return false;
  }
  return true;
}

int fake_kernel_run(const fake_kernel *kernel, unsigned groups, unsigned threads, void **params) {
  if (kernel->call == NULL) return 0; /* collected */
  if (threads > MOST_THREADS) return 1;
  if (kernel->has_barriers && group.stacks == NULL) group.stacks = malloc(MOST_THREADS * STACK);
  group.kernel = kernel;
  group.params = params;
  *kernel->barrier = barrier;
  for (unsigned g = 0; g < groups; g++) {
    *kernel->group = g;
    for (unsigned t = 0; !kernel->has_barriers && t < threads; t++) {
      *kernel->thread = t;
      kernel->call(params);
    }
    if (kernel->has_barriers && !run_coroutines(threads)) {
      fake_cuda_state.wrong_barriers++;
      return 719;
    }
  }
  return 0;
}
