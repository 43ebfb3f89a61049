/* The calls of the driver and of NVRTC. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/api.h"
#include "fake.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_cuda fake_cuda_state = {.memory = (uint64_t)2 << 30};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t taken; /* bytes of the device */

int fake_fails(const char *call) {
  bool fails = false;
  fake_cuda_state.calls++;
  pthread_mutex_lock(&lock);
  if (fake_cuda_state.fail_at != 0) fails = --fake_cuda_state.fail_at == 0;
  if (fails) snprintf(fake_cuda_state.failed_call, sizeof fake_cuda_state.failed_call, "%s", call);
  pthread_mutex_unlock(&lock);
  if (fails) fake_cuda_state.failed++;
  return fails;
}

#define MAY_FAIL() \
  if (fake_fails(__func__)) return fake_cuda_state.fail_with

static void *make(size_t size) {
  fake_cuda_state.made++;
  fake_cuda_state.live++;
  return calloc(1, size);
}

static int unmake(void *object) {
  if (object != NULL) fake_cuda_state.live--;
  free(object);
  return 0;
}

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text != NULL ? atoi(text) : otherwise;
}

/* ---- Devices ---- */

EXPORT int cuInit(unsigned flags) {
  (void)flags;
  MAY_FAIL();
  return number("FAKE_CUDA_DEVICES", 2) == 0 ? BERTH__CU_NO_DEVICE : number("FAKE_CUDA_INIT", 0);
}

EXPORT int cuDriverGetVersion(int *version) {
  *version = number("FAKE_CUDA_VERSION", 13000);
  return 0;
}

EXPORT int cuGetErrorName(int result, const char **text) {
  *text = result == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_FAKE";
  return 0;
}

EXPORT int cuGetErrorString(int result, const char **text) {
  *text = result == 2 ? "out of memory" : result == 719 ? "unspecified launch failure" : "it was told to fail";
  return 0;
}

EXPORT int cuDeviceGetCount(int *count) {
  MAY_FAIL();
  *count = number("FAKE_CUDA_DEVICES", 2);
  return 0;
}

EXPORT int cuDeviceGet(int *device, int index) {
  *device = index + 10;
  return 0;
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, (size_t)size, "Fake GPU %d", device - 10);
  return 0;
}

#define FIRST_DEVICE 10

static int capability_of(int device) { return device == FIRST_DEVICE ? 90 : number("FAKE_CUDA_SECOND", 90); }

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
    case BERTH__CU_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case BERTH__CU_MAX_SHARED_PER_BLOCK: *value = 49152; break;
    case BERTH__CU_MAX_SHARED_OPTIN: *value = 232448; break;
    case BERTH__CU_WARP_SIZE: *value = 32; break;
    case BERTH__CU_CAPABILITY_MAJOR: *value = capability_of(device) / 10; break;
    case BERTH__CU_CAPABILITY_MINOR: *value = capability_of(device) % 10; break;
    default: return 1;
  }
  return 0;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = fake_cuda_state.memory;
  return 0;
}

/* ---- Contexts: one per device, and the stack of current ones ---- */

#define MOST_DEVICES 8
#define MOST_CURRENT 8

static char primary[MOST_DEVICES];
static berth__cu_context stack[MOST_CURRENT];

EXPORT int cuDevicePrimaryCtxRetain(berth__cu_context *context, int device) {
  MAY_FAIL();
  if (device < FIRST_DEVICE || device >= FIRST_DEVICE + MOST_DEVICES) return 101;
  fake_cuda_state.made++;
  fake_cuda_state.live++;
  *context = (berth__cu_context)(void *)&primary[device - FIRST_DEVICE];
  return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  fake_cuda_state.live--;
  return 0;
}

EXPORT int cuCtxPushCurrent_v2(berth__cu_context context) {
  const char *at = (const char *)(void *)context;
  if (at < primary || at >= primary + MOST_DEVICES || fake_cuda_state.current >= MOST_CURRENT) return 201;
  stack[fake_cuda_state.current++] = context;
  return 0;
}

EXPORT int cuCtxPopCurrent_v2(berth__cu_context *context) {
  if (fake_cuda_state.current <= 0) return 201;
  *context = stack[--fake_cuda_state.current];
  return 0;
}

static int current_device(void) {
  return FIRST_DEVICE + (int)((const char *)(void *)stack[fake_cuda_state.current - 1] - primary);
}

/* Calls that need a context fail without one. */
#define IN_CONTEXT()                              \
  do {                                            \
    if (fake_cuda_state.current <= 0) return 201; \
    MAY_FAIL();                                   \
  } while (0)

/* ---- Memory. Each block is preceded by its size, and filled with nonzero bytes ---- */

typedef struct head {
  uint64_t size, unused;
} head;

EXPORT int cuMemGetInfo_v2(size_t *left, size_t *total) {
  *left = fake_cuda_state.memory - taken;
  *total = fake_cuda_state.memory;
  return 0;
}

EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t size) {
  void *data = NULL;
  IN_CONTEXT();
  if (size == 0 || size > fake_cuda_state.memory - taken || posix_memalign(&data, 256, size + 256) != 0) return 2;
  head *h = (head *)((char *)data + 256 - sizeof(head));
  h->size = size;
  memset((char *)data + 256, 0xa5, size);
  taken += size;
  fake_cuda_state.made++;
  fake_cuda_state.live++;
  *address = (unsigned long long)(uintptr_t)data + 256;
  return 0;
}

EXPORT int cuMemFree_v2(unsigned long long address) {
  head *h = (head *)(uintptr_t)(address - sizeof(head));
  taken -= h->size;
  return unmake((void *)(uintptr_t)(address - 256));
}

EXPORT int cuMemHostAlloc(void **data, size_t size, unsigned flags) {
  (void)flags;
  IN_CONTEXT();
  *data = make(size);
  return *data != NULL ? 0 : 2;
}

EXPORT int cuMemFreeHost(void *data) { return unmake(data); }

/* ---- Streams: commands are executed when somebody queries their progress ---- */

typedef struct command {
  enum {
    COPY,
    FILL,
    EVENT,
    LAUNCH
  } kind;
  void *dst;
  const void *src;
  size_t size;
  unsigned char byte;
  struct command *next;
} command;

struct berth__cu_stream_s {
  command *first, **last;
  bool was_busy; /* reports busy once */
  int result;    /* error of a command; after it nothing is executed */
};

struct berth__cu_event_s {
  struct berth__cu_stream_s *stream;
  bool has_time, has_come, is_on_way;
  double ms;
};

static double clock_ms;

typedef struct exec_node {
  const fake_kernel *kernel; /* NULL: not a kernel */
  berth__cu_event event;
  unsigned groups, threads;
  uint64_t values[32];
  unsigned n_values;
  size_t *after, n_after;
} exec_node;

struct berth__cu_graph_s {
  exec_node *nodes;
  size_t n;
};

struct berth__cu_exec_s {
  exec_node *nodes;
  size_t n;
  bool *is_done;
};

static bool is_ready(const struct berth__cu_exec_s *exec, size_t i) {
  for (size_t k = 0; k < exec->nodes[i].n_after; k++)
    if (!exec->is_done[exec->nodes[i].after[k]]) return false;
  return !exec->is_done[i];
}

static int run_node(const exec_node *node) {
  void *params[32];
  clock_ms += 0.25;
  if (node->event != NULL) {
    node->event->has_come = true;
    node->event->ms = clock_ms;
  }
  if (node->kernel == NULL) return 0;
  for (unsigned i = 0; i < node->n_values; i++) params[i] = (void *)(uintptr_t)&node->values[i];
  return fake_kernel_run(node->kernel, node->groups, node->threads, params);
}

/* Runs the last node that may run first, so that a missing edge has an effect. */
static int run_exec(struct berth__cu_exec_s *exec) {
  memset(exec->is_done, 0, exec->n * sizeof *exec->is_done);
  for (size_t done = 0; done < exec->n; done++) {
    size_t i = exec->n;
    while (i > 0 && !is_ready(exec, i - 1)) i--;
    if (i == 0) return 719; /* a cycle */
    const int result = run_node(&exec->nodes[i - 1]);
    if (result != 0) return result;
    exec->is_done[i - 1] = true;
  }
  return 0;
}

static int do_command(const command *c) {
  switch (c->kind) {
    case COPY: memmove(c->dst, c->src, c->size); return 0;
    case FILL: memset(c->dst, c->byte, c->size); return 0;
    case EVENT: ((berth__cu_event)c->dst)->has_come = true; return 0;
    default: return run_exec(c->dst);
  }
}

static void work_off(berth__cu_stream stream) {
  while (stream->first != NULL) {
    command *c = stream->first;
    stream->first = c->next;
    if (stream->result == 0) stream->result = do_command(c);
    if (c->kind == EVENT) ((berth__cu_event)c->dst)->is_on_way = false;
    free(c);
  }
  stream->last = &stream->first;
}

static int put(berth__cu_stream stream, command c) {
  command *kept = malloc(sizeof *kept);
  if (kept == NULL || stream == NULL) return 1;
  c.next = NULL;
  *kept = c;
  *stream->last = kept;
  stream->last = &kept->next;
  stream->was_busy = false;
  return stream->result;
}

static int look(berth__cu_stream stream) {
  if (fake_cuda_state.hangs) return BERTH__CU_NOT_READY;
  if (stream->first != NULL && !stream->was_busy) {
    stream->was_busy = true;
    return BERTH__CU_NOT_READY;
  }
  work_off(stream);
  return stream->result;
}

EXPORT int cuStreamCreate(berth__cu_stream *stream, unsigned flags) {
  (void)flags;
  IN_CONTEXT();
  *stream = make(sizeof **stream);
  (*stream)->last = &(*stream)->first;
  return 0;
}

EXPORT int cuStreamDestroy_v2(berth__cu_stream stream) {
  work_off(stream);
  return unmake(stream);
}

EXPORT int cuStreamQuery(berth__cu_stream stream) {
  MAY_FAIL();
  return look(stream);
}

EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long dst, const void *src, size_t size, berth__cu_stream stream) {
  IN_CONTEXT();
  return put(stream, (command){.kind = COPY, .dst = (void *)(uintptr_t)dst, .src = src, .size = size});
}

EXPORT int cuMemcpyDtoHAsync_v2(void *dst, unsigned long long src, size_t size, berth__cu_stream stream) {
  IN_CONTEXT();
  return put(stream, (command){.kind = COPY, .dst = dst, .src = (const void *)(uintptr_t)src, .size = size});
}

EXPORT int cuMemcpyDtoDAsync_v2(unsigned long long dst, unsigned long long src, size_t size, berth__cu_stream stream) {
  IN_CONTEXT();
  if (dst < src + size && src < dst + size) return 1; /* undefined in the real driver */
  return put(stream,
             (command){.kind = COPY, .dst = (void *)(uintptr_t)dst, .src = (const void *)(uintptr_t)src, .size = size});
}

EXPORT int cuMemsetD8Async(unsigned long long dst, unsigned char byte, size_t size, berth__cu_stream stream) {
  IN_CONTEXT();
  return put(stream, (command){.kind = FILL, .dst = (void *)(uintptr_t)dst, .size = size, .byte = byte});
}

/* ---- Events ---- */

EXPORT int cuEventCreate(berth__cu_event *event, unsigned flags) {
  IN_CONTEXT();
  *event = make(sizeof **event);
  (*event)->has_time = (flags & BERTH__CU_EVENT_DISABLE_TIMING) == 0;
  return 0;
}

EXPORT int cuEventDestroy_v2(berth__cu_event event) { return unmake(event); }

EXPORT int cuEventRecord(berth__cu_event event, berth__cu_stream stream) {
  IN_CONTEXT();
  if (stream == NULL) { /* the default stream, used by others: nothing is pending on it */
    fake_cuda_state.default_events++;
    event->is_on_way = false;
    event->has_come = true;
    return 0;
  }
  event->stream = stream;
  event->has_come = false;
  event->is_on_way = true;
  return put(stream, (command){.kind = EVENT, .dst = event});
}

EXPORT int cuEventQuery(berth__cu_event event) {
  MAY_FAIL();
  return event->is_on_way ? look(event->stream) : 0;
}

EXPORT int cuEventElapsedTime(float *ms, berth__cu_event from, berth__cu_event to) {
  MAY_FAIL();
  if (!from->has_time || !to->has_time) return 400;
  if (!from->has_come || !to->has_come) return BERTH__CU_NOT_READY;
  *ms = (float)(to->ms - from->ms);
  return 0;
}

/* ---- Modules: an image is a magic number, its target, and the source on the next line ---- */

static const char elf_mark[] =
    "\x7f"
    "ELFfake ";
static const char ptx_mark[] = "//\n// fake ";

/* The source of an image that runs on this device: code only for its own kind, PTX for it and newer ones. And its
 * target. */
static const char *source_of(const char *image, int capability, int *compiled_for) {
  int made_for = 0;
  if (strncmp(image, elf_mark, sizeof elf_mark - 1) == 0) {
    image += sizeof elf_mark - 1;
    if (sscanf(image, "sm_%d\n", &made_for) != 1 || made_for != capability) return NULL;
  } else if (strncmp(image, ptx_mark, sizeof ptx_mark - 1) == 0) {
    image += sizeof ptx_mark - 1;
    if (sscanf(image, "compute_%d\n", &made_for) != 1 || made_for > capability) return NULL;
    image = strchr(image, '\n') + 1; /* skips to the line with the mark of the driver */
  }
  const char *line = made_for != 0 ? strchr(image, '\n') : NULL;
  *compiled_for = made_for;
  return line != NULL ? line + 1 : NULL;
}

struct berth__cu_module_s {
  fake_kernel *kernel;
};

EXPORT int cuModuleLoadData(berth__cu_module *module, const void *image) {
  IN_CONTEXT();
  int compiled_for = 0;
  const char *source = source_of(image, capability_of(current_device()), &compiled_for);
  if (source == NULL) return BERTH__CU_NO_BINARY_FOR_GPU;
  fake_kernel *kernel = fake_kernel_load(source);
  if (kernel == NULL) return 200;
  if (compiled_for >= 90) fake_kernel_let_await(kernel);
  *module = make(sizeof **module);
  (*module)->kernel = kernel;
  return 0;
}

EXPORT int cuModuleUnload(berth__cu_module module) {
  fake_kernel_free(module->kernel);
  return unmake(module);
}

EXPORT int cuModuleGetFunction(berth__cu_function *function, berth__cu_module module, const char *name) {
  IN_CONTEXT();
  if (!fake_kernel_has_entry(module->kernel, name)) return 500;
  *function = (berth__cu_function)(void *)module->kernel;
  return 0;
}

EXPORT int cuFuncSetAttribute(berth__cu_function function, int attribute, int value) {
  IN_CONTEXT();
  if (attribute != BERTH__CU_FUNCTION_DYNAMIC_SHARED || value <= 49152 || value > 232448) return 1;
  fake_kernel_allow_shared((fake_kernel *)(void *)function, (unsigned)value);
  return 0;
}

/* ---- Graphs ---- */

EXPORT int cuGraphCreate(berth__cu_graph *graph, unsigned flags) {
  (void)flags;
  MAY_FAIL();
  *graph = make(sizeof **graph);
  return 0;
}

static void free_nodes(exec_node *nodes, size_t n) {
  for (size_t i = 0; i < n; i++) free(nodes[i].after);
  free(nodes);
}

EXPORT int cuGraphDestroy(berth__cu_graph graph) {
  free_nodes(graph->nodes, graph->n);
  return unmake(graph);
}

/* A node's handle is its number, counted from 1. */
static int add_node(berth__cu_node *node, berth__cu_graph graph, const berth__cu_node *after, size_t n_after,
                    exec_node what) {
  MAY_FAIL();
  exec_node *nodes = realloc(graph->nodes, (graph->n + 1) * sizeof *nodes);
  if (nodes == NULL) return 2;
  graph->nodes = nodes;
  what.after = calloc(n_after + 1, sizeof *what.after);
  for (size_t i = 0; i < n_after; i++) {
    what.after[i] = (size_t)(uintptr_t)after[i] - 1;
    if (what.after[i] >= graph->n) return 1;
  }
  what.n_after = n_after;
  graph->nodes[graph->n++] = what;
  *node = (berth__cu_node)(uintptr_t)graph->n;
  return 0;
}

EXPORT int cuGraphAddKernelNode_v2(berth__cu_node *node, berth__cu_graph graph, const berth__cu_node *after,
                                   size_t n_after, const berth__cu_kernel_node *kernel) {
  exec_node what = {.kernel = (const fake_kernel *)(const void *)kernel->function,
                    .groups = kernel->grid[0],
                    .threads = kernel->block[0]};
  if (what.kernel == NULL || what.groups == 0 || kernel->grid[1] != 1 || kernel->grid[2] != 1) return 1;
  if (kernel->shared_bytes != fake_kernel_shared(what.kernel)) return 1; /* more than allowed, or less than used */
  what.n_values = fake_kernel_n_params(what.kernel);
  for (unsigned i = 0; i < what.n_values; i++) memcpy(&what.values[i], kernel->params[i], sizeof what.values[i]);
  return add_node(node, graph, after, n_after, what);
}

/* Only edges between kernels, from one that releases the next to one that waits explicitly. They are executed like any
 * other edge: what a kernel does before it waits cannot be observed. */
EXPORT int cuGraphAddDependencies_v2(berth__cu_graph graph, const berth__cu_node *from, const berth__cu_node *to,
                                     const berth__cu_edge *edges, size_t n) {
  MAY_FAIL();
  for (size_t i = 0; i < n; i++) {
    const size_t first = (size_t)(uintptr_t)from[i] - 1, second = (size_t)(uintptr_t)to[i] - 1;
    if (first >= graph->n || second >= graph->n || first >= second) return 1;
    if (edges[i].from_port != 1 || edges[i].to_port != 0 || edges[i].type != 1) return 1;
    exec_node *node = &graph->nodes[second];
    if (graph->nodes[first].kernel == NULL || node->kernel == NULL || !fake_kernel_awaits(node->kernel)) return 1;
    node->after = realloc(node->after, (node->n_after + 2) * sizeof *node->after);
    node->after[node->n_after++] = first;
    fake_cuda_state.early_edges++;
  }
  return 0;
}

EXPORT int cuGraphAddEmptyNode(berth__cu_node *node, berth__cu_graph graph, const berth__cu_node *after,
                               size_t n_after) {
  return add_node(node, graph, after, n_after, (exec_node){0});
}

EXPORT int cuGraphAddEventRecordNode(berth__cu_node *node, berth__cu_graph graph, const berth__cu_node *after,
                                     size_t n_after, berth__cu_event event) {
  return add_node(node, graph, after, n_after, (exec_node){.event = event});
}

EXPORT int cuGraphInstantiateWithFlags(berth__cu_exec *exec, berth__cu_graph graph, unsigned long long flags) {
  (void)flags;
  IN_CONTEXT();
  *exec = make(sizeof **exec);
  (*exec)->n = graph->n;
  (*exec)->nodes = calloc(graph->n + 1, sizeof *graph->nodes);
  (*exec)->is_done = calloc(graph->n + 1, sizeof(bool));
  for (size_t i = 0; i < graph->n; i++) {
    exec_node *to = &(*exec)->nodes[i];
    *to = graph->nodes[i];
    to->after = calloc(to->n_after + 1, sizeof *to->after);
    memcpy(to->after, graph->nodes[i].after, to->n_after * sizeof *to->after);
  }
  return 0;
}

EXPORT int cuGraphUpload(berth__cu_exec exec, berth__cu_stream stream) {
  (void)exec, (void)stream;
  IN_CONTEXT();
  return 0;
}

EXPORT int cuGraphLaunch(berth__cu_exec exec, berth__cu_stream stream) {
  IN_CONTEXT();
  fake_cuda_state.launches++;
  return put(stream, (command){.kind = LAUNCH, .dst = exec});
}

EXPORT int cuGraphExecDestroy(berth__cu_exec exec) {
  free_nodes(exec->nodes, exec->n);
  free(exec->is_done);
  return unmake(exec);
}

/* ---- NVRTC: a program is its source, and its target ---- */

typedef struct fake_program {
  char architecture[40];
  char source[];
} fake_program;

#define LEAST_STACK ((size_t)4 << 20) /* compilers need some */

static bool has_stack(void) {
  pthread_attr_t attr;
  size_t size = 0;
  void *base;
  if (pthread_getattr_np(pthread_self(), &attr) != 0) return false;
  (void)pthread_attr_getstack(&attr, &base, &size);
  pthread_attr_destroy(&attr);
  return size >= LEAST_STACK;
}

EXPORT const char *nvrtcGetErrorString(int result) { return result == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_FAKE"; }

EXPORT int nvrtcGetNumSupportedArchs(int *count) {
  MAY_FAIL();
  *count = 3;
  return 0;
}

EXPORT int nvrtcGetSupportedArchs(int *archs) {
  const int known[] = {75, 80, number("FAKE_CUDA_ARCH", 90)};
  MAY_FAIL();
  memcpy(archs, known, sizeof known);
  return 0;
}

EXPORT int nvrtcCreateProgram(fake_program **program, const char *source, const char *name, int n,
                              const char *const *headers, const char *const *names) {
  (void)name, (void)n, (void)headers, (void)names;
  MAY_FAIL();
  fake_program *p = calloc(1, sizeof *p + strlen(source) + 1);
  if (p == NULL) return 1;
  strcpy(p->source, source);
  fake_cuda_state.made++;
  fake_cuda_state.live++;
  *program = p;
  return 0;
}

EXPORT int nvrtcCompileProgram(fake_program *program, int n, const char *const *options) {
  static const char target[] = "--gpu-architecture=";
  const bool is_old = getenv("FAKE_NVRTC_OLD") != NULL;
  bool is_strict = false, keeps_limit = is_old;
  MAY_FAIL();
  for (int i = 0; i < n; i++) {
    const bool is_limit = strcmp(options[i], "--modify-stack-limit=false") == 0;
    if (is_old && (is_limit || strstr(options[i], "=sm_90a") != NULL)) return 5; /* an invalid option */
    keeps_limit |= is_limit;
    is_strict |= strcmp(options[i], "--fmad=false") == 0;
    if (strncmp(options[i], target, sizeof target - 1) == 0)
      snprintf(program->architecture, sizeof program->architecture, "%s", options[i] + sizeof target - 1);
  }
  fake_cuda_state.compiled++;
  pthread_mutex_lock(&lock);
  memcpy(fake_cuda_state.architecture, program->architecture, sizeof program->architecture);
  pthread_mutex_unlock(&lock);
  if (!has_stack()) return 1;
  const bool has_units = atoi(strchr(program->architecture, '_') + 1) >= 80;
  if (strstr(program->source, "mma.sync") != NULL && !has_units) return 6;
  const bool is_good = is_strict && keeps_limit && strstr(program->source, "BERTH_KERNEL(") != NULL;
  return is_good && !fake_cuda_state.refuses_source ? 0 : 6;
}

static const char complaint[] = "kernel.cu(3): warning: so what\nkernel.cu(7): error: it was told to refuse\n1 error";

EXPORT int nvrtcGetProgramLogSize(const fake_program *program, size_t *size) {
  (void)program;
  *size = sizeof complaint;
  return 0;
}

EXPORT int nvrtcGetProgramLog(const fake_program *program, char *log) {
  (void)program;
  memcpy(log, complaint, sizeof complaint);
  return 0;
}

/* PTX has an additional line. */
static size_t image_size(const fake_program *program, const char *mark) {
  const size_t of_ptx = strlen(".target sm_") + strlen(program->architecture) + 1;
  return strlen(mark) + strlen(program->architecture) + 1 + (mark == ptx_mark ? of_ptx : 0) + strlen(program->source) +
         1;
}

static void write_image(const fake_program *program, const char *mark, char *code) {
  code += sprintf(code, "%s%s\n", mark, program->architecture);
  if (mark == ptx_mark) code += sprintf(code, ".target sm_%s\n", strchr(program->architecture, '_') + 1);
  strcpy(code, program->source);
}

/* There is code only for a target of one kind of GPU. */
static bool has_code(const fake_program *program) { return strncmp(program->architecture, "sm_", 3) == 0; }

EXPORT int nvrtcGetCUBINSize(const fake_program *program, size_t *size) {
  MAY_FAIL();
  *size = has_code(program) ? image_size(program, elf_mark) : 0;
  return 0;
}

EXPORT int nvrtcGetCUBIN(const fake_program *program, char *code) {
  MAY_FAIL();
  if (has_code(program)) write_image(program, elf_mark, code);
  return 0;
}

EXPORT int nvrtcGetPTXSize(const fake_program *program, size_t *size) {
  MAY_FAIL();
  *size = image_size(program, ptx_mark);
  return 0;
}

EXPORT int nvrtcGetPTX(const fake_program *program, char *code) {
  MAY_FAIL();
  write_image(program, ptx_mark, code);
  return 0;
}

EXPORT int nvrtcDestroyProgram(fake_program **program) {
  free(*program);
  *program = NULL;
  fake_cuda_state.live--;
  return 0;
}
