/* A pack: ahead-of-time compiled kernels in one file, looked up by source and target. With it, a machine with a driver
 * but no compiler can run a model. */
#ifndef BERTH_DEVICE_GPU_PACK_H
#define BERTH_DEVICE_GPU_PACK_H

#include "device/device.h"
#include "device/gpu/cache.h"
#include "device/gpu/recipe.h"

typedef struct berth__kernel_pack {
  berth_context *ctx;
  unsigned char *data; /* NULL: no pack */
  uint64_t size;
} berth__kernel_pack;

/* path NULL: an empty one. A file that is not a pack, or incomplete, is an error. */
berth_status berth__kernel_pack_open(berth__kernel_pack *pack, berth_context *ctx, const char *path, berth_error *err);
void berth__kernel_pack_close(berth__kernel_pack *pack);
/* out->data NULL: it is missing, or damaged, which is logged. The code is followed by a 0 byte and allocated from the
 * context. */
berth_status berth__kernel_pack_find(const berth__kernel_pack *pack, const char *target, const char *source,
                                     size_t size, berth__kernel_code *out, berth_error *err);

/* A kernel of a pack under construction. */
typedef struct berth__packed_kernel {
  uint64_t name[2];
  berth__kernel_code code;
} berth__packed_kernel;

struct berth__kernel_packer {
  berth_context *ctx;
  berth__packed_kernel *kernels;
  size_t n, capacity;
};

/* Takes ownership of the code in any case. Drops it if the pack already has it. */
berth_status berth__kernel_packer_add(berth__kernel_packer *packer, const char *target, const char *source, size_t size,
                                      berth__kernel_code *code, berth_error *err);
berth_status berth__kernel_packer_write(const berth__kernel_packer *packer, berth_write_fn write, void *user,
                                        berth_error *err);
void berth__kernel_packer_free(berth__kernel_packer *packer);

#endif
