/* berth.h - plan one block of memory for a neural network, and run it there.
 *
 * Threads:   threads may share a context. A graph, plan, arena or session belongs to one thread at a time, but several
 *            threads may read a finished graph or plan. There is no global state.
 * Ownership: you own every handle that you get, until you call its _destroy (which accepts NULL). A context must
 * outlive everything made with it. A plan, arena or session keeps what it needs of its graph. Strings and data that you
 * pass are copied unless the function says otherwise. Strings that you get live as long as the handle they came from.
 * NULL:      functions that return a status refuse NULL handles with INVALID. Plain queries need valid handles.
 * Errors:    every function that can fail returns a status and fills *err (which may be NULL) with a full sentence. On
 *            failure *out is NULL and nothing else has changed.
 * Growth:    structs that may gain fields start with struct_size, and none of them is passed or returned by value.
 *            Start from the _INIT macro of the type. Fields are only added at the end.
 *            - A descriptor (_desc) is read up to its struct_size; fields beyond it have their defaults.
 *            - A result (_info, berth_slot, ...) is written up to its struct_size and never past it. Fields that the
 *              library does not know are set to 0. On failure the result is unchanged.
 *            - Where the library makes the struct and you read it (berth_model_info, the arguments of callbacks),
 *              struct_size says how many bytes it has.
 *            So a program built against an older header keeps working, and a struct_size that no version has is
 *            refused. Structs without struct_size are final: berth_error, berth_dim, berth_shape, berth_storage,
 *            berth_attr, berth_tensor, berth_array, berth_pack_buffer, berth_pack_heap, the lists of berth_model_info.
 */
#ifndef BERTH_BERTH_H
#define BERTH_BERTH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(BERTH_SHARED)
#ifdef BERTH_BUILDING
#define BERTH_API __declspec(dllexport)
#else
#define BERTH_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define BERTH_API __attribute__((visibility("default")))
#else
#define BERTH_API
#endif

#define BERTH_VERSION_MAJOR 0
#define BERTH_VERSION_MINOR 1
#define BERTH_VERSION_PATCH 0
#define BERTH_VERSION "0.1.0"

/* ---- Status and errors --------------------------------------------------------------------------------------- */

#define BERTH_STATUS_MAP(X) /* values are frozen; append only */ \
  X(OK, 0, "ok")                                                 \
  X(NOMEM, 1, "out of host memory")                              \
  X(DEVICE_NOMEM, 2, "out of device memory")                     \
  X(INVALID, 3, "invalid argument")                              \
  X(MALFORMED, 4, "malformed file")                              \
  X(UNSUPPORTED, 5, "not supported")                             \
  X(IO, 6, "i/o error")                                          \
  X(DEVICE_LOST, 7, "device lost")                               \
  X(INFEASIBLE, 8, "does not fit")                               \
  X(INTERNAL, 9, "internal error")                               \
  X(CANCELLED, 10, "cancelled")

typedef enum berth_status {
#define BERTH_STATUS_ENUM(name, value, text) BERTH_##name = value,
  BERTH_STATUS_MAP(BERTH_STATUS_ENUM)
#undef BERTH_STATUS_ENUM
} berth_status;

typedef struct berth_error {
  berth_status status;
  char message[508]; /* what is wrong, where, and what would help; always terminated */
} berth_error;

BERTH_API const char *berth_status_name(berth_status status); /* "NOMEM"; "UNKNOWN" for anything else */
BERTH_API const char *berth_status_text(berth_status status); /* "out of host memory" */
BERTH_API const char *berth_version(void);                    /* the version of the library that is loaded */

/* ---- Types and shapes ---------------------------------------------------------------------------------------- */

#define BERTH_TYPE_MAP(X) /* name, value, text, bytes; values are frozen */ \
  X(F32, 1, "f32", 4)                                                       \
  X(F64, 2, "f64", 8)                                                       \
  X(F16, 3, "f16", 2)                                                       \
  X(BF16, 4, "bf16", 2)                                                     \
  X(I8, 5, "i8", 1)                                                         \
  X(U8, 6, "u8", 1)                                                         \
  X(I16, 7, "i16", 2)                                                       \
  X(I32, 8, "i32", 4)                                                       \
  X(I64, 9, "i64", 8)                                                       \
  X(U32, 10, "u32", 4)                                                      \
  X(BOOL, 11, "bool", 1)                                                    \
  X(U16, 12, "u16", 2)                                                      \
  X(U64, 13, "u64", 8)

/* Types whose elements lie in blocks with a scale of their own: weights that were quantised. The last axis of such a
 * value is a multiple of the block; the op `unpack` makes f32 of it. */
#define BERTH_BLOCK_TYPE_MAP(X)      /* name, value, text, elements of a block, bytes of a block; values are frozen */ \
  X(Q8_0, 64, "q8_0", 32, 34)        /* f16 scale, 32 x i8 */                                                          \
  X(Q4_0, 65, "q4_0", 32, 18)        /* f16 scale, 32 x 4 bits: 8 stands for 0 */                                      \
  X(Q4_1, 66, "q4_1", 32, 20)        /* f16 scale and offset, 32 x 4 bits */                                           \
  X(Q5_0, 67, "q5_0", 32, 22)        /* f16 scale, 32 x 5 bits: 16 stands for 0 */                                     \
  X(Q5_1, 68, "q5_1", 32, 24)        /* f16 scale and offset, 32 x 5 bits */                                           \
  X(Q2_K, 69, "q2_k", 256, 84)       /* 16 groups: 4-bit scales and minima, 2 bits */                                  \
  X(Q3_K, 70, "q3_k", 256, 110)      /* 16 groups: 6-bit scales, 3 bits */                                             \
  X(Q4_K, 71, "q4_k", 256, 144)      /* 8 groups: 6-bit scales and minima, 4 bits */                                   \
  X(Q5_K, 72, "q5_k", 256, 176)      /* 8 groups: 6-bit scales and minima, 5 bits */                                   \
  X(Q6_K, 73, "q6_k", 256, 210)      /* 16 groups: 8-bit scales, 6 bits */                                             \
  X(IQ2_XXS, 74, "iq2_xxs", 256, 66) /* 8 groups: 4-bit scales, points of a grid */                                    \
  X(IQ4_NL, 75, "iq4_nl", 32, 18)    /* f16 scale, 32 x 4 bits of a table */                                           \
  X(IQ4_XS, 76, "iq4_xs", 256, 136)  /* 8 groups: 6-bit scales, 4 bits of a table */                                   \
  X(MXFP4, 77, "mxfp4", 32, 17)      /* 8-bit exponent, 32 x 4-bit floats */                                           \
  X(IQ2_XS, 78, "iq2_xs", 256, 74)   /* 16 groups: 4-bit scales, points of a grid of 512 */                            \
  X(IQ2_S, 79, "iq2_s", 256, 82)     /* 16 groups: 4-bit scales, points of a grid of 1024 */                           \
  X(IQ3_XXS, 80, "iq3_xxs", 256, 98) /* 8 groups: 4-bit scales, points of a grid of 256 */                             \
  X(IQ3_S, 81, "iq3_s", 256, 110)    /* 8 groups: 4-bit scales, points of a grid of 512 */                             \
  X(Q4_0F, 82, "q4_0f", 32, 20)      /* as q4_0, with an f32 scale: ONNX's weights of 4 bits */                        \
  X(Q4_1F, 83, "q4_1f", 32, 24)      /* as q4_1, with an f32 scale and offset */

typedef enum berth_type {
  BERTH_TYPE_NONE = 0,
#define BERTH_TYPE_ENUM(name, value, text, bytes) BERTH_##name = value,
  BERTH_TYPE_MAP(BERTH_TYPE_ENUM)
#undef BERTH_TYPE_ENUM
#define BERTH_TYPE_ENUM(name, value, text, elements, bytes) BERTH_##name = value,
  BERTH_BLOCK_TYPE_MAP(BERTH_TYPE_ENUM)
#undef BERTH_TYPE_ENUM
} berth_type;

BERTH_API const char *berth_type_name(berth_type type);      /* "f32"; "none" for anything else */
BERTH_API size_t berth_type_size(berth_type type);           /* bytes of one element; 0 for block types and no types */
BERTH_API berth_type berth_type_from_name(const char *name); /* BERTH_TYPE_NONE when there is no such type */

/* How elements lie in memory: `elements` of them make a block of `bytes`. */
typedef struct berth_storage {
  berth_type type;   /* what the bytes are */
  uint32_t elements; /* of one block; 1 for plain types */
  uint32_t bytes;    /* of one block */
} berth_storage;

BERTH_API berth_storage berth_type_storage(berth_type type); /* in host memory; bytes 0 for anything but a type */
/* Bytes of `count` elements; 0 where they are no whole blocks or do not fit in 64 bits. */
BERTH_API uint64_t berth_storage_bytes(berth_storage storage, uint64_t count);
/* Elements of any type to and from f32. Block types: count is a multiple of the block; decoding is exact as far as f32
 * goes, encoding rounds as the format's definition does; formats that are searched for rather than rounded to (q2_k to
 * q6_k, mxfp4 and those whose names begin with iq) are not encoded: UNSUPPORTED. Into integers: to nearest even,
 * saturated, NaN becomes 0. */
BERTH_API berth_status berth_to_f32(berth_type type, const void *src, uint64_t count, float *dst, berth_error *err);
BERTH_API berth_status berth_from_f32(berth_type type, const float *src, uint64_t count, void *dst, berth_error *err);

#define BERTH_MAX_RANK 8

/* In a shape: a fixed extent (name NULL), or a named dimension (extent ignored) that is bound before planning.
 * A dimension that follows from named ones by arithmetic is shown as name "?" until it is bound.
 * In a binding: the extent that a name gets. */
typedef struct berth_dim {
  const char *name;
  int64_t extent;
} berth_dim;

typedef struct berth_shape {
  uint32_t rank; /* 0: a scalar */
  berth_dim dim[BERTH_MAX_RANK];
} berth_shape;

/* A shape with fixed extents; rank is cut at BERTH_MAX_RANK + 1, which every function refuses. */
BERTH_API berth_shape berth_shape_fixed(uint32_t rank, const int64_t *extents);

#ifndef __cplusplus
#define BERTH_SHAPE(...) \
  berth_shape_fixed((uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})
#endif

/* ---- Context: allocator, log, registered ops ------------------------------------------------------------------ */

typedef struct berth_context berth_context;

typedef enum berth_option_flag {
  BERTH_OPTION_NO_REUSE = 1 << 0, /* BERTH_PLAN_NO_REUSE in every plan (BERTH_ARENA_NO_REUSE=1; 0: not) */
  BERTH_OPTION_LOOPS_UNSHARED =
      1 << 1, /* the device "interp" gets kernels without shared memory (BERTH_LOOPS_SHARED=0) */
  /* A mapped file that shrinks while it is read is an error instead of the signal SIGBUS (BERTH_CATCH_SIGBUS=1; 0:
   * not). Installs a handler for the whole process, which stays, and passes on every SIGBUS that is not about a file
   * of this library. Without it, sizes are checked before and after files are read, but not in between. */
  BERTH_OPTION_CATCH_SIGBUS = 1 << 2
} berth_option_flag;

/* Device settings. The environment variable named beside a field overrides it. Fields and variables are read once, by
 * berth_context_create, which fails on an impossible value. NULL or 0: the default. */
typedef struct berth_options {
  uint32_t struct_size;
  uint32_t flags;                /* berth_option_flag */
  const char *cpu_isa;           /* BERTH_CPU_ISA: "avx512", "avx2", "portable"; default: the best of this machine */
  const char *cpu_backend;       /* BERTH_CPU_BACKEND: "dnnl", where the build has it */
  const char *cache_dir;         /* BERTH_CACHE_DIR: for compiled kernels; "": none; default: the user's cache folder */
  const char *shaderc;           /* BERTH_SHADERC: a file with shaderc, for vulkan */
  const char *vulkan_memory;     /* BERTH_VULKAN_MEMORY: "mapped" or "staged" */
  const char *vulkan_validation; /* BERTH_VULKAN_VALIDATION: "1", or "sync" to check barriers too; "0": off */
  double vulkan_timeout;         /* BERTH_VULKAN_TIMEOUT: seconds for one submission */
  uint64_t vulkan_max_binding;   /* BERTH_VULKAN_MAX_BINDING: at most this many bytes in one binding */
  const char *webgpu_library;    /* BERTH_WEBGPU_LIBRARY: a file with an implementation of WebGPU */
  const char *webgpu_offsets;    /* BERTH_WEBGPU_OFFSETS: "dynamic" or "static" */
  double webgpu_timeout;         /* BERTH_WEBGPU_TIMEOUT */
  uint64_t webgpu_max_binding;   /* BERTH_WEBGPU_MAX_BINDING */
  /* BERTH_MEMORY_LIMIT: at most this many bytes of host memory in one arena, or in one array that is computed while a
   * graph is bound; what needs more is refused before any of it is touched. Default: the memory that this machine, or
   * the control group of this process, has in all. */
  uint64_t memory_limit;
  uint64_t hash_seed;       /* BERTH_HASH_SEED: for tables of names; no result depends on it. Default: random */
  const char *cuda_library; /* BERTH_CUDA_LIBRARY: a file with NVIDIA's driver, in the place of libcuda.so.1 */
  const char
      *nvrtc; /* BERTH_NVRTC: a file with NVRTC, for cuda; default: that of CUDA_PATH, or one that is installed */
  double cuda_timeout;     /* BERTH_CUDA_TIMEOUT: seconds for one run */
  const char *kernel_pack; /* BERTH_KERNEL_PACK: a file that berth_kernels_pack wrote; it is looked at first */
} berth_options;
#define BERTH_OPTIONS_INIT                                                                                            \
  {                                                                                                                   \
    (uint32_t)sizeof(berth_options), 0, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, 0, 0, 0, 0, NULL, NULL, \
        0, NULL                                                                                                       \
  }

typedef struct berth_context_desc {
  uint32_t struct_size;
  uint32_t n_threads; /* default for sessions; 0: one per core */
  /* ptr NULL: allocate; new_size 0: free; otherwise resize. Must be safe to call from several threads.
   * Blocks are aligned as malloc's are (16 bytes). NULL: the C library. Everything the library allocates comes from
   * here, but for the arena of a device. */
  void *(*alloc)(void *user, void *ptr, size_t old_size, size_t new_size);
  void (*log)(void *user, int level, const char *text); /* NULL: silent. level 0 debug, 1 info, 2 warning */
  void *user;
  /* Progress while a session is created, on the creating thread: "planning", "compiling kernels", "writing
   * weights" (in bytes), "preparing weights". total 0: nobody knows. NULL: silent. */
  void (*progress)(void *user, const char *stage, uint64_t done, uint64_t total);
  const berth_options *options; /* NULL: the defaults, and what the environment says */
} berth_context_desc;
#define BERTH_CONTEXT_DESC_INIT \
  { (uint32_t)sizeof(berth_context_desc), 0, NULL, NULL, NULL, NULL, NULL }

BERTH_API berth_status berth_context_create(const berth_context_desc *desc, berth_context **out, berth_error *err);
BERTH_API void berth_context_destroy(berth_context *ctx);

/* ---- Cancelling ------------------------------------------------------------------------------------------------ */

/* A token that stops long operations. Plan and session descriptors may name one, which must then outlive the plan or
 * session. Any thread may request a stop, and so may a signal handler. The operation fails with BERTH_CANCELLED soon
 * after, and so does every later one that names the token, until the request is cleared. */
typedef struct berth_cancel berth_cancel;

BERTH_API berth_status berth_cancel_create(berth_context *ctx, berth_cancel **out, berth_error *err);
BERTH_API void berth_cancel_destroy(berth_cancel *cancel);
BERTH_API void berth_cancel_request(berth_cancel *cancel);
BERTH_API void berth_cancel_clear(berth_cancel *cancel);
BERTH_API int berth_cancel_is_requested(const berth_cancel *cancel);

/* ---- Graph: values made by nodes ------------------------------------------------------------------------------ */

typedef struct berth_graph berth_graph;
typedef uint32_t berth_value;       /* a tensor in a graph */
#define BERTH_VALUE_NONE UINT32_MAX /* no value: an optional input that is left out */

typedef enum berth_attr_kind {
  BERTH_ATTR_INT = 1,
  BERTH_ATTR_FLOAT = 2,
  BERTH_ATTR_STRING = 3,
  BERTH_ATTR_INTS = 4,
  BERTH_ATTR_FLOATS = 5,
  BERTH_ATTR_DIMS = 6 /* extents that may be named dimensions, as in reshape and expand */
} berth_attr_kind;

typedef struct berth_attr {
  const char *name;
  berth_attr_kind kind;
  uint32_t count; /* elements of the list kinds */
  int64_t i;
  double f;
  const char *s;
  const int64_t *ints;
  const double *floats;
  const berth_dim *dims;
} berth_attr;

BERTH_API berth_attr berth_attr_int(const char *name, int64_t value);
BERTH_API berth_attr berth_attr_float(const char *name, double value);
BERTH_API berth_attr berth_attr_string(const char *name, const char *value);
BERTH_API berth_attr berth_attr_ints(const char *name, const int64_t *values, uint32_t count);
BERTH_API berth_attr berth_attr_floats(const char *name, const double *values, uint32_t count);
BERTH_API berth_attr berth_attr_dims(const char *name, const berth_dim *values, uint32_t count);

/* Build one node at a time. Ops are named by strings, so a new op does not change the ABI; docs/ops.md lists them.
 * Shapes and types are inferred and checked at every step. Names must be unique in the graph; NULL generates one. */
BERTH_API berth_status berth_graph_create(berth_context *ctx, const char *name, berth_graph **out, berth_error *err);
BERTH_API void berth_graph_destroy(berth_graph *graph);
BERTH_API berth_status berth_graph_input(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                         berth_value *out, berth_error *err);
BERTH_API berth_status berth_graph_param(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                         berth_value *out, berth_error *err);
BERTH_API berth_status berth_graph_constant(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                            const void *data, size_t size, berth_value *out, berth_error *err);
/* A state is a value that outlives a run and that a run updates: a KV cache, a counter, a weight in training. `data`
 * is what it holds before the first run; NULL: zeros, and then its extents may be named dimensions. All bindings of
 * a session share the state, so such a name must be bound to the same extent in all of them. berth_graph_update sets
 * the value that the state becomes at the end of a run; `next` has its type and shape. Readers of the state in the
 * graph see what it held before the run, wherever they are. A state without an update stays constant during runs and
 * can be written between them. */
BERTH_API berth_status berth_graph_state(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                                         const void *data, size_t size, berth_value *out, berth_error *err);
BERTH_API berth_status berth_graph_update(berth_graph *graph, berth_value state, berth_value next, berth_error *err);
BERTH_API berth_status berth_graph_add(berth_graph *graph, const char *op, const berth_value *in, size_t n_in,
                                       const berth_attr *attrs, size_t n_attrs, berth_value *out, size_t n_out,
                                       berth_error *err);
BERTH_API berth_status berth_graph_output(berth_graph *graph, const char *name, berth_value value, berth_error *err);
BERTH_API berth_status berth_graph_rename(berth_graph *graph, berth_value value, const char *name, berth_error *err);

/* Gradients (reverse-mode differentiation): adds nodes, of public ops, that compute the derivatives of `loss` (a
 * scalar of a float type) by `n_of` values. grads[i] is the gradient of of[i], with its type and shape, to be named
 * as an output or read by other nodes; BERTH_VALUE_NONE: the loss does not depend on of[i]. UNSUPPORTED: a gradient
 * would have to pass through an op that has no rule, or a rule needs an extent that is unknown before the graph is
 * bound; the message names the node. Gradients of gradients work. docs/training.md has the rules. */
BERTH_API berth_status berth_graph_grad(berth_graph *graph, berth_value loss, const berth_value *of, size_t n_of,
                                        berth_value *grads, berth_error *err);

/* Training: turns the graph into one whose runs are training steps. Params become states that start with their
 * weights; the gradients of the loss by them are added, and an optimiser that updates them in place. `learning_rate`
 * is a new input, a scalar of f32: a schedule is what the caller writes into it. The optimiser's own states are
 * named after the params: "w.velocity", "w.mean", "w.square"; "train.step" counts steps. Losses are read as outputs,
 * weights with berth_session_state_read. A param of bf16 or f16 (mixed precision) has a master copy in f32,
 * "w.master", which the optimiser updates; the param is that copy, rounded. On failure nothing has changed. */
typedef enum berth_optimizer {
  BERTH_OPTIMIZER_SGD = 0,  /* w -= rate (velocity = momentum velocity + gradient) */
  BERTH_OPTIMIZER_ADAMW = 1 /* moments with bias correction, decoupled weight decay */
} berth_optimizer;

typedef struct berth_train_desc {
  uint32_t struct_size;
  berth_optimizer optimizer;
  double momentum;              /* SGD; 0: there is no velocity */
  double beta1, beta2, epsilon; /* AdamW */
  double weight_decay;          /* SGD adds it to the gradient, AdamW takes rate times it off the weight; 0: none */
  double clip;                  /* largest global norm of the gradients; 0: no clipping. Keeps all alive */
  const berth_value *params;    /* what is trained; the other params stay as they are. NULL: all of a float type */
  size_t n_params;
  /* Gradient accumulation: so many runs make a step. Gradients are summed in states ("w.sum"), and the last run updates
   * the weights with their mean. "train.run" counts runs, "train.step" steps. 0 and 1: every run is a step. */
  uint32_t accumulate;
} berth_train_desc;
#define BERTH_TRAIN_DESC_INIT \
  { (uint32_t)sizeof(berth_train_desc), BERTH_OPTIMIZER_ADAMW, 0.9, 0.9, 0.999, 1e-8, 0.01, 0, NULL, 0, 0 }
BERTH_API berth_status berth_graph_train(berth_graph *graph, berth_value loss, const berth_train_desc *desc,
                                         berth_error *err);

/* Low-rank adapters (LoRA): every product of a value and a matrix param [K, N] (or a transposed one, [N, K]) becomes
 * x W + alpha / rank (x A) B, with two new params "W.lora_a" [K, rank] and "W.lora_b" [rank, N], which are trained
 * instead of W. They have no weights yet; with B = 0 the graph computes what it did before. The result is a new
 * graph, in which values keep their names but have other numbers. A matrix that has other readers too (an embedding
 * that is also the last product) gets no adapter. INVALID: a param that is named here gets no adapter, or no param
 * does. */
typedef struct berth_lora_desc {
  uint32_t struct_size;
  uint32_t rank;             /* at least 1 */
  double alpha;              /* 0: the rank, so that the factor is 1 */
  const berth_value *params; /* whose products get adapters; NULL: all that are in one */
  size_t n_params;
} berth_lora_desc;
#define BERTH_LORA_DESC_INIT \
  { (uint32_t)sizeof(berth_lora_desc), 8, 0, NULL, 0 }
/* Small tensors of an ONNX file (up to 64 elements) are read as constants. This turns those that are weights (a bias
 * of ten numbers) into params with the elements that they have: float initializers with at least one axis that are
 * only used as weights (of products, convolutions, norms, recurrent layers), or added to or multiplied with a value
 * that depends on a weight. Call it before anything else is done with the graph that is to be trained. *n (NULL:
 * ignored): their number. */
BERTH_API berth_status berth_graph_thaw(berth_graph *graph, uint32_t *n, berth_error *err);
BERTH_API berth_status berth_graph_lora(const berth_graph *graph, const berth_lora_desc *desc, berth_graph **out,
                                        berth_error *err);

/* The whole graph. verify names the node that is wrong. parse reads what print writes. bind gives named dimensions
 * their extents and infers all shapes again, in a new graph whose values have the same numbers. */
typedef berth_status (*berth_write_fn)(void *user, const char *text, size_t size); /* anything but OK stops */
BERTH_API berth_status berth_graph_verify(const berth_graph *graph, berth_error *err);
BERTH_API berth_status berth_graph_print(const berth_graph *graph, berth_write_fn write, void *user, berth_error *err);
BERTH_API berth_status berth_graph_parse(berth_context *ctx, const char *text, size_t size, berth_graph **out,
                                         berth_error *err);
/* Files are mapped, not copied: neither the model nor its weights may change until the last graph, plan and session
 * made from them is gone. Replace a file by renaming another over it, which is safe at any time. A file that has
 * become shorter is an IO error when it would be read next (see BERTH_OPTION_CATCH_SIGBUS for files that shrink
 * during a read). */
BERTH_API berth_status berth_graph_load(berth_context *ctx, const char *path, berth_graph **out, berth_error *err);
typedef struct berth_load_desc {
  uint32_t struct_size;
  const char *weights; /* a file with the weights of every param, in place of those that the model names; NULL: none */
  berth_type kv;       /* how a GGUF model keeps keys and values; BERTH_TYPE_NONE: as f16 */
  /* Of memory that is only the beginning of a GGUF file: how many bytes the whole file has. Its header is enough for a
   * graph that is planned to the byte; its params have no weights. BERTH_IO: the header goes on after these bytes. 0:
   * the memory is the whole file. */
  uint64_t file_size;
  /* Extents of named dimensions of an ONNX file, for a model whose ranks depend on them (a Squeeze without axes): these
   * dimensions are fixed ones in the graph. Others are given when the graph is planned. */
  const berth_dim *dims;
  size_t n_dims;
} berth_load_desc;
#define BERTH_LOAD_DESC_INIT \
  { (uint32_t)sizeof(berth_load_desc), NULL, BERTH_TYPE_NONE, 0, NULL, 0 }
/* The same with options; desc NULL: the defaults. */
BERTH_API berth_status berth_graph_load_with(berth_context *ctx, const char *path, const berth_load_desc *desc,
                                             berth_graph **out, berth_error *err);
/* The same from memory (an ONNX or GGUF file, or text). The memory must not change until `release` is called, or, with
 * NULL, until the last graph, plan and session made from it is gone. `release` is called exactly once, even on failure.
 * Other files are not opened: an ONNX model with weights in another file is an error, and params of a text graph wait
 * for berth_graph_attach. */
typedef void (*berth_release_fn)(void *user, const void *data, size_t size);
BERTH_API berth_status berth_graph_from_memory(berth_context *ctx, const void *data, size_t size,
                                               berth_release_fn release, void *user, berth_graph **out,
                                               berth_error *err);
BERTH_API berth_status berth_graph_from_memory_with(berth_context *ctx, const void *data, size_t size,
                                                    berth_release_fn release, void *user, const berth_load_desc *desc,
                                                    berth_graph **out, berth_error *err);
BERTH_API berth_status berth_graph_bind(const berth_graph *graph, const berth_dim *dims, size_t n_dims,
                                        berth_graph **out, berth_error *err);
BERTH_API int berth_graph_equal(const berth_graph *a, const berth_graph *b); /* same names, ops, data and order */

/* Some inputs determine shapes (the second operand of an ONNX Reshape, for example). Their elements must be known when
 * a plan is made: berth_graph_fix turns such an input into a constant, and berth_graph_shapes_depend says which inputs
 * need it. Where every extent that depends on an input has an upper bound (such as the number of non-zeros), fixing is
 * optional: the plan reserves the bounds, and a run finds the extents. */
typedef enum berth_shapes {
  BERTH_SHAPES_FREE = 0,   /* no shape depends on the elements */
  BERTH_SHAPES_NEED = 1,   /* they must be known before a plan is made */
  BERTH_SHAPES_BOUNDED = 2 /* extents depend on them, and have upper bounds */
} berth_shapes;
BERTH_API int berth_graph_shapes_depend(const berth_graph *graph, berth_value input); /* berth_shapes */
BERTH_API berth_status berth_graph_fix(berth_graph *graph, const char *input, berth_type type, uint32_t rank,
                                       const int64_t *extents, const void *data, size_t size, berth_error *err);

/* Looking at a graph. */
typedef enum berth_value_kind {
  BERTH_VALUE_INPUT = 1,
  BERTH_VALUE_PARAM = 2,
  BERTH_VALUE_CONSTANT = 3,
  BERTH_VALUE_NODE = 4,
  BERTH_VALUE_DROPPED = 5, /* in the graph of a plan: no output needs it */
  BERTH_VALUE_STATE = 6
} berth_value_kind;

typedef struct berth_value_info {
  uint32_t struct_size;
  const char *name;
  berth_value_kind kind;
  berth_type type;
  berth_shape shape;
  uint32_t node;    /* the node that makes it (kind NODE) */
  const void *data; /* constants, params that have their weights, initial values of states; otherwise NULL */
  uint64_t size;    /* bytes; 0 while a dimension is not bound */
} berth_value_info;
#define BERTH_VALUE_INFO_INIT \
  { (uint32_t)sizeof(berth_value_info), NULL, BERTH_VALUE_NODE, BERTH_TYPE_NONE, {0, {{NULL, 0}}}, 0, NULL, 0 }

typedef struct berth_node_info {
  uint32_t struct_size;
  const char *name;
  const char *op;
  const berth_value *in;
  uint32_t n_in;
  const berth_value *out;
  uint32_t n_out;
  const berth_attr *attrs;
  uint32_t n_attrs;
} berth_node_info;
#define BERTH_NODE_INFO_INIT \
  { (uint32_t)sizeof(berth_node_info), NULL, NULL, NULL, 0, NULL, 0, NULL, 0 }

BERTH_API const char *berth_graph_name(const berth_graph *graph);
BERTH_API uint32_t berth_graph_n_values(const berth_graph *graph);
BERTH_API uint32_t berth_graph_n_nodes(const berth_graph *graph); /* nodes are in topological order */
BERTH_API uint32_t berth_graph_n_inputs(const berth_graph *graph);
BERTH_API uint32_t berth_graph_n_outputs(const berth_graph *graph);
BERTH_API uint32_t berth_graph_n_params(const berth_graph *graph);
BERTH_API uint32_t berth_graph_n_states(const berth_graph *graph);
BERTH_API uint32_t berth_graph_n_dims(const berth_graph *graph); /* named dimensions */
BERTH_API const char *berth_graph_dim_name(const berth_graph *graph, uint32_t index);
BERTH_API berth_value berth_graph_input_at(const berth_graph *graph, uint32_t index); /* NONE past the end */
BERTH_API berth_value berth_graph_param_at(const berth_graph *graph, uint32_t index);
BERTH_API berth_value berth_graph_state_at(const berth_graph *graph, uint32_t index);
BERTH_API berth_value berth_graph_next(const berth_graph *graph, berth_value state); /* NONE: it is never updated */
BERTH_API berth_value berth_graph_output_at(const berth_graph *graph, uint32_t index);
BERTH_API const char *berth_graph_output_name(const berth_graph *graph, uint32_t index);
BERTH_API berth_value berth_graph_find(const berth_graph *graph, const char *name); /* NONE when there is none */
BERTH_API berth_status berth_graph_value(const berth_graph *graph, berth_value value, berth_value_info *out,
                                         berth_error *err);
BERTH_API berth_status berth_graph_node(const berth_graph *graph, uint32_t node, berth_node_info *out,
                                        berth_error *err);
/* Bit k: the extent of axis k is an upper bound, since the true one follows from elements that only a run knows. For
 * the graph of a plan (and any other that is bound); bytes are planned for the bounds. */
BERTH_API uint32_t berth_graph_bounds(const berth_graph *graph, berth_value value);

/* ---- Files: weights and arrays -------------------------------------------------------------------------------- */

/* The formats that this build knows. */
typedef enum berth_format_part {
  BERTH_FORMAT_GRAPH = 1 << 0,   /* berth_graph_load reads it */
  BERTH_FORMAT_WEIGHTS = 1 << 1, /* berth_weights_open reads it */
  BERTH_FORMAT_ARRAY = 1 << 2    /* it is one array: berth_npy_load */
} berth_format_part;

typedef struct berth_format_info {
  uint32_t struct_size;
  uint32_t parts;          /* berth_format_part; 0: it is known by name alone */
  const char *name;        /* "onnx", "berth", "safetensors", "npy", "gguf" */
  const char *description; /* "an ONNX model" */
} berth_format_info;
#define BERTH_FORMAT_INFO_INIT \
  { (uint32_t)sizeof(berth_format_info), 0, NULL, NULL }

BERTH_API uint32_t berth_format_count(void);
BERTH_API berth_status berth_format_at(uint32_t index, berth_format_info *out, berth_error *err);
/* The format of a file, by its content, and by the end of its name where the content does not say. UNSUPPORTED: none
 * that is known. */
BERTH_API berth_status berth_file_format(const char *path, berth_format_info *out, berth_error *err);

/* Weights from a file, which is mapped rather than copied: it must not change while they are used (berth_graph_load).
 */
typedef struct berth_weights berth_weights;

typedef struct berth_weight_info {
  uint32_t struct_size;
  const char *name;
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  const void *data; /* inside the mapping; aligned to the element, or copied where the file does not align it */
  uint64_t size;
} berth_weight_info;
#define BERTH_WEIGHT_INFO_INIT \
  { (uint32_t)sizeof(berth_weight_info), NULL, BERTH_TYPE_NONE, 0, {0}, NULL, 0 }

BERTH_API berth_status berth_weights_open(berth_context *ctx, const char *path, berth_weights **out, berth_error *err);
/* The same from memory, which must not change until the last graph that uses it is gone. */
BERTH_API berth_status berth_weights_from_memory(berth_context *ctx, const void *data, size_t size, berth_weights **out,
                                                 berth_error *err);
BERTH_API void berth_weights_destroy(berth_weights *weights); /* graphs that use them keep them alive */
BERTH_API uint32_t berth_weights_count(const berth_weights *weights);
BERTH_API berth_status berth_weights_at(const berth_weights *weights, uint32_t index, berth_weight_info *out,
                                        berth_error *err);
BERTH_API uint32_t berth_weights_find(const berth_weights *weights, const char *name); /* UINT32_MAX: none */
/* Give every param of the graph its weights by name; a param that is missing or of another type or shape fails. */
BERTH_API berth_status berth_graph_attach(berth_graph *graph, const berth_weights *weights, berth_error *err);

/* Writes tensors as a safetensors file: names, types, shapes and data, each by its own berth_weight_info. What has the
 * name is whole at every moment: it is written beside it (".new"), brought to disk and renamed; a device or a pipe gets
 * the bytes as they come. UNSUPPORTED: a type that the format does not have. */
BERTH_API berth_status berth_weights_save(berth_context *ctx, const char *path, const berth_weight_info *weights,
                                          uint32_t n_weights, berth_error *err);
/* Writes the ONNX model in the file `model` to `path`, whole at every moment, with the data of its initializers
 * replaced by those of the weights with their names; their types and shapes must be the same. Everything else is as it
 * was, byte for byte. Tensors that the model keeps in other files are written to one beside `path`, with ".data" after
 * its name (or ".data2" and so on, where either model reads that). INVALID: the model has no initializer of such a
 * name. */
BERTH_API berth_status berth_model_save(berth_context *ctx, const char *model, const char *path,
                                        const berth_weight_info *weights, uint32_t n_weights, berth_error *err);

/* What a file says about itself, whether or not berth can load it. What a format does not have is 0, "" or empty. */
typedef struct berth_model_opset {
  const char *domain; /* "": ONNX's own */
  int64_t version;
} berth_model_opset;

typedef struct berth_model_op {
  const char *domain;
  const char *name;
  uint64_t count; /* nodes, with those of inner graphs and functions */
  int supported;  /* berth has this op; a node of it may still ask for what berth lacks, which loading says */
} berth_model_op;

typedef struct berth_model_value {
  const char *name;
  const char *type; /* "f32" and so on; what berth has no type for as the file calls it: "string", "sequence" */
  int has_shape;
  berth_shape shape; /* dimensions without an extent or a name are called "?"; rank is cut at BERTH_MAX_RANK + 1 */
} berth_model_value;

typedef struct berth_model_key { /* of GGUF */
  const char *name;
  const char *type; /* "u32", "string" and so on; of an array: of its elements */
  int is_array;
  uint64_t count;            /* elements of an array; otherwise 1 */
  const char *const *values; /* as text; of an array the first few, strings of it cut where they are long */
  size_t n_values;
} berth_model_key;

typedef struct berth_model_tensor { /* of GGUF */
  const char *name;
  const char *type; /* as the file's format calls it: "q4_K" */
  int supported;    /* berth has this type */
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK]; /* the slowest first */
  uint64_t size;               /* bytes; 0 where nobody knows the type */
} berth_model_tensor;

typedef struct berth_model_info {
  uint32_t struct_size;
  const char *format;                             /* as in berth_format_info */
  const char *name, *producer, *producer_version; /* "" where the file does not say */
  int64_t ir_version;                             /* ONNX; GGUF: the version of the file */
  uint64_t n_nodes;                               /* with those of inner graphs and functions */
  uint64_t n_functions;
  uint64_t n_params, param_elements, param_bytes; /* ONNX: initializers, and tensors in Constant nodes */
  const berth_model_opset *opsets;
  size_t n_opsets;
  const berth_model_op *ops; /* most frequent first */
  size_t n_ops;
  const berth_model_value *inputs, *outputs;
  size_t n_inputs, n_outputs;
  const char *const *files; /* that hold weights outside the model's own; GGUF: the parts of a split model */
  size_t n_files;
  uint64_t n_metadata;         /* entries of safetensors' __metadata__ */
  const berth_model_key *keys; /* GGUF, as are all that follow; in the file's order */
  const berth_model_tensor *tensors;
  size_t n_keys, n_tensors;
  const char *architecture;  /* "llama"; "" where the file does not say */
  const char *tokenizer;     /* as the file calls it: "llama", "gpt2", "bert", "t5"; "": it has none */
  const char *chat_template; /* "": it has none */
} berth_model_info;

BERTH_API berth_status berth_model_inspect(berth_context *ctx, const char *path, berth_model_info **out,
                                           berth_error *err);
/* The same of a file in memory, which is not needed any more afterwards. file_size: as in berth_load_desc. */
BERTH_API berth_status berth_model_inspect_memory(berth_context *ctx, const void *data, size_t size, uint64_t file_size,
                                                  berth_model_info **out, berth_error *err);
BERTH_API void berth_model_info_destroy(berth_model_info *info);
/* Whether a GGUF model has all that generating text or making vectors with it takes: an architecture, types of tensors
 * and a tokenizer that berth has. The error says what is missing. Reads no weights. */
BERTH_API berth_status berth_model_check(berth_context *ctx, const char *path, berth_error *err);

/* Arrays in NumPy's .npy format. */
typedef struct berth_array {
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  void *data; /* C order; from the context's allocator: free with berth_array_free */
  uint64_t size;
} berth_array;

BERTH_API berth_status berth_npy_load(berth_context *ctx, const char *path, berth_array *out, berth_error *err);
BERTH_API berth_status berth_npy_parse(berth_context *ctx, const void *data, size_t size, berth_array *out,
                                       berth_error *err);
BERTH_API berth_status berth_npy_save(berth_context *ctx, const char *path, const berth_array *array, berth_error *err);
BERTH_API void berth_array_free(berth_context *ctx, berth_array *array);

/* ---- Custom ops ----------------------------------------------------------------------------------------------- */

/* A tensor as a kernel sees it. Strides count elements. Operands are contiguous unless their bit is set in `strided`.
 */
typedef struct berth_tensor {
  void *data; /* NULL for an optional operand that is left out */
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  int64_t stride[BERTH_MAX_RANK];
} berth_tensor;

/* One call of a kernel. The attributes come in the order in which the op declares them, with defaults filled in. The
 * kernel does the work items [begin, end) and nothing else, possibly while other threads do other items. It is not
 * called when every output is empty. */
typedef struct berth_op_call {
  uint32_t struct_size;
  const berth_tensor *in;
  const berth_tensor *out;
  uint32_t n_in, n_out;
  const berth_attr *attrs;
  uint32_t n_attrs;
  int64_t begin, end;
  void *scratch; /* this call's own, as large as op.scratch asked for, aligned to 64 */
  void *user;    /* the op's */
} berth_op_call;

typedef struct berth_op_infer {
  uint32_t struct_size;
  const berth_type *in_type; /* BERTH_TYPE_NONE for an operand that is left out */
  const berth_shape *in_shape;
  uint32_t n_in, n_out;
  const berth_attr *attrs;
  uint32_t n_attrs;
  berth_type *out_type;   /* to be set */
  berth_shape *out_shape; /* to be set */
  void *user;
} berth_op_infer;

typedef struct berth_op_desc {
  uint32_t struct_size;
  const char *name; /* preferably "vendor.op"; built-in names are refused */
  uint32_t min_in, max_in, n_out;
  const berth_attr *attrs; /* what it accepts, with default values */
  uint32_t n_attrs;
  uint32_t in_place; /* bit k: output 0 may be written over operand k (same size), element by element */
  uint32_t strided;  /* bit k: operand k may have any strides */
  berth_status (*infer)(const berth_op_infer *call, berth_error *err);
  int64_t (*items)(const berth_op_call *call);    /* independent work items; NULL: one */
  uint64_t (*scratch)(const berth_op_call *call); /* bytes for one call; data pointers are NULL here; NULL: none */
  berth_status (*kernel)(const berth_op_call *call, berth_error *err);
  void *user; /* must outlive the context */
  /* n_out entries, copied; bit k of entry i: output i may be written over operand k (same type and shape), whichever of
   * the others lie over their operands. An element of the operands is read before the same element of any output is
   * written. NULL: output 0 alone, as in_place says; where both are given, output 0 has the bits of both. */
  const uint32_t *in_places;
} berth_op_desc;
#define BERTH_OP_DESC_INIT \
  { (uint32_t)sizeof(berth_op_desc), NULL, 0, 0, 1, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

/* May be called at any time, on any thread: graphs that other threads build meanwhile see the op or do not. An op stays
 * until the context goes. */
BERTH_API berth_status berth_op_register(berth_context *ctx, const berth_op_desc *desc, berth_error *err);
/* The ops that berth_graph_add takes: the built-in ones, and those of the context. */
BERTH_API uint32_t berth_op_count(const berth_context *ctx);
BERTH_API const char *berth_op_name(const berth_context *ctx, uint32_t index);

/* ---- Devices -------------------------------------------------------------------------------------------------- */

typedef struct berth_device_info {
  uint32_t struct_size;
  const char *name;      /* what `device` in a descriptor takes: "cpu" */
  char description[128]; /* "AMD EPYC, 2 threads" */
  int available;
  const char *reason; /* why not, where it is not; otherwise NULL */
  uint64_t memory;    /* bytes it has; 0: unknown */
} berth_device_info;
#define BERTH_DEVICE_INFO_INIT \
  { (uint32_t)sizeof(berth_device_info), NULL, {0}, 0, NULL, 0 }

BERTH_API uint32_t berth_device_count(const berth_context *ctx);
BERTH_API berth_status berth_device_at(const berth_context *ctx, uint32_t index, berth_device_info *out,
                                       berth_error *err);

/* ---- Plan: where and when every value lives ------------------------------------------------------------------- */

typedef struct berth_plan berth_plan;
typedef struct berth_layout berth_layout; /* where the params of a plan lie, by name */

typedef enum berth_plan_flag {
  BERTH_PLAN_PARAMS_OUTSIDE = 1 << 0,    /* params get no bytes in the arena */
  BERTH_PLAN_INPUTS_OUTSIDE = 1 << 1,    /* inputs get no bytes in the arena */
  BERTH_PLAN_CONSTANTS_OUTSIDE = 1 << 2, /* constants get no bytes in the arena */
  BERTH_PLAN_INPUTS_DIE = 1 << 3,        /* an input's bytes may be reused after its last reader */
  BERTH_PLAN_NO_REUSE = 1 << 4,          /* every value has bytes of its own (also: BERTH_ARENA_NO_REUSE=1) */
  BERTH_PLAN_NO_INPLACE = 1 << 5,        /* no output takes the place of a dying operand */
  BERTH_PLAN_NO_CONCAT = 1 << 6,         /* the parts of a concat are not placed inside its result */
  BERTH_PLAN_NO_STRIDED = 1 << 7,        /* no strided views: slices, transposes and inputs are copied */
  BERTH_PLAN_F32_UNIFORM = 1 << 8,       /* four bytes per element, whatever the type */
  BERTH_PLAN_NO_PASSES = 1 << 9,         /* the graph as it is: nothing is folded, fused or left out */
  BERTH_PLAN_REFERENCE = 1 << 10,        /* for reference kernels: nothing is rewritten for the device, but quantised
                                            products are products of integers, as everywhere */
  BERTH_PLAN_BF16_WEIGHTS = 1 << 11,     /* weights of products are kept as bf16, and x is rounded to it: less exact */
  BERTH_PLAN_FALLBACK_CPU = 1 << 12, /* nodes that the device has no kernels for run on the CPU, between transfers */
  BERTH_PLAN_F16_WEIGHTS = 1 << 13   /* on GPUs, weights of products and tables are kept as f16: less exact */
} berth_plan_flag;

typedef enum berth_order {
  BERTH_ORDER_SOURCE = 0, /* nodes run in the graph's order */
  BERTH_ORDER_MEMORY = 1  /* reordered where that lowers the peak */
} berth_order;

typedef enum berth_preset {
  BERTH_PRESET_INFERENCE = 0, /* the defaults: params, inputs and constants in the arena; ordered for least memory */
  BERTH_PRESET_BACKWARD = 1   /* activations only: params, inputs and constants lie elsewhere */
} berth_preset;

/* How products and convolutions of f32 may be computed where a GPU has matrix units for it (the device "cuda"): numbers
 * are rounded to this before they are multiplied, and sums are f32. */
typedef enum berth_compute {
  BERTH_COMPUTE_F32 = 0,    /* they are not */
  BERTH_COMPUTE_TF32X3 = 1, /* each is the sum of two tf32: nearly as exact as f32 */
  BERTH_COMPUTE_TF32 = 2,   /* 11 bits of precision */
  BERTH_COMPUTE_BF16 = 3,   /* 8 bits */
  BERTH_COMPUTE_F16 = 4     /* 11 bits, and numbers up to 65504 */
} berth_compute;

/* "f32", "tf32x3", ...; NULL: there is no such. */
BERTH_API const char *berth_compute_name(berth_compute compute);
BERTH_API berth_status berth_compute_from_name(const char *name, berth_compute *out, berth_error *err);

#define BERTH_GUARD_AUTO UINT64_MAX /* the larger of the alignment and 128 */

typedef struct berth_plan_desc {
  uint32_t struct_size;
  uint32_t flags; /* berth_plan_flag */
  uint64_t align; /* of every buffer, a power of two; 0: 64, on the cpu less for small ones. Views lie in their root */
  uint64_t guard; /* bytes kept free after the buffer of every input and output, not counted in its size; 0: none */
  berth_order order;
  uint32_t n_threads;    /* workers that need scratch, and threads of a session; 0: the context's */
  uint64_t effort;       /* search steps for the packer; 0: its default */
  uint64_t budget;       /* upper limit for the arena, met at any cost in time, or planning fails; 0: no limit */
  const char *device;    /* whose limits to plan for; NULL: "cpu" */
  const berth_dim *dims; /* named dimensions */
  size_t n_dims;
  const berth_layout *layout; /* put the params where another plan has them */
  /* What kind of GPU the plan is for: "generic", "nvidia", "hopper" (9.0), "turing" (NVIDIA before compute capability
   * 8.0), "cpu" (one that a CPU plays) or "minimal". NULL: the device itself where it is there (a plan opens it to
   * ask), otherwise "generic". A session refuses a profile that asks for more than its device has. */
  const char *gpu_profile;
  const berth_cancel *cancel; /* stops planning; NULL: none */
  berth_compute compute;      /* how products may be computed; a device without such units refuses it */
} berth_plan_desc;
#define BERTH_PLAN_DESC_INIT                                                                                  \
  {                                                                                                           \
    (uint32_t)sizeof(berth_plan_desc), 0, 0, 0, BERTH_ORDER_MEMORY, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, \
        BERTH_COMPUTE_F32                                                                                     \
  }

/* Fills in a whole descriptor, whose struct_size must be set (BERTH_PLAN_DESC_INIT). */
BERTH_API berth_status berth_plan_preset(berth_preset preset, berth_plan_desc *desc, berth_error *err);
/* desc NULL: BERTH_PLAN_DESC_INIT, a plan for the CPU with the context's threads, with params, inputs and constants in
 * the arena, inputs that survive a run, and nodes in the order that takes least memory. A graph with named dimensions
 * needs a descriptor, which has their extents. */
BERTH_API berth_status berth_plan_create(const berth_graph *graph, const berth_plan_desc *desc, berth_plan **out,
                                         berth_error *err);
BERTH_API void berth_plan_destroy(berth_plan *plan);
/* The GPU profile that it was made with: one of the names above, or that of a device; NULL: it is not for a GPU. */
BERTH_API const char *berth_plan_gpu_profile(const berth_plan *plan);

typedef struct berth_plan_info {
  uint32_t struct_size;
  uint64_t arena_size;              /* the block: weights, states, activations, scratch; and for preparation */
  uint64_t weights_size;            /* params and constants */
  uint64_t activations_size;        /* everything else but scratch */
  uint64_t activations_lower_bound; /* no packing of these buffers is smaller */
  uint64_t scratch_size;            /* what scratch adds on top */
  uint64_t total_unshared;          /* every value in bytes of its own */
  uint64_t saved;                   /* total_unshared - arena_size */
  int optimal;                      /* proven: no smaller arena for these buffers */
  uint32_t n_values, n_buffers, n_steps;
  uint64_t pack_nodes; /* search effort spent */
  int order_optimal;   /* proven: no other order of the nodes has a smaller arena */
  /* What meeting the budget took, besides another order. */
  uint32_t n_recomputed; /* nodes that run twice, so that their results need not be kept */
  uint32_t n_split;      /* groups of nodes that run for a slice of their rows at a time */
  uint32_t n_slices;     /* of all groups together */
  uint64_t state_size;   /* what lives from run to run */
  /* Preparing the weights, once: what it adds to the arena on top of what a run needs, and the most that its
   * temporaries and scratch take at once, wherever they lie. */
  uint64_t preparation_size, preparation_peak;
} berth_plan_info;
#define BERTH_PLAN_INFO_INIT \
  { (uint32_t)sizeof(berth_plan_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#define BERTH_OFFSET_NONE UINT64_MAX

typedef struct berth_slot {
  uint32_t struct_size;
  uint64_t offset;       /* in the arena; BERTH_OFFSET_NONE when it has no bytes there */
  uint64_t size;         /* bytes that the value needs */
  uint32_t birth, death; /* alive over the steps [birth, death) */
  int is_view;           /* owns no bytes: lies inside root */
  berth_value root;      /* the value whose bytes it uses; itself when it owns them */
  uint64_t root_offset;  /* bytes from the start of root */
  uint32_t rank;
  int64_t stride[BERTH_MAX_RANK]; /* in elements */
  berth_storage storage;          /* how its elements lie there: the device's choice, by the plan's flags */
} berth_slot;
#define BERTH_SLOT_INIT                                                                         \
  {                                                                                             \
    (uint32_t)sizeof(berth_slot), BERTH_OFFSET_NONE, 0, 0, 0, 0, BERTH_VALUE_NONE, 0, 0, {0}, { \
      BERTH_TYPE_NONE, 0, 0                                                                     \
    }                                                                                           \
  }

typedef enum berth_report_kind {
  BERTH_REPORT_TEXT = 0, /* offset, size, node; one row per slot */
  BERTH_REPORT_CSV = 1,  /* id,lower,upper,size,offset: MiniMalloc's format */
  BERTH_REPORT_SVG = 2,  /* a picture: time across, bytes up */
  BERTH_REPORT_HTML = 3  /* the picture in a page of its own, with zoom and a table */
} berth_report_kind;

/* Where the steps run: one entry per sequence of steps on the plan's device or, with BERTH_PLAN_FALLBACK_CPU, on the
 * CPU, with the bytes that are copied to the host and back. *n is the number of entries; at most `capacity` are filled
 * in. The struct_size of the first entry holds for all: only that one needs BERTH_SEGMENT_INIT. */
typedef struct berth_segment {
  uint32_t struct_size;
  uint32_t first_step, n_steps;
  const char *device;
  uint64_t bytes_down, bytes_up;
} berth_segment;
#define BERTH_SEGMENT_INIT \
  { (uint32_t)sizeof(berth_segment), 0, 0, NULL, 0, 0 }
BERTH_API berth_status berth_plan_segments(const berth_plan *plan, berth_segment *out, uint32_t capacity, uint32_t *n,
                                           berth_error *err);

/* What runs each step, in the order of the steps. *n is the number of steps; at most `capacity` entries are filled in,
 * and the struct_size of the first holds for all. */
typedef enum berth_kernel_kind {
  BERTH_KERNEL_NONE = 0,      /* nothing: its results are views, empty, or made where they must lie */
  BERTH_KERNEL_FAST = 1,      /* a kernel of the device */
  BERTH_KERNEL_REFERENCE = 2, /* the op's reference kernel, on the CPU: right, and slow */
  BERTH_KERNEL_CUSTOM = 3,    /* the kernel of a custom op */
  BERTH_KERNEL_ELSEWHERE = 4  /* the device cannot run this graph at all: a session plans it again for the CPU */
} berth_kernel_kind;

typedef struct berth_step_info {
  uint32_t struct_size;
  uint32_t node;  /* of the plan's graph */
  int is_prelude; /* it runs once, before the first run and whenever a weight changes */
  berth_kernel_kind kind;
  const char *device;    /* where it runs: the plan's device, or "cpu" */
  char kernel[96];       /* its name, for people; several kernels of a GPU are joined with '+'; empty: none */
  uint32_t n_dispatches; /* kernels that a GPU starts for it; on the CPU 1, or 0 for none */
} berth_step_info;
#define BERTH_STEP_INFO_INIT \
  { (uint32_t)sizeof(berth_step_info), UINT32_MAX, 0, BERTH_KERNEL_NONE, NULL, {0}, 0 }
BERTH_API berth_status berth_plan_steps(const berth_plan *plan, berth_step_info *out, uint32_t capacity, uint32_t *n,
                                        berth_error *err);

/* Compiles the kernels of plans for the device "cuda" and writes them as one file, a pack: with it (kernel_pack of
 * berth_options), a machine that has NVIDIA's driver and no compiler runs these plans. targets, separated by commas:
 * "sm_90" is code for GPUs of that kind, "compute_80" a form that the driver makes code of on them and on newer ones;
 * NULL: what the GPU here is. With targets no GPU is needed, but NVRTC is; plan with the profile "nvidia" then, or
 * "turing" for what is before sm_80. */
BERTH_API berth_status berth_kernels_pack(const berth_plan *const *plans, uint32_t n_plans, const char *targets,
                                          berth_write_fn write, void *user, berth_error *err);
/* The same with targets for each plan: one pack for GPUs whose plans differ. Plan with "turing" for what is before
 * sm_80, "hopper" for sm_90, and "nvidia" for the rest. */
BERTH_API berth_status berth_kernels_pack_each(const berth_plan *const *plans, const char *const *targets,
                                               uint32_t n_plans, berth_write_fn write, void *user, berth_error *err);
/* The kernels of a plan for a GPU as readable text, each once, in the order of first use. */
BERTH_API berth_status berth_plan_kernels(const berth_plan *plan, berth_write_fn write, void *user, berth_error *err);

BERTH_API berth_status berth_plan_get_info(const berth_plan *plan, berth_plan_info *out, berth_error *err);
BERTH_API uint64_t berth_plan_arena_size(const berth_plan *plan);
BERTH_API const berth_graph *berth_plan_graph(const berth_plan *plan); /* the bound graph; same value numbers */
BERTH_API berth_status berth_plan_slot(const berth_plan *plan, berth_value value, berth_slot *out, berth_error *err);
BERTH_API uint32_t berth_plan_step_node(const berth_plan *plan, uint32_t step); /* UINT32_MAX past the end */
/* The scratch of a step, which belongs to no value, so root is BERTH_VALUE_NONE. Size 0: none. */
BERTH_API berth_status berth_plan_scratch(const berth_plan *plan, uint32_t step, berth_slot *out, berth_error *err);
BERTH_API berth_status berth_plan_report(const berth_plan *plan, berth_report_kind kind, berth_write_fn write,
                                         void *user, berth_error *err);
BERTH_API berth_status berth_plan_check(const berth_plan *plan, berth_error *err); /* the independent checker */

/* Shared weights: the places of one plan's params and states, for other plans of the same weights. */
BERTH_API berth_status berth_plan_layout(const berth_plan *plan, berth_layout **out, berth_error *err);
BERTH_API void berth_layout_destroy(berth_layout *layout);
BERTH_API uint64_t berth_layout_size(const berth_layout *layout);
BERTH_API uint64_t berth_layout_offset(const berth_layout *layout, const char *param); /* BERTH_OFFSET_NONE: none */

/* ---- Arena: the one block ------------------------------------------------------------------------------------- */

typedef struct berth_arena berth_arena;

typedef struct berth_arena_desc {
  uint32_t struct_size;
  uint32_t reserved;
  const char *device; /* NULL: "cpu" */
  void *memory;       /* use this block (cpu only; aligned as planned) instead of allocating one */
  uint64_t memory_size;
  uint64_t min_size; /* at least this large, for plans that come later; 0: as the plan says */
} berth_arena_desc;
#define BERTH_ARENA_DESC_INIT \
  { (uint32_t)sizeof(berth_arena_desc), 0, NULL, NULL, 0, 0 }

/* The arena starts zeroed. Wrong values, ranges and sizes are errors; nothing is clamped. */
BERTH_API berth_status berth_arena_create(const berth_plan *plan, const berth_arena_desc *desc, berth_arena **out,
                                          berth_error *err);
BERTH_API void berth_arena_destroy(berth_arena *arena);
BERTH_API uint64_t berth_arena_size(const berth_arena *arena);
BERTH_API int berth_arena_has(const berth_arena *arena, berth_value value);
BERTH_API uint64_t berth_arena_offset(const berth_arena *arena, berth_value value);   /* BERTH_OFFSET_NONE: none */
BERTH_API uint64_t berth_arena_capacity(const berth_arena *arena, berth_value value); /* bytes of the slot; 0: none */
/* Bytes [offset, offset + size) of a value's slot. */
BERTH_API berth_status berth_arena_write(berth_arena *arena, berth_value value, uint64_t offset, const void *src,
                                         uint64_t size, berth_error *err);
BERTH_API berth_status berth_arena_read(const berth_arena *arena, berth_value value, uint64_t offset, void *dst,
                                        uint64_t size, berth_error *err);
/* Elements [first, first + count), converted between f32 and the slot's type: round to nearest even for f16 and
 * bf16; integers round to nearest even and saturate, NaN becomes 0; bool is (x != 0). */
BERTH_API berth_status berth_arena_write_f32(berth_arena *arena, berth_value value, uint64_t first, const float *src,
                                             uint64_t count, berth_error *err);
BERTH_API berth_status berth_arena_read_f32(const berth_arena *arena, berth_value value, uint64_t first, float *dst,
                                            uint64_t count, berth_error *err);
/* Copy elements between slots of one type; the ranges may overlap. */
BERTH_API berth_status berth_arena_copy(berth_arena *arena, berth_value dst, uint64_t dst_first, berth_value src,
                                        uint64_t src_first, uint64_t count, berth_error *err);
BERTH_API berth_status berth_arena_copy_first(berth_arena *arena, berth_value dst, berth_value src, uint64_t count,
                                              berth_error *err);
BERTH_API berth_status berth_arena_copy_all(berth_arena *dst, const berth_arena *src, berth_error *err); /* twins */
BERTH_API berth_status berth_arena_fill(berth_arena *arena, berth_value value, uint64_t offset, uint64_t size,
                                        uint8_t byte, berth_error *err);
/* Direct access, where the host can address the memory. `type` must be the value's; count is in elements. Fails for an
 * input that is strided inside the result of a concat; read and write treat it as one array. */
BERTH_API berth_status berth_arena_slice(berth_arena *arena, berth_value value, berth_type type, void **data,
                                         uint64_t *count, berth_error *err);
BERTH_API void *berth_arena_data(berth_arena *arena); /* NULL where the host cannot address it */

/* ---- Session: one arena, one set of weights, a program for every shape ---------------------------------------- */

typedef struct berth_session berth_session;

typedef enum berth_session_flag {
  BERTH_SESSION_CHECKED = 1 << 0,  /* poison dead bytes, verify guards and neighbours after every step: slow */
  BERTH_SESSION_REFERENCE = 1 << 1 /* reference kernels only: slow, for comparison with the fast ones */
} berth_session_flag;

/* The caller's threads, for a session to run on instead of its own. */
typedef struct berth_thread_pool {
  uint32_t struct_size;
  uint32_t n_threads; /* tasks that may run at the same time: 1 to 1024 */
  /* Calls task(data, 0) to task(data, n_tasks - 1), each once, on any threads, at the same time or not, and returns
   * when all have returned. n_tasks is at most n_threads. What the caller wrote before is seen by the tasks, and what
   * they wrote is seen when it returns. A task neither blocks nor calls it. Sessions that are used on different threads
   * may call it at the same time. */
  void (*parallel_for)(void *user, uint32_t n_tasks, void (*task)(void *data, uint32_t index), void *data);
  void *user;
} berth_thread_pool;
#define BERTH_THREAD_POOL_INIT \
  { (uint32_t)sizeof(berth_thread_pool), 0, NULL, NULL }

typedef struct berth_session_desc {
  uint32_t struct_size;
  uint32_t flags;              /* berth_session_flag */
  const char *device;          /* NULL: "cpu" */
  uint32_t n_threads;          /* 0: the plan's, or else the context's */
  uint32_t max_bindings;       /* how many bindings it keeps at a time; 0: 8 */
  const berth_plan_desc *plan; /* NULL: the defaults; its dims are the first binding */
  void *memory;                /* the caller's own block for the arena */
  uint64_t memory_size;
  const berth_thread_pool *threads; /* NULL: threads of its own; otherwise n_threads is the pool's */
  const berth_cancel *cancel;       /* stops runs, and the planning of bindings; NULL: none */
} berth_session_desc;
#define BERTH_SESSION_DESC_INIT \
  { (uint32_t)sizeof(berth_session_desc), 0, NULL, 0, 0, NULL, NULL, 0, NULL, NULL }

/* desc NULL: BERTH_SESSION_DESC_INIT, a session on the CPU with an arena and threads of its own and a plan as
 * berth_plan_create makes with NULL; so is the plan where desc->plan is NULL. What desc and desc->plan point to is read
 * during the call, but for memory, threads' functions and cancel, which must outlive the session.
 * Compiles for the dims in desc->plan, which are not needed if the graph has no named dimensions. Params with weights
 * attached are set; the others wait for berth_session_set_param. */
BERTH_API berth_status berth_session_create(const berth_graph *graph, const berth_session_desc *desc,
                                            berth_session **out, berth_error *err);
BERTH_API void berth_session_destroy(berth_session *session);
/* A second session in the same state, with its own arena and threads. */
BERTH_API berth_status berth_session_clone(const berth_session *session, berth_session **out, berth_error *err);
/* Make this binding current. It is compiled when the session does not have it; it then stays until it is dropped, or
 * until there are more than max_bindings and it was bound longest ago (the current one stays in any case). The arena
 * grows when it must (pointers into it change), and stays as large as it has become. When it fails, nothing has
 * changed: the results of the last run can still be read, and a run gives them again. */
BERTH_API berth_status berth_session_bind(berth_session *session, const berth_dim *dims, size_t n_dims,
                                          berth_error *err);
/* Frees a binding: its plan, its program and what else it takes beside the arena. One that the session does not have
 * (any more) is dropped already. The current one is refused: bind another first. */
BERTH_API berth_status berth_session_drop(berth_session *session, const berth_dim *dims, size_t n_dims,
                                          berth_error *err);
BERTH_API uint32_t berth_session_n_bindings(const berth_session *session);
/* Holds for every binding. When the device fails while it writes, the param has no weights until it is set again; any
 * other failure changes nothing. */
BERTH_API berth_status berth_session_set_param(berth_session *session, const char *name, const void *data, size_t size,
                                               berth_error *err);
BERTH_API berth_status berth_session_write(berth_session *session, const char *input, const void *src, size_t size,
                                           berth_error *err);
BERTH_API berth_status berth_session_write_at(berth_session *session, uint32_t input, const void *src, size_t size,
                                              berth_error *err);
BERTH_API berth_status berth_session_read(berth_session *session, const char *output, void *dst, size_t size,
                                          berth_error *err);
BERTH_API berth_status berth_session_read_at(berth_session *session, uint32_t output, void *dst, size_t size,
                                             berth_error *err);
/* The shape that the last run gave an output: fixed but for axes whose planned extent is a bound (berth_graph_bounds).
 * dim has BERTH_MAX_RANK entries. Before the first run: the bounds. The functions that read an output go by it: such
 * an output has as many bytes as its true shape needs, and a buffer to read into may be larger, up to what is planned
 * (its rest is left alone). */
BERTH_API berth_status berth_session_output_shape(const berth_session *session, uint32_t output, uint32_t *rank,
                                                  int64_t *dim, berth_error *err);
/* Where to read an input or param that was planned outside the arena. The memory stays the caller's and must stay
 * valid. It must be aligned to the element; 64 bytes are better. Name an input again when a bind changes its size. */
BERTH_API berth_status berth_session_use(berth_session *session, const char *name, const void *data, size_t size,
                                         berth_error *err);
/* Zero-copy access to an input or output, valid until the next bind. With BERTH_PLAN_INPUTS_DIE, write inputs before
 * every run. Such an input may be placed inside the result of a concat along an inner axis, strided, and then has no
 * address of its own; BERTH_PLAN_NO_STRIDED prevents that. */
BERTH_API berth_status berth_session_input_data(berth_session *session, uint32_t input, void **data, size_t *size,
                                                berth_error *err);
BERTH_API berth_status berth_session_output_data(berth_session *session, uint32_t output, const void **data,
                                                 size_t *size, berth_error *err);
/* Memory that more than one library can address: the host's, or that of an NVIDIA GPU in its primary context. */
typedef enum berth_memory_kind {
  BERTH_MEMORY_HOST = 1,
  BERTH_MEMORY_CUDA = 2
} berth_memory_kind;
typedef struct berth_memory {
  uint32_t struct_size;
  berth_memory_kind kind;
  uint32_t index; /* which GPU, as its driver counts; 0 for the host */
  uint32_t reserved;
  uint64_t address;
  uint64_t size; /* bytes */
} berth_memory;
#define BERTH_MEMORY_INIT \
  { (uint32_t)sizeof(berth_memory), BERTH_MEMORY_HOST, 0, 0, 0, 0 }
/* As berth_session_input_data and output_data, for GPUs too whose memory others can address (CUDA). Nothing of the
 * session is under way on it: what another library starts there must be over before the next run. UNSUPPORTED on
 * devices whose memory has no address. */
BERTH_API berth_status berth_session_input_memory(berth_session *session, uint32_t input, berth_memory *out,
                                                  berth_error *err);
BERTH_API berth_status berth_session_output_memory(berth_session *session, uint32_t output, berth_memory *out,
                                                   berth_error *err);
/* As berth_session_write_at and read_at, from and to such memory. A copy on a GPU waits for what its default stream was
 * given before, and is over when the call returns. Memory of another GPU is refused. */
BERTH_API berth_status berth_session_write_memory(berth_session *session, uint32_t input, const berth_memory *src,
                                                  berth_error *err);
BERTH_API berth_status berth_session_read_memory(berth_session *session, uint32_t output, const berth_memory *dst,
                                                 berth_error *err);
/* States (berth_graph_state), by name, as the last run left them. They stay as they are when another binding becomes
 * current, when the arena grows and when params are set; a clone of the session starts with them. Each has the same
 * bytes in every binding. An output that is the next value of a state lies in its bytes: read it before the state is
 * written, reset or restored. reset gives a state its initial value; NULL: all of them. */
BERTH_API berth_status berth_session_state_read(berth_session *session, const char *state, void *dst, size_t size,
                                                berth_error *err);
BERTH_API berth_status berth_session_state_write(berth_session *session, const char *state, const void *src,
                                                 size_t size, berth_error *err);
BERTH_API berth_status berth_session_state_reset(berth_session *session, const char *state, berth_error *err);
/* All states as one piece of memory of state_size bytes, which any session of the same graph takes, on any device; one
 * of a graph with other states is refused. Extents that are named dimensions must be the same. */
BERTH_API uint64_t berth_session_state_size(const berth_session *session);
BERTH_API berth_status berth_session_state_save(berth_session *session, void *dst, size_t size, berth_error *err);
BERTH_API berth_status berth_session_state_restore(berth_session *session, const void *src, size_t size,
                                                   berth_error *err);
/* Whether the states are lost: the last run failed while it updated them, so that some have their old value, some their
 * next one, and some a part of each; or it updated them from weights in a file that shrank meanwhile. A run, reading
 * and saving fail until all of them are restored, reset or written again. 0: all have what they had before the last
 * run, or all what it made. */
BERTH_API int berth_session_states_lost(const berth_session *session);
/* Runs the current binding: submit, then wait. Allocates nothing. Fails, and runs nothing, while a param has no
 * weights. */
BERTH_API berth_status berth_session_run(berth_session *session, berth_error *err);
/* The same in two halves, so that the caller can do something else in between. submit starts what the device can run on
 * its own and returns: a GPU runs up to the first step that the host must do. The CPU starts nothing: wait runs
 * everything on the calling thread and the session's threads. wait returns when the run is over, with its status. In
 * between, every other function of the session fails (but the queries that return no status), its arena must not be
 * touched, and berth_session_destroy waits (on the CPU, it runs the model). A submit that fails leaves nothing to wait
 * for.
 *
 * A run that fails or is cancelled leaves the session usable. Params and constants are intact. Outputs, and inputs that
 * may die, hold anything. States have the values that they had before the run, or those that it made, or they are lost
 * (berth_session_states_lost). The token is looked at before the run and between steps on the CPU; on a GPU between
 * submissions, of which most models have one. */
BERTH_API berth_status berth_session_submit(berth_session *session, berth_error *err);
BERTH_API berth_status berth_session_wait(berth_session *session, berth_error *err);

/* Of the current binding; it lives until that one is dropped. */
BERTH_API const berth_plan *berth_session_plan(const berth_session *session);
BERTH_API berth_arena *berth_session_arena(berth_session *session); /* addressed by the current binding */
BERTH_API uint32_t berth_session_n_threads(const berth_session *session);
/* Called after every step that runs a kernel, on the running thread, with the node's outputs and the time it took.
 * Views and branches that are not taken run no kernel; the steps of a loop run in every iteration. NULL: stop
 * observing. */
typedef void (*berth_step_fn)(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out,
                              double ms);
BERTH_API void berth_session_observe(berth_session *session, berth_step_fn observe, void *user);
/* The same, for an observer that looks at what steps make where the host cannot address it: on a GPU too, a step is
 * over and the next has not begun when the observer is called, so that berth_arena_read gives what that step made.
 * UNSUPPORTED where runs are recorded whole (Vulkan, CUDA); nobody observes then. */
BERTH_API berth_status berth_session_observe_apart(berth_session *session, berth_step_fn observe, void *user,
                                                   berth_error *err);
typedef enum berth_clock {
  BERTH_CLOCK_HOST,   /* on a GPU, a step's time then includes submitting it and waiting */
  BERTH_CLOCK_DEVICE, /* the GPU's clock; steps on the host use the host's */
  BERTH_CLOCK_NONE    /* every time is 0 */
} berth_clock;
BERTH_API berth_clock
berth_session_clock(const berth_session *session); /* the clock of the times that an observer gets */

/* ---- Generating text ------------------------------------------------------------------------------------------ */

/* A language model from a GGUF file, and the conversation that it is in: tokens, of which the model's cache holds the
 * keys and values. All memory is taken when it is created: one arena with the weights, the cache for `ctx` tokens and
 * what a run of `chunk` rows needs. Reading, in chunks, and generating, token by token, plan nothing and allocate
 * nothing; only text that is fed takes memory, while tokens are made of it. */
typedef struct berth_generator berth_generator;

/* How the next token is chosen: a penalty on what came before, then the top_k best, then the fewest of these whose
 * probabilities add up to top_p, then those at least min_p times as probable as the best, then one of them drawn at the
 * temperature. The draw depends on the seed and the logits alone, not on the machine. */
typedef struct berth_sampling_desc {
  uint32_t struct_size;
  uint32_t top_k;       /* 0: all */
  float temperature;    /* 0: always the best token */
  float top_p;          /* 1: all */
  float min_p;          /* 0: all */
  float repeat_penalty; /* logits over 0 are divided by it, others multiplied; 1: none */
  uint32_t repeat_last; /* of how many last tokens; 0: none */
  uint64_t seed;
} berth_sampling_desc;
#define BERTH_SAMPLING_DESC_INIT \
  { (uint32_t)sizeof(berth_sampling_desc), 40, 0.8f, 0.95f, 0.05f, 1.0f, 64, 0 }

typedef enum berth_generator_flag {
  /* Where the context is full, the older half of the conversation is forgotten (but for its first token, where that
   * begins a text) and the rest is read again. Without it, that is an error. */
  BERTH_GENERATOR_SLIDE = 1 << 0
} berth_generator_flag;

typedef struct berth_generator_desc {
  uint32_t struct_size;
  uint32_t flags;     /* berth_generator_flag */
  const char *device; /* NULL: "cpu" */
  uint32_t n_threads; /* 0: the context's */
  uint32_t ctx;       /* tokens that there is room for; 0: what the model was made with, but at most 4096 */
  uint32_t chunk;     /* rows in which text is read; 0: 64, or ctx where that is less */
  berth_type kv;      /* of the cache; BERTH_TYPE_NONE: f16 */
  const berth_sampling_desc *sampling; /* NULL: BERTH_SAMPLING_DESC_INIT */
  const berth_thread_pool *threads;    /* NULL: threads of its own */
  const berth_cancel *cancel;          /* stops reading and generating; NULL: none */
  /* Called while text is read, after every run: so many of so many tokens. NULL: silent. */
  void (*progress)(void *user, uint32_t done, uint32_t total);
  void *user;
  /* Called for every token that is evaluated, in order, with the logits of what follows it: for perplexity and the
   * like. They take room in the arena, for every row of a chunk. NULL: only those of the last token are computed. */
  void (*scores)(void *user, uint32_t position, const float *logits, uint32_t count);
  berth_compute compute; /* how products may be computed, as in a plan: of text that is read, many rows at a time */
} berth_generator_desc;
#define BERTH_GENERATOR_DESC_INIT                                                                                  \
  {                                                                                                                \
    (uint32_t)sizeof(berth_generator_desc), 0, NULL, 0, 0, 0, BERTH_TYPE_NONE, NULL, NULL, NULL, NULL, NULL, NULL, \
        BERTH_COMPUTE_F32                                                                                          \
  }

/* The graph that a generator on that device runs, of that which a GGUF file is loaded as: on a GPU it finds the best
 * token there, too. A plan of it is exact to the byte. device NULL: the CPU. */
BERTH_API berth_status berth_generator_graph(const berth_graph *graph, const char *device, berth_graph **out,
                                             berth_error *err);
/* The named dimensions of the graph of a GGUF model as a generator binds them for runs of `rows` tokens: "rows", "ctx",
 * and "near", the rows that layers with a sliding window keep: what one sees, and a chunk less one more. Gives how many
 * of them the graph has. */
#define BERTH_GENERATOR_DIMS 3
BERTH_API size_t berth_generator_dims(const berth_graph *graph, uint32_t ctx, uint32_t chunk, uint32_t rows,
                                      berth_dim dims[BERTH_GENERATOR_DIMS]);

BERTH_API berth_status berth_generator_create(berth_context *ctx, const char *path, const berth_generator_desc *desc,
                                              berth_generator **out, berth_error *err);
/* The same from a GGUF file in memory, which must not change until `release` is called, or, with NULL, until the
 * generator and its forks are gone. `release` is called exactly once, even on failure. */
BERTH_API berth_status berth_generator_from_memory(berth_context *ctx, const void *data, size_t size,
                                                   berth_release_fn release, void *user,
                                                   const berth_generator_desc *desc, berth_generator **out,
                                                   berth_error *err);
BERTH_API void berth_generator_destroy(berth_generator *generator);

/* Adds text or tokens to the conversation, which begins with what the model wants there (a bos token, mostly). They are
 * evaluated before it returns. When it fails, what was not evaluated is not in the conversation; BERTH_INFEASIBLE:
 * there is no room for it. */
typedef enum berth_feed_flag {
  BERTH_FEED_SPECIAL = 1 << 0 /* "<|im_end|>" and the like are tokens: for text that is not from a stranger */
} berth_feed_flag;
BERTH_API berth_status berth_generator_feed(berth_generator *generator, const char *text, size_t size, uint32_t flags,
                                            berth_error *err);
BERTH_API berth_status berth_generator_feed_tokens(berth_generator *generator, const int32_t *tokens, size_t n_tokens,
                                                   berth_error *err);

/* The tokens of a text, as feeding it to an empty conversation would make them. Writes as many as there is room for;
 * *count is how many there are. The conversation stays as it is. */
BERTH_API berth_status berth_generator_encode(const berth_generator *generator, const char *text, size_t size,
                                              uint32_t flags, int32_t *dst, size_t capacity, size_t *count,
                                              berth_error *err);

/* A message of a chat. */
typedef struct berth_message {
  const char *role; /* "system", "user", "assistant" */
  const char *content;
} berth_message;
/* Makes the conversation what the model's own template makes of these messages, with the beginning of an answer. What
 * the conversation already has of it is not evaluated again, so that a chat passes all its messages every time. */
BERTH_API berth_status berth_generator_chat(berth_generator *generator, const berth_message *messages,
                                            size_t n_messages, berth_error *err);

/* One token more. */
typedef struct berth_piece {
  uint32_t struct_size;
  int32_t token;
  const char *text; /* what can be shown by now, never part of a character; maybe nothing. Until the next call */
  size_t text_size;
  int is_end; /* the model says that it is done */
} berth_piece;
#define BERTH_PIECE_INIT \
  { (uint32_t)sizeof(berth_piece), -1, NULL, 0, 0 }
BERTH_API berth_status berth_generator_next(berth_generator *generator, berth_piece *out, berth_error *err);
/* The logits that the next token will be chosen by, one per token of the vocabulary; until the next call. */
BERTH_API berth_status berth_generator_logits(berth_generator *generator, const float **logits, uint32_t *count,
                                              berth_error *err);
/* Other parameters, with the seed set anew. */
BERTH_API berth_status berth_generator_sample(berth_generator *generator, const berth_sampling_desc *sampling,
                                              berth_error *err);

/* Several continuations of one conversation: mark remembers where it is now, and rewind goes back there, as often as it
 * is called, without evaluating anything again. Sliding forgets the mark. A fork goes on by itself, with an arena of
 * its own. reset begins a new conversation. */
BERTH_API berth_status berth_generator_mark(berth_generator *generator, berth_error *err);
BERTH_API berth_status berth_generator_rewind(berth_generator *generator, berth_error *err);
BERTH_API berth_status berth_generator_fork(berth_generator *generator, berth_generator **out, berth_error *err);
BERTH_API void berth_generator_reset(berth_generator *generator);

/* The conversation as bytes, with its part of the cache: another generator of the same model goes on where this one
 * was, to the bit on the same device. Its ctx may be another, where there is room. The mark is not saved. */
BERTH_API uint64_t berth_generator_save_size(const berth_generator *generator);
BERTH_API berth_status berth_generator_save(berth_generator *generator, void *dst, size_t size, berth_error *err);
BERTH_API berth_status berth_generator_load(berth_generator *generator, const void *src, size_t size, berth_error *err);

typedef struct berth_generator_info {
  uint32_t struct_size;
  uint32_t ctx, chunk, vocabulary;
  uint32_t n_tokens; /* in the conversation */
  int has_template;  /* berth_generator_chat works */
  const char *architecture;
  uint64_t arena_size;               /* all of it */
  uint64_t weights_size, state_size; /* parts of it */
} berth_generator_info;
#define BERTH_GENERATOR_INFO_INIT \
  { (uint32_t)sizeof(berth_generator_info), 0, 0, 0, 0, 0, NULL, 0, 0, 0 }
BERTH_API berth_status berth_generator_get_info(const berth_generator *generator, berth_generator_info *out,
                                                berth_error *err);
BERTH_API const int32_t *berth_generator_tokens(const berth_generator *generator); /* n_tokens of them */

/* ---- Vectors of texts ------------------------------------------------------------------------------------------ */

/* A model that makes a vector of a text (bert, nomic-bert), from a GGUF file. Texts that are similar have vectors with
 * a product near 1. */
typedef struct berth_embedder berth_embedder;

typedef struct berth_embedder_desc {
  uint32_t struct_size;
  uint32_t n_threads;               /* 0: the context's */
  const char *device;               /* NULL: "cpu" */
  const berth_thread_pool *threads; /* NULL: threads of its own */
  const berth_cancel *cancel;       /* NULL: none */
} berth_embedder_desc;
#define BERTH_EMBEDDER_DESC_INIT \
  { (uint32_t)sizeof(berth_embedder_desc), 0, NULL, NULL, NULL }

BERTH_API berth_status berth_embedder_create(berth_context *ctx, const char *path, const berth_embedder_desc *desc,
                                             berth_embedder **out, berth_error *err);
BERTH_API void berth_embedder_destroy(berth_embedder *embedder);
BERTH_API uint32_t berth_embedder_size(const berth_embedder *embedder); /* numbers of a vector */
/* The vector of a text, of length 1. INFEASIBLE: the text has more tokens than the model takes. */
BERTH_API berth_status berth_embedder_embed(berth_embedder *embedder, const char *text, size_t size, float *dst,
                                            size_t count, berth_error *err);

/* ---- Packer: usable without the rest -------------------------------------------------------------------------- */

#define BERTH_PACK_FREE UINT64_MAX

typedef struct berth_pack_buffer {
  uint64_t size;        /* 0 is fine: such a buffer takes no room */
  uint64_t align;       /* 0 or 1: anywhere; otherwise its offset is a multiple of it */
  int64_t lower, upper; /* alive over [lower, upper); empty: conflicts with nothing; reversed: an error */
  uint64_t offset;      /* BERTH_PACK_FREE, or the offset that it must have */
} berth_pack_buffer;

typedef struct berth_pack_heap {
  uint64_t limit; /* bytes */
} berth_pack_heap;

typedef struct berth_pack_progress {
  uint32_t struct_size;
  uint64_t size; /* best so far; UINT64_MAX: none yet */
  uint64_t lower_bound;
  uint64_t nodes, effort; /* spent so far; allowed in all */
} berth_pack_progress;

typedef struct berth_pack_desc {
  uint32_t struct_size;
  uint64_t effort;              /* search steps; 0: the default; 1: construct only */
  uint64_t capacity;            /* UINT64_MAX: as small as possible; otherwise stop at the first placement that fits */
  uint64_t seed;                /* breaks ties; the result is the same on every machine for the same seed */
  const berth_pack_heap *heaps; /* several heaps, cheapest first: every buffer goes into one of them */
  size_t n_heaps;
  uint32_t *heap_of;                                                /* with heaps: n entries, written */
  int (*progress)(void *user, const berth_pack_progress *progress); /* non-zero: stop, keep the best so far */
  void *user;
} berth_pack_desc;
#define BERTH_PACK_DESC_INIT \
  { (uint32_t)sizeof(berth_pack_desc), 0, UINT64_MAX, 0, NULL, 0, NULL, NULL, NULL }

typedef struct berth_pack_result {
  uint32_t struct_size;
  uint64_t size;        /* with heaps: the sum over them */
  uint64_t lower_bound; /* proven: no placement is smaller */
  uint64_t nodes;       /* effort spent */
  int optimal;          /* proven */
  int fits;             /* a placement within the capacity (the limits) was found */
  int infeasible;       /* proven that there is none */
  int cancelled;
} berth_pack_result;
#define BERTH_PACK_RESULT_INIT \
  { (uint32_t)sizeof(berth_pack_result), 0, 0, 0, 0, 0, 0, 0 }

/* offsets: n entries, written when the status is OK and a placement was found. If nothing fits, that is not an error:
 * see fits. */
BERTH_API berth_status berth_pack(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                                  const berth_pack_desc *desc, uint64_t *offsets, berth_pack_result *result,
                                  berth_error *err);
/* A picture of any packing. kind: BERTH_REPORT_SVG or BERTH_REPORT_HTML; names may be NULL. */
BERTH_API berth_status berth_pack_draw(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                                       const uint64_t *offsets, const char *const *names, berth_report_kind kind,
                                       berth_write_fn write, void *user, berth_error *err);

#ifdef __cplusplus
}
#endif
#endif /* BERTH_BERTH_H */
