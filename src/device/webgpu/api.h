/* The part of WebGPU's C API that berth calls, as defined by the standard. It is declared here so that nothing is
 * needed to build: implementations (Dawn, wgpu-native) are looked up at run time. */
#ifndef BERTH_DEVICE_WEBGPU_API_H
#define BERTH_DEVICE_WEBGPU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct berth__wgpu_object *berth__wgpu; /* a handle of any kind */
typedef uint32_t berth__wgpu_bool;

typedef struct berth__wgpu_string {
  const char *data;
  size_t length; /* SIZE_MAX: terminated by 0; with data NULL: no string */
} berth__wgpu_string;

typedef struct berth__wgpu_chain {
  struct berth__wgpu_chain *next;
  uint32_t kind;
} berth__wgpu_chain;
#define BERTH__WGPU_WGSL 2u /* the struct type of berth__wgpu_wgsl */

typedef struct berth__wgpu_future {
  uint64_t id;
} berth__wgpu_future;

/* Called when an asynchronous call completes: (status, message, user1, user2), with its result, a handle or a number,
 * after the status if it has one. */
typedef void (*berth__wgpu_fn)(void);
typedef struct berth__wgpu_callback {
  berth__wgpu_chain *next;
  uint32_t mode;
  berth__wgpu_fn call;
  void *user1, *user2;
} berth__wgpu_callback;
#define BERTH__WGPU_PROCESS_EVENTS 2u /* mode: only while events are processed */
#define BERTH__WGPU_SPONTANEOUS 3u    /* mode: at any time */

typedef struct berth__wgpu_error_callback {
  berth__wgpu_chain *next;
  berth__wgpu_fn call;
  void *user1, *user2;
} berth__wgpu_error_callback;

#define BERTH__WGPU_SUCCESS 1u /* for every kind of status */
enum {
  BERTH__WGPU_FILTER_VALIDATION = 1,
  BERTH__WGPU_FILTER_MEMORY,
  BERTH__WGPU_FILTER_INTERNAL
};
enum {
  BERTH__WGPU_NO_ERROR = 1,
  BERTH__WGPU_VALIDATION,
  BERTH__WGPU_OUT_OF_MEMORY,
  BERTH__WGPU_INTERNAL
};
#define BERTH__WGPU_DESTROYED 2u /* reason for device loss: it was destroyed */

#define BERTH__WGPU_ANY_U32 UINT32_MAX /* a limit that is not requested */
#define BERTH__WGPU_ANY_U64 UINT64_MAX

typedef struct berth__wgpu_limits {
  berth__wgpu_chain *next;
  uint32_t textures[4], bind_groups, bind_groups_and_vertex_buffers, bindings_in_group;
  uint32_t dynamic_uniform_buffers, dynamic_storage_buffers, sampled_textures, samplers;
  uint32_t storage_buffers, storage_textures, uniform_buffers;
  uint64_t uniform_binding, storage_binding; /* bytes */
  uint32_t uniform_align, storage_align, vertex_buffers;
  uint64_t buffer; /* bytes */
  uint32_t vertex_attributes, vertex_stride, inter_stage, colors, color_bytes;
  uint32_t shared_bytes, group_threads, group_size[3], groups;
  uint32_t rest[16]; /* newer limits; the standard has one so far */
} berth__wgpu_limits;

typedef struct berth__wgpu_adapter_info {
  berth__wgpu_chain *next;
  berth__wgpu_string vendor, architecture, device, description;
  uint32_t backend, kind, vendor_id, device_id;
  uint32_t least_subgroup, most_subgroup;
  uint32_t rest[16];
} berth__wgpu_adapter_info;
enum {
  BERTH__WGPU_ADAPTER_CPU = 3,
  BERTH__WGPU_ADAPTER_UNKNOWN
};
enum {
  BERTH__WGPU_BACKEND_NULL = 1,
  BERTH__WGPU_BACKEND_WEBGPU
};

typedef struct berth__wgpu_adapter_options {
  berth__wgpu_chain *next;
  uint32_t level, power;
  berth__wgpu_bool fallback;
  uint32_t backend;
  berth__wgpu surface;
} berth__wgpu_adapter_options;
#define BERTH__WGPU_CORE 2u
#define BERTH__WGPU_HIGH_PERFORMANCE 2u

typedef struct berth__wgpu_named {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
} berth__wgpu_named;

typedef struct berth__wgpu_device_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  size_t n_features;
  const uint32_t *features;
  const berth__wgpu_limits *limits;
  berth__wgpu_named queue;
  berth__wgpu_callback lost;
  berth__wgpu_error_callback error;
} berth__wgpu_device_desc;

typedef struct berth__wgpu_buffer_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  uint64_t usage, size;
  berth__wgpu_bool mapped;
} berth__wgpu_buffer_desc;
enum {
  BERTH__WGPU_MAP_READ = 0x1,
  BERTH__WGPU_COPY_SRC = 0x4,
  BERTH__WGPU_COPY_DST = 0x8,
  BERTH__WGPU_UNIFORM = 0x40,
  BERTH__WGPU_STORAGE = 0x80,
  BERTH__WGPU_QUERY_RESOLVE = 0x200
};
#define BERTH__WGPU_MODE_READ ((uint64_t)1)

typedef struct berth__wgpu_layout_entry {
  berth__wgpu_chain *next;
  uint32_t binding;
  uint64_t stages;
  uint32_t array;
  struct {
    berth__wgpu_chain *next;
    uint32_t kind;
    berth__wgpu_bool is_dynamic;
    uint64_t least_size;
  } buffer;
  struct {
    berth__wgpu_chain *next;
    uint32_t kind;
  } sampler;
  struct {
    berth__wgpu_chain *next;
    uint32_t sample, view;
    berth__wgpu_bool multisampled;
  } texture;
  struct {
    berth__wgpu_chain *next;
    uint32_t access, format, view;
  } storage_texture;
} berth__wgpu_layout_entry;
#define BERTH__WGPU_COMPUTE ((uint64_t)4) /* shader stage */
#define BERTH__WGPU_BIND_UNIFORM 2u
#define BERTH__WGPU_BIND_STORAGE 3u

typedef struct berth__wgpu_group_layout_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  size_t n_entries;
  const berth__wgpu_layout_entry *entries;
} berth__wgpu_group_layout_desc;

typedef struct berth__wgpu_entry {
  berth__wgpu_chain *next;
  uint32_t binding;
  berth__wgpu buffer;
  uint64_t offset, size;
  berth__wgpu sampler, texture;
} berth__wgpu_entry;

typedef struct berth__wgpu_group_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  berth__wgpu layout;
  size_t n_entries;
  const berth__wgpu_entry *entries;
} berth__wgpu_group_desc;

typedef struct berth__wgpu_layout_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  size_t n_groups;
  const berth__wgpu *groups;
  uint32_t immediate;
} berth__wgpu_layout_desc;

typedef struct berth__wgpu_wgsl {
  berth__wgpu_chain chain;
  berth__wgpu_string code;
} berth__wgpu_wgsl;

typedef struct berth__wgpu_pipeline_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  berth__wgpu layout;
  struct {
    berth__wgpu_chain *next;
    berth__wgpu module;
    berth__wgpu_string entry;
    size_t n_constants;
    const void *constants;
  } compute;
} berth__wgpu_pipeline_desc;

/* Timestamps of a pass, in nanoseconds: two entries of a query set. The feature has one number in the standard and
 * another in earlier versions; each number stands for something harmless in the other. */
#define BERTH__WGPU_FEATURE_TIMES 9u
#define BERTH__WGPU_FEATURE_TIMES_BEFORE 3u

/* Subgroups, with two numbers as well. */
#define BERTH__WGPU_FEATURE_SUBGROUPS 18u
#define BERTH__WGPU_FEATURE_SUBGROUPS_BEFORE 17u

typedef struct berth__wgpu_query_set_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  uint32_t kind, count;
} berth__wgpu_query_set_desc;
#define BERTH__WGPU_QUERY_TIMES 2u

typedef struct berth__wgpu_pass_times {
  berth__wgpu_chain *next;
  berth__wgpu query_set;
  uint32_t begin, end; /* entries */
} berth__wgpu_pass_times;

typedef struct berth__wgpu_pass_desc {
  berth__wgpu_chain *next;
  berth__wgpu_string label;
  const berth__wgpu_pass_times *times;
} berth__wgpu_pass_desc;

typedef struct berth__wgpu_calls {
#define BERTH__WGPU_CALL(result, name, ...) result (*name)(__VA_ARGS__);
#include "device/webgpu/calls.def"
#undef BERTH__WGPU_CALL
  /* Not part of the standard, because browsers do these differently. */
  bool (*read_mapped)(berth__wgpu buffer, size_t offset, void *dst, size_t size); /* false: not mapped */
  void (*rest)(uint32_t round, double left); /* sleeps until there may be an answer; `left`: at most this many ms */
} berth__wgpu_calls;

/* The functions of the implementation. library.c: a shared library (path NULL: one of the usual ones), which stays open
 * once opened; browser.c: the browser's. NULL: there is none, and *reason says why. */
const berth__wgpu_calls *berth__wgpu_library(const char *path, const char **reason);

#endif
