/* A pack: ahead-of-time compiled kernels in one file, found by their source and their target. With it, a machine
 * with a driver but no compiler runs a model. */
#ifndef BERTH_DEVICE_GPU_PACK_H
#define BERTH_DEVICE_GPU_PACK_H

#include "device/device.h"
#include "device/gpu/cache.h"
#include "device/gpu/recipe.h"

typedef struct berth__kernel_pack {
  berth_context *ctx;
  unsigned char *data; /* NULL: there is none */
  uint64_t size;
} berth__kernel_pack;

/* path NULL: an empty one. A file that is no pack, or not whole, is an error. */
berth_status berth__kernel_pack_open(berth__kernel_pack *pack, berth_context *ctx, const char *path, berth_error *err);
void berth__kernel_pack_close(berth__kernel_pack *pack);
/* out->data NULL: it is not there, or damaged, which the log says. A 0 stands behind the code, which is from the
 * context. */
berth_status berth__kernel_pack_find(const berth__kernel_pack *pack, const char *target, const char *source,
                                     size_t size, berth__kernel_code *out, berth_error *err);

/* While one is made. */
typedef struct berth__packed_kernel {
  uint64_t name[2];
  berth__kernel_code code;
} berth__packed_kernel;

struct berth__kernel_packer {
  berth_context *ctx;
  berth__packed_kernel *kernels;
  size_t n, capacity;
};

/* Takes the code, in any case. One that is there already is dropped. */
berth_status berth__kernel_packer_add(berth__kernel_packer *packer, const char *target, const char *source, size_t size,
                                      berth__kernel_code *code, berth_error *err);
berth_status berth__kernel_packer_write(const berth__kernel_packer *packer, berth_write_fn write, void *user,
                                        berth_error *err);
void berth__kernel_packer_free(berth__kernel_packer *packer);

#endif
