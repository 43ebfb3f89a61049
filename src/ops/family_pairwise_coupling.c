/* pairwise_coupling of x [N, pairs]: class probabilities from the probability of the first class of each pair against
 * the second; see coupling.h. An item is one row. */
#include <inttypes.h>

#include "base/math.h"
#include "ops/coupling.h"
#include "ops/registry.h"

#define MOST_CLASSES 65535

static const berth_attr attrs[] = {[BERTH__COUPLING_CLASSES] = {.name = "classes", .kind = BERTH_ATTR_INT}};

static berth_status coupling_infer(berth__infer *infer, berth_error *err) {
  const int64_t classes = infer->attrs[BERTH__COUPLING_CLASSES].i;
  int64_t pairs;
  BERTH__TRY(berth__want_type(infer, 0, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, 0, 2, 2, err));
  if (classes < 2 || classes > MOST_CLASSES)
    return berth__fail(err, BERTH_INVALID, "%" PRId64 " classes, expected 2 to %d", classes, MOST_CLASSES);
  BERTH__TRY(
      berth__same_dim(infer->in_shape[0].dim[1], berth__coupling_pairs(classes), "pairs of classes", &pairs, err));
  infer->out_type[0] = BERTH_F32;
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {infer->in_shape[0].dim[0], classes}};
  return BERTH_OK;
}

static int64_t coupling_items(const berth_op_call *call) { return call->in[0].dim[0]; }

static uint64_t coupling_scratch(const berth_op_call *call) {
  return (uint64_t)berth__coupling_room(call->attrs[BERTH__COUPLING_CLASSES].i) * sizeof(float);
}

static berth_status coupling_kernel(const berth_op_call *call, berth_error *err) {
  const int64_t classes = call->attrs[BERTH__COUPLING_CLASSES].i, pairs = berth__coupling_pairs(classes);
  (void)err;
  for (int64_t row = call->begin; row < call->end; row++)
    berth__couple((const float *)call->in[0].data + row * pairs, classes, (float *)call->out[0].data + row * classes,
                  call->scratch);
  return BERTH_OK;
}

const berth__family berth__family_pairwise_coupling = {.attrs = attrs,
                                                       .n_attrs = sizeof attrs / sizeof *attrs,
                                                       .required = 1u << BERTH__COUPLING_CLASSES,
                                                       .infer = coupling_infer,
                                                       .items = coupling_items,
                                                       .scratch = coupling_scratch,
                                                       .kernel = coupling_kernel};
