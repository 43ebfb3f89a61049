/* A file is a header, an entry for each kernel, and their code:
 *
 *   "brtP", version, number of kernels                       4, 4 and 8 bytes
 * name (16 bytes), offset of its code, its bytes, checksum   48 bytes each
 *
 * Numbers are little endian, like all machines with supported GPUs. */
#include "device/gpu/pack.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define MAGIC 0x50747262u
#define VERSION 1u
#define MOST_BYTES ((uint64_t)4 << 30)

typedef struct pack_head {
  uint32_t magic, version;
  uint64_t count;
} pack_head;

typedef struct pack_entry {
  uint64_t name[2], at, size, sum[2];
} pack_entry;

/* ---- Reading ---- */

static berth_status gpu_pack_fail(const char *path, const char *what, berth_error *err) {
  return berth__fail(err, BERTH_INVALID, "BERTH_KERNEL_PACK: '%s' %s", path, what);
}

static pack_entry gpu_pack_entry(const berth__kernel_pack *pack, uint64_t index) {
  pack_entry entry;
  memcpy(&entry, pack->data + sizeof(pack_head) + index * sizeof entry, sizeof entry);
  return entry;
}

static uint64_t gpu_pack_count(const berth__kernel_pack *pack) {
  pack_head head;
  if (pack->data == NULL) return 0;
  memcpy(&head, pack->data, sizeof head);
  return head.count;
}

static berth_status gpu_pack_check(const berth__kernel_pack *pack, const char *path, berth_error *err) {
  pack_head head;
  if (pack->size < sizeof head) return gpu_pack_fail(path, "is no pack of kernels", err);
  memcpy(&head, pack->data, sizeof head);
  if (head.magic != MAGIC) return gpu_pack_fail(path, "is no pack of kernels", err);
  if (head.version != VERSION) return gpu_pack_fail(path, "is a pack of another version of berth", err);
  if (head.count > (pack->size - sizeof head) / sizeof(pack_entry)) return gpu_pack_fail(path, "is cut off", err);
  for (uint64_t i = 0; i < head.count; i++) {
    const pack_entry entry = gpu_pack_entry(pack, i);
    if (entry.at > pack->size || entry.size > pack->size - entry.at) return gpu_pack_fail(path, "is cut off", err);
  }
  return BERTH_OK;
}

static berth_status gpu_pack_read(berth__kernel_pack *pack, FILE *file, const char *path, berth_error *err) {
  struct stat about;
  if (fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode) || (uint64_t)about.st_size > MOST_BYTES)
    return gpu_pack_fail(path, "is no pack of kernels", err);
  pack->size = (uint64_t)about.st_size;
  pack->data = berth__alloc_u64(pack->ctx, pack->size + 1);
  if (pack->data == NULL) return berth__fail_nomem(err, "a pack of kernels");
  if (fread(pack->data, 1, (size_t)pack->size, file) != pack->size) return gpu_pack_fail(path, "cannot be read", err);
  return gpu_pack_check(pack, path, err);
}

berth_status berth__kernel_pack_open(berth__kernel_pack *pack, berth_context *ctx, const char *path, berth_error *err) {
  *pack = (berth__kernel_pack){.ctx = ctx};
  if (path == NULL) return BERTH_OK;
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    return berth__fail(err, BERTH_IO, "BERTH_KERNEL_PACK: '%s' cannot be opened: %s", path, strerror(errno));
  const berth_status status = gpu_pack_read(pack, file, path, err);
  fclose(file);
  if (status != BERTH_OK) berth__kernel_pack_close(pack);
  return status;
}

void berth__kernel_pack_close(berth__kernel_pack *pack) {
  if (pack->ctx != NULL) berth__free(pack->ctx, pack->data);
  pack->data = NULL;
}

static berth_status gpu_pack_take(const berth__kernel_pack *pack, const pack_entry *entry, const char *target,
                                  berth__kernel_code *out, berth_error *err) {
  uint64_t sum[2];
  *out = (berth__kernel_code){berth__alloc_zero(pack->ctx, (size_t)entry->size + 1), (size_t)entry->size};
  if (out->data == NULL) return berth__fail_nomem(err, "a compiled kernel");
  memcpy(out->data, pack->data + entry->at, out->size);
  berth__kernel_code_sum(out, sum);
  if (memcmp(sum, entry->sum, sizeof sum) == 0) return BERTH_OK;
  berth__log(pack->ctx, 1, "BERTH_KERNEL_PACK: a kernel for %s is damaged", target);
  berth__free(pack->ctx, out->data);
  *out = (berth__kernel_code){0};
  return BERTH_OK;
}

berth_status berth__kernel_pack_find(const berth__kernel_pack *pack, const char *target, const char *source,
                                     size_t size, berth__kernel_code *out, berth_error *err) {
  const uint64_t n = gpu_pack_count(pack);
  uint64_t name[2];
  *out = (berth__kernel_code){0};
  if (n == 0) return BERTH_OK;
  berth__kernel_name(target, source, size, name);
  for (uint64_t i = 0; i < n; i++) {
    const pack_entry entry = gpu_pack_entry(pack, i);
    if (memcmp(entry.name, name, sizeof name) == 0) return gpu_pack_take(pack, &entry, target, out, err);
  }
  return BERTH_OK;
}

/* ---- Making ---- */

static berth_status gpu_pack_add(berth__kernel_packer *packer, const char *target, const char *source, size_t size,
                                 berth__kernel_code *code, berth_error *err) {
  uint64_t name[2];
  berth__kernel_name(target, source, size, name);
  for (size_t i = 0; i < packer->n; i++)
    if (memcmp(packer->kernels[i].name, name, sizeof name) == 0) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(packer->ctx, packer->kernels, packer->capacity, packer->n + 1, err));
  packer->kernels[packer->n++] = (berth__packed_kernel){{name[0], name[1]}, *code};
  *code = (berth__kernel_code){0};
  return BERTH_OK;
}

berth_status berth__kernel_packer_add(berth__kernel_packer *packer, const char *target, const char *source, size_t size,
                                      berth__kernel_code *code, berth_error *err) {
  const berth_status status = gpu_pack_add(packer, target, source, size, code, err);
  berth__free(packer->ctx, code->data);
  *code = (berth__kernel_code){0};
  return status;
}

static berth_status gpu_pack_put(berth_write_fn write, void *user, const void *data, size_t size, berth_error *err) {
  const berth_status status = size != 0 ? write(user, data, size) : BERTH_OK;
  return status == BERTH_OK ? BERTH_OK : berth__fail(err, status, "writing the kernels was stopped");
}

berth_status berth__kernel_packer_write(const berth__kernel_packer *packer, berth_write_fn write, void *user,
                                        berth_error *err) {
  const pack_head head = {MAGIC, VERSION, packer->n};
  uint64_t at = sizeof head + packer->n * sizeof(pack_entry);
  BERTH__TRY(gpu_pack_put(write, user, &head, sizeof head, err));
  for (size_t i = 0; i < packer->n; i++) {
    const berth__packed_kernel *kernel = &packer->kernels[i];
    pack_entry entry = {.name = {kernel->name[0], kernel->name[1]}, .at = at, .size = kernel->code.size};
    berth__kernel_code_sum(&kernel->code, entry.sum);
    BERTH__TRY(gpu_pack_put(write, user, &entry, sizeof entry, err));
    at += entry.size;
  }
  for (size_t i = 0; i < packer->n; i++)
    BERTH__TRY(gpu_pack_put(write, user, packer->kernels[i].code.data, packer->kernels[i].code.size, err));
  return BERTH_OK;
}

void berth__kernel_packer_free(berth__kernel_packer *packer) {
  for (size_t i = 0; i < packer->n; i++) berth__free(packer->ctx, packer->kernels[i].code.data);
  berth__free(packer->ctx, packer->kernels);
  *packer = (berth__kernel_packer){.ctx = packer->ctx};
}

/* ---- Public functions ---- */

static berth_status pack_plan(const berth_plan *plan, const char *targets, berth__kernel_packer *packer,
                              berth_error *err) {
  const berth__device *device;
  berth__recipe *recipe;
  BERTH__TRY(berth__device_find(plan->device, &device, err));
  if (device->pack_kernels == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "kernels of the device '%s' cannot be packed; those of 'cuda' can",
                       plan->device);
  BERTH__TRY(berth__recipe_create(plan, &recipe, err));
  berth_status status = device->pack_kernels(recipe, targets, packer, err); /* sessions in checked mode have these */
  if (status == BERTH_OK && plan->profile.loops.begins_early) {
    status = berth__recipe_phases(recipe, err);
    if (status == BERTH_OK) status = berth__recipe_merge(recipe, err);
    berth__recipe_forget_unused(recipe);
    if (status == BERTH_OK) status = device->pack_kernels(recipe, targets, packer, err);
  }
  berth__recipe_destroy(recipe);
  return status;
}

/* Packs plans, each with its own targets, or all with the same ones. */
static berth_status pack_plans(const berth_plan *const *plans, uint32_t n_plans, const char *const *each,
                               const char *shared, berth_write_fn write, void *user, berth_error *err) {
  if (plans == NULL || n_plans == 0 || write == NULL)
    return berth__fail(err, BERTH_INVALID, "plans, and a function that takes the bytes, are needed");
  for (uint32_t i = 0; i < n_plans; i++) {
    if (plans[i] == NULL) return berth__fail(err, BERTH_INVALID, "plan %u is NULL", i);
    if (plans[i]->ctx != plans[0]->ctx)
      return berth__fail(err, BERTH_INVALID, "plan %u is of another context than plan 0; pack them apart", i);
  }
  berth__kernel_packer packer = {.ctx = plans[0]->ctx};
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < n_plans && status == BERTH_OK; i++)
    status = pack_plan(plans[i], each != NULL ? each[i] : shared, &packer, err);
  if (status == BERTH_OK) status = berth__kernel_packer_write(&packer, write, user, err);
  berth__kernel_packer_free(&packer);
  return status;
}

berth_status berth_kernels_pack(const berth_plan *const *plans, uint32_t n_plans, const char *targets,
                                berth_write_fn write, void *user, berth_error *err) {
  return pack_plans(plans, n_plans, NULL, targets, write, user, err);
}

berth_status berth_kernels_pack_each(const berth_plan *const *plans, const char *const *targets, uint32_t n_plans,
                                     berth_write_fn write, void *user, berth_error *err) {
  return pack_plans(plans, n_plans, targets, NULL, write, user, err);
}
