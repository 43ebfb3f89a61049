/* WebGPU in a browser: navigator.gpu, which only JavaScript can access. Descriptors are decoded here, and
 * web/package/webgpu.js receives only numbers and pointers. It numbers the browser's objects; the numbers are the
 * handles. Answers wait in its queue until events are processed, so it never calls back. */
#include "device/webgpu/api.h"

#ifdef __wasm__ /* elsewhere library.c does this */
#include <string.h>

#define TEXT 400u /* bytes of the browser's messages */

/* ---- Imports from webgpu.js. Sizes and offsets in buffers are doubles, which hold more than 32 bits ---- */

#define FROM_JS(result, name, ...) \
  __attribute__((import_module("webgpu"), import_name(#name))) result berth__js_##name(__VA_ARGS__);

/* The callback of an asynchronous call, and its arguments. */
#define CALLBACK berth__wgpu_fn call, void *user1, void *user2
#define PASS(callback) (callback).call, (callback).user1, (callback).user2

FROM_JS(uint32_t, reason, char *out, size_t size) /* why there is no WebGPU; 0: there is. Returns the length */
FROM_JS(berth__wgpu, instance, void)
FROM_JS(void, release, berth__wgpu object) /* of any kind */
FROM_JS(void, request_adapter, berth__wgpu instance, berth__wgpu_bool high_performance, CALLBACK)
FROM_JS(uint32_t, adapter_name, berth__wgpu adapter, char *out, size_t size) /* returns the length */
FROM_JS(berth__wgpu_bool, adapter_is_cpu, berth__wgpu adapter)
FROM_JS(uint32_t, adapter_subgroup, berth__wgpu adapter) /* 0: unknown */
FROM_JS(double, adapter_limit, berth__wgpu adapter, const char *name)
FROM_JS(void, ask_limit, berth__wgpu adapter, const char *name, double limit) /* for the next request_device */
FROM_JS(void, request_device, berth__wgpu adapter, CALLBACK, berth__wgpu_fn lost, void *lost1, void *lost2,
        berth__wgpu_fn error, void *error1, void *error2)
FROM_JS(berth__wgpu, device_queue, berth__wgpu device)
FROM_JS(void, destroy_device, berth__wgpu device)
FROM_JS(void, push_scope, berth__wgpu device, uint32_t filter)
FROM_JS(void, pop_scope, berth__wgpu device, CALLBACK)

FROM_JS(berth__wgpu, buffer, berth__wgpu device, uint32_t usage, double size)
FROM_JS(void, destroy_buffer, berth__wgpu buffer)
FROM_JS(void, write_buffer, berth__wgpu queue, berth__wgpu buffer, double offset, const void *data, size_t size)
FROM_JS(void, map, berth__wgpu buffer, size_t offset, size_t size, CALLBACK)
FROM_JS(bool, read_mapped, berth__wgpu buffer, size_t offset, void *dst, size_t size)
FROM_JS(void, unmap, berth__wgpu buffer)

/* The entries of a list are passed one by one, before the object made from them. */
FROM_JS(void, layout_entry, uint32_t binding, uint32_t kind, berth__wgpu_bool is_dynamic)
FROM_JS(berth__wgpu, group_layout, berth__wgpu device)
FROM_JS(void, layout_group, berth__wgpu group_layout)
FROM_JS(berth__wgpu, layout, berth__wgpu device)
FROM_JS(void, group_entry, uint32_t binding, berth__wgpu buffer, double offset, double size)
FROM_JS(berth__wgpu, group, berth__wgpu device, berth__wgpu group_layout)
FROM_JS(berth__wgpu, shader, berth__wgpu device, const char *code, size_t size)
FROM_JS(berth__wgpu, pipeline, berth__wgpu device, berth__wgpu layout, berth__wgpu shader, const char *entry,
        size_t size)

FROM_JS(berth__wgpu, encoder, berth__wgpu device)
FROM_JS(berth__wgpu, pass, berth__wgpu encoder)
FROM_JS(void, set_pipeline, berth__wgpu pass, berth__wgpu pipeline)
FROM_JS(void, set_group, berth__wgpu pass, uint32_t index, berth__wgpu group, size_t n, const uint32_t *offsets)
FROM_JS(void, dispatch, berth__wgpu pass, uint32_t x, uint32_t y, uint32_t z)
FROM_JS(void, end_pass, berth__wgpu pass)
FROM_JS(void, copy, berth__wgpu encoder, berth__wgpu src, double src_offset, berth__wgpu dst, double dst_offset,
        double size)
FROM_JS(void, clear, berth__wgpu encoder, berth__wgpu buffer, double offset, double size)
FROM_JS(berth__wgpu, finish, berth__wgpu encoder)
FROM_JS(void, submit, berth__wgpu queue, berth__wgpu commands)

enum {
  ANSWER_OBJECT,
  ANSWER_MAP,
  ANSWER_SCOPE,
  ANSWER_LOST,
  ANSWER_ERROR
};
typedef struct answer { /* filled by webgpu.js: 32-bit words, followed by text */
  uint32_t kind, status, value;
  berth__wgpu_fn call;
  void *user1, *user2;
  uint32_t length;
  char text[TEXT];
} answer;
FROM_JS(bool, take_answer, answer *out, size_t text_size) /* false: no answer */
FROM_JS(void, wait, double ms)                            /* suspends until there is one, for at most `ms` */

/* ---- Adapters and devices ---- */

/* The limits that berth reads or requests; others keep the standard's defaults. */
static const struct {
  const char *name;
  size_t at;
  bool is_wide;
} limit_names[] = {
#define LIMIT(name, field) \
  { name, offsetof(berth__wgpu_limits, field), sizeof((berth__wgpu_limits *)NULL)->field == 8 }
    LIMIT("maxStorageBuffersPerShaderStage", storage_buffers),
    LIMIT("maxStorageBufferBindingSize", storage_binding),
    LIMIT("maxUniformBufferBindingSize", uniform_binding),
    LIMIT("minStorageBufferOffsetAlignment", storage_align),
    LIMIT("minUniformBufferOffsetAlignment", uniform_align),
    LIMIT("maxBufferSize", buffer),
    LIMIT("maxComputeWorkgroupStorageSize", shared_bytes),
    LIMIT("maxComputeInvocationsPerWorkgroup", group_threads),
    LIMIT("maxComputeWorkgroupSizeX", group_size[0]),
    LIMIT("maxComputeWorkgroupsPerDimension", groups),
};
#define N_LIMITS (sizeof limit_names / sizeof limit_names[0])

static uint32_t get_limits(berth__wgpu adapter, berth__wgpu_limits *out) {
  for (size_t i = 0; i < N_LIMITS; i++) {
    const double limit = berth__js_adapter_limit(adapter, limit_names[i].name);
    const uint64_t wide = (uint64_t)limit;
    const uint32_t narrow = (uint32_t)limit;
    unsigned char *at = (unsigned char *)out + limit_names[i].at;
    limit_names[i].is_wide ? memcpy(at, &wide, sizeof wide) : memcpy(at, &narrow, sizeof narrow);
  }
  return BERTH__WGPU_SUCCESS;
}

static void ask_limits(berth__wgpu adapter, const berth__wgpu_limits *limits) {
  for (size_t i = 0; i < N_LIMITS; i++) {
    const unsigned char *at = (const unsigned char *)limits + limit_names[i].at;
    uint64_t wide;
    uint32_t narrow;
    limit_names[i].is_wide ? memcpy(&wide, at, sizeof wide) : memcpy(&narrow, at, sizeof narrow);
    if (limit_names[i].is_wide ? wide == BERTH__WGPU_ANY_U64 : narrow == BERTH__WGPU_ANY_U32) continue;
    berth__js_ask_limit(adapter, limit_names[i].name, limit_names[i].is_wide ? (double)wide : narrow);
  }
}

static berth__wgpu create_instance(const void *desc) {
  (void)desc;
  return berth__js_instance();
}

static berth__wgpu_future request_adapter(berth__wgpu instance, const berth__wgpu_adapter_options *options,
                                          berth__wgpu_callback callback) {
  berth__js_request_adapter(instance, options->power == BERTH__WGPU_HIGH_PERFORMANCE, PASS(callback));
  return (berth__wgpu_future){0};
}

static uint32_t get_info(berth__wgpu adapter, berth__wgpu_adapter_info *out) {
  static char name[TEXT]; /* valid until the next call: nobody keeps it */
  out->device = (berth__wgpu_string){name, berth__js_adapter_name(adapter, name, sizeof name)};
  out->backend = BERTH__WGPU_BACKEND_WEBGPU;
  out->kind = berth__js_adapter_is_cpu(adapter) ? BERTH__WGPU_ADAPTER_CPU : BERTH__WGPU_ADAPTER_UNKNOWN;
  out->least_subgroup = berth__js_adapter_subgroup(adapter);
  return BERTH__WGPU_SUCCESS;
}

static void free_info(berth__wgpu_adapter_info info) { (void)info; /* see get_info */ }

static berth__wgpu_future request_device(berth__wgpu adapter, const berth__wgpu_device_desc *desc,
                                         berth__wgpu_callback callback) {
  if (desc->limits != NULL) ask_limits(adapter, desc->limits);
  berth__js_request_device(adapter, PASS(callback), PASS(desc->lost), PASS(desc->error));
  return (berth__wgpu_future){0};
}

/* ---- Answers ---- */

static void give(const answer *a) {
  const berth__wgpu_string text = {a->text, a->length};
  switch (a->kind) {
    case ANSWER_OBJECT:
      ((void (*)(uint32_t, berth__wgpu, berth__wgpu_string, void *, void *))a->call)(
          a->status, (berth__wgpu)(uintptr_t)a->value, text, a->user1, a->user2);
      break;
    case ANSWER_MAP:
      ((void (*)(uint32_t, berth__wgpu_string, void *, void *))a->call)(a->status, text, a->user1, a->user2);
      break;
    case ANSWER_SCOPE:
      ((void (*)(uint32_t, uint32_t, berth__wgpu_string, void *, void *))a->call)(a->status, a->value, text, a->user1,
                                                                                  a->user2);
      break;
    default: /* ANSWER_LOST, ANSWER_ERROR; user1 says which device */
      ((void (*)(const berth__wgpu *, uint32_t, berth__wgpu_string, void *, void *))a->call)(NULL, a->value, text,
                                                                                             a->user1, a->user2);
  }
}

static void process_events(berth__wgpu instance) {
  static answer a;
  (void)instance; /* there is one queue for all */
  while (berth__js_take_answer(&a, sizeof a.text)) give(&a);
}

static void rest(uint32_t round, double left) {
  (void)round;
  berth__js_wait(left);
}

static berth__wgpu_future pop_scope(berth__wgpu device, berth__wgpu_callback callback) {
  berth__js_pop_scope(device, PASS(callback));
  return (berth__wgpu_future){0};
}

static berth__wgpu_future map(berth__wgpu buffer, uint64_t mode, size_t offset, size_t size,
                              berth__wgpu_callback callback) {
  (void)mode; /* berth maps only to read */
  berth__js_map(buffer, offset, size, PASS(callback));
  return (berth__wgpu_future){0};
}

/* ---- Creating objects ---- */

static berth__wgpu create_buffer(berth__wgpu device, const berth__wgpu_buffer_desc *desc) {
  return berth__js_buffer(device, (uint32_t)desc->usage, (double)desc->size);
}

static berth__wgpu create_shader(berth__wgpu device, const berth__wgpu_named *desc) {
  const berth__wgpu_wgsl *wgsl = (const berth__wgpu_wgsl *)desc->next; /* the only kind supported here */
  return berth__js_shader(device, wgsl->code.data, wgsl->code.length);
}

static berth__wgpu create_group_layout(berth__wgpu device, const berth__wgpu_group_layout_desc *desc) {
  for (size_t i = 0; i < desc->n_entries; i++)
    berth__js_layout_entry(desc->entries[i].binding, desc->entries[i].buffer.kind, desc->entries[i].buffer.is_dynamic);
  return berth__js_group_layout(device);
}

static berth__wgpu create_layout(berth__wgpu device, const berth__wgpu_layout_desc *desc) {
  for (size_t i = 0; i < desc->n_groups; i++) berth__js_layout_group(desc->groups[i]);
  return berth__js_layout(device);
}

static berth__wgpu create_group(berth__wgpu device, const berth__wgpu_group_desc *desc) {
  for (size_t i = 0; i < desc->n_entries; i++) {
    const berth__wgpu_entry *entry = &desc->entries[i];
    berth__js_group_entry(entry->binding, entry->buffer, (double)entry->offset, (double)entry->size);
  }
  return berth__js_group(device, desc->layout);
}

static berth__wgpu create_pipeline(berth__wgpu device, const berth__wgpu_pipeline_desc *desc) {
  return berth__js_pipeline(device, desc->layout, desc->compute.module, desc->compute.entry.data,
                            desc->compute.entry.length);
}

/* ---- Commands ---- */

static berth__wgpu create_encoder(berth__wgpu device, const berth__wgpu_named *desc) {
  (void)desc;
  return berth__js_encoder(device);
}

static berth__wgpu begin_pass(berth__wgpu encoder, const void *desc) {
  (void)desc;
  return berth__js_pass(encoder);
}

static void copy(berth__wgpu encoder, berth__wgpu src, uint64_t src_offset, berth__wgpu dst, uint64_t dst_offset,
                 uint64_t size) {
  berth__js_copy(encoder, src, (double)src_offset, dst, (double)dst_offset, (double)size);
}

static void clear(berth__wgpu encoder, berth__wgpu buffer, uint64_t offset, uint64_t size) {
  berth__js_clear(encoder, buffer, (double)offset, (double)size);
}

static berth__wgpu finish(berth__wgpu encoder, const berth__wgpu_named *desc) {
  (void)desc;
  return berth__js_finish(encoder);
}

static void submit(berth__wgpu queue, size_t n, const berth__wgpu *commands) {
  for (size_t i = 0; i < n; i++) berth__js_submit(queue, commands[i]);
}

static void write_buffer(berth__wgpu queue, berth__wgpu buffer, uint64_t offset, const void *data, size_t size) {
  berth__js_write_buffer(queue, buffer, (double)offset, data, size);
}

/* ---- The table ---- */

static const berth__wgpu_calls calls = {
    .CreateInstance = create_instance,
    .InstanceRequestAdapter = request_adapter,
    .InstanceProcessEvents = process_events,
    .InstanceRelease = berth__js_release,
    .AdapterGetInfo = get_info,
    .AdapterInfoFreeMembers = free_info,
    .AdapterGetLimits = get_limits,
    .AdapterRequestDevice = request_device,
    .AdapterRelease = berth__js_release,
    .DeviceGetQueue = berth__js_device_queue,
    .DeviceCreateBuffer = create_buffer,
    .DeviceCreateShaderModule = create_shader,
    .DeviceCreateBindGroupLayout = create_group_layout,
    .DeviceCreatePipelineLayout = create_layout,
    .DeviceCreateComputePipeline = create_pipeline,
    .DeviceCreateBindGroup = create_group,
    .DeviceCreateCommandEncoder = create_encoder,
    .DevicePushErrorScope = berth__js_push_scope,
    .DevicePopErrorScope = pop_scope,
    .DeviceDestroy = berth__js_destroy_device,
    .DeviceRelease = berth__js_release,
    .QueueSubmit = submit,
    .QueueWriteBuffer = write_buffer,
    .QueueRelease = berth__js_release,
    .BufferMapAsync = map,
    .BufferUnmap = berth__js_unmap,
    .BufferDestroy = berth__js_destroy_buffer,
    .BufferRelease = berth__js_release,
    .CommandEncoderBeginComputePass = begin_pass,
    .CommandEncoderCopyBufferToBuffer = copy,
    .CommandEncoderClearBuffer = clear,
    .CommandEncoderFinish = finish,
    .CommandEncoderRelease = berth__js_release,
    .CommandBufferRelease = berth__js_release,
    .ComputePassEncoderSetPipeline = berth__js_set_pipeline,
    .ComputePassEncoderSetBindGroup = berth__js_set_group,
    .ComputePassEncoderDispatchWorkgroups = berth__js_dispatch,
    .ComputePassEncoderEnd = berth__js_end_pass,
    .ComputePassEncoderRelease = berth__js_release,
    .ShaderModuleRelease = berth__js_release,
    .BindGroupLayoutRelease = berth__js_release,
    .PipelineLayoutRelease = berth__js_release,
    .ComputePipelineRelease = berth__js_release,
    .BindGroupRelease = berth__js_release,
    .read_mapped = berth__js_read_mapped,
    .rest = rest,
};

const berth__wgpu_calls *berth__wgpu_library(const char *path, const char **reason) {
  (void)path;
  static char why[TEXT + 1];
  why[berth__js_reason(why, TEXT)] = '\0';
  *reason = why[0] != '\0' ? why : NULL;
  return *reason == NULL ? &calls : NULL;
}

#endif
