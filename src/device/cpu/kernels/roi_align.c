/* roi_align: the samples of a bin are found once, for all channels. Sums are those of the reference kernel, in f64 and
 * in its order. */
#include "ops/roi_align.h"
#include "ops/registry.h"

#include "base/half.h"
#include "device/cpu/kernels/half.h"
#include "device/cpu/kernels/vec.h"

#define SAMPLES 128 /* of a bin, at most: regions of more are left to the reference kernel */

static bool roi_kernel_takes(const berth_op_call *call) {
  const berth_type type = call->in[BERTH__ROI_ALIGN_X].type;
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16;
}

static int64_t roi_kernel_items(const berth_op_call *call) { return call->out[0].dim[0]; }

typedef struct roi_bin {
  berth__roi_sample sample[SAMPLES]; /* those inside */
  int64_t n;
  bool any_outside; /* whose values are 0 */
  double count;     /* of all samples */
} roi_bin;

static void roi_kernel_find(const berth__roi_bins *rows, const berth__roi_bins *columns, int64_t row, int64_t column,
                            roi_bin *bin) {
  bin->n = 0;
  bin->count = (double)rows->samples * (double)columns->samples;
  for (int64_t i = 0; i < rows->samples; i++)
    for (int64_t j = 0; j < columns->samples; j++) {
      berth__roi_align_sample(rows, columns, row, column, i, j, &bin->sample[bin->n]);
      if (bin->sample[bin->n].inside) bin->n++;
    }
  bin->any_outside = (double)bin->n < bin->count;
}

#define POOL(name, c_type, as_f64)                                               \
  static double roi_kernel_average_##name(const c_type *x, const roi_bin *bin) { \
    double sum = 0;                                                              \
    for (int64_t s = 0; s < bin->n; s++) {                                       \
      double part[4];                                                            \
      for (int k = 0; k < 4; k++) {                                              \
        const c_type element = x[bin->sample[s].from[k]];                        \
        part[k] = bin->sample[s].weight[k] * (as_f64);                           \
      }                                                                          \
      sum += part[0] + part[1] + part[2] + part[3];                              \
    }                                                                            \
    return bin->count < 1 ? sum : sum / bin->count;                              \
  }                                                                              \
  static double roi_kernel_largest_##name(const c_type *x, const roi_bin *bin) { \
    double most = bin->any_outside || bin->n == 0 ? 0 : -INFINITY;               \
    bool any = bin->any_outside;                                                 \
    for (int64_t s = 0; s < bin->n; s++) {                                       \
      double part[4];                                                            \
      for (int k = 0; k < 4; k++) {                                              \
        const c_type element = x[bin->sample[s].from[k]];                        \
        part[k] = bin->sample[s].weight[k] * (as_f64);                           \
      }                                                                          \
      const double value = fmax(fmax(part[0], part[1]), fmax(part[2], part[3])); \
      most = any ? fmax(most, value) : value;                                    \
      any = true;                                                                \
    }                                                                            \
    return most;                                                                 \
  }
POOL(f32, float, (double)element)
POOL(f16, uint16_t, (double)half_to_float(element))
POOL(bf16, uint16_t, (double)half_from_bits((uint32_t)element << 16))

/* One bin of every channel: x begins at its image, out at the bin of the first channel. */
static void roi_kernel_pool(const berth_op_call *call, const roi_bin *bin, int64_t from, int64_t to) {
  const berth_tensor *x = &call->in[BERTH__ROI_ALIGN_X], *out = &call->out[0];
  const bool largest = strcmp(call->attrs[BERTH__ROI_ALIGN_MODE].s, "max") == 0;
  const int64_t area = x->dim[2] * x->dim[3], bins = out->dim[2] * out->dim[3];
  for (int64_t c = 0; c < x->dim[1]; c++, from += area, to += bins) {
    if (x->type == BERTH_F32) {
      const float *plane = (const float *)x->data + from;
      ((float *)out->data)[to] =
          (float)(largest ? roi_kernel_largest_f32(plane, bin) : roi_kernel_average_f32(plane, bin));
    } else if (x->type == BERTH_F16) {
      const uint16_t *plane = (const uint16_t *)x->data + from;
      ((uint16_t *)out->data)[to] =
          berth__f64_to_f16(largest ? roi_kernel_largest_f16(plane, bin) : roi_kernel_average_f16(plane, bin));
    } else {
      const uint16_t *plane = (const uint16_t *)x->data + from;
      ((uint16_t *)out->data)[to] =
          berth__f64_to_bf16(largest ? roi_kernel_largest_bf16(plane, bin) : roi_kernel_average_bf16(plane, bin));
    }
  }
}

static berth_status roi_kernel_run_region(const berth_op_call *call, int64_t region, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__ROI_ALIGN_X], *out = &call->out[0];
  const int64_t height = out->dim[2], width = out->dim[3];
  berth__roi_bins rows, columns;
  roi_bin bin;
  int64_t image;
  BERTH__TRY(berth__roi_align_region(call, region, &image, &rows, &columns, err));
  if (rows.samples * columns.samples > SAMPLES) {
    berth_op_call one = *call;
    one.begin = region;
    one.end = region + 1;
    return berth__family_roi_align.kernel(&one, err);
  }
  for (int64_t at = 0; at < height * width; at++) {
    roi_kernel_find(&rows, &columns, at / width, at % width, &bin);
    roi_kernel_pool(call, &bin, image * x->dim[1] * x->dim[2] * x->dim[3], region * x->dim[1] * height * width + at);
  }
  return BERTH_OK;
}

static berth_status roi_kernel_run(const berth_op_call *call, berth_error *err) {
  for (int64_t region = call->begin; region < call->end; region++) BERTH__TRY(roi_kernel_run_region(call, region, err));
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_roi_align)[] = {
    {.name = "roi_align",
     .code = BERTH__OP_roi_align,
     .takes = roi_kernel_takes,
     .items = roi_kernel_items,
     .run = roi_kernel_run},
    {0},
};
