/* cast: elements converted to another type. Blocks are gathered in the operand's class and scattered to any type. */
#include "ops/elementwise.h"

static const berth_attr attrs_of_cast[] = {[BERTH__CAST_TO] = {.name = "to", .kind = BERTH_ATTR_STRING, .s = ""}};

static berth_status infer_cast(berth__infer *infer, berth_error *err) {
  const char *name = infer->attrs[BERTH__CAST_TO].s;
  berth_type to = name ? berth_type_from_name(name) : BERTH_TYPE_NONE;
  if (to == BERTH_TYPE_NONE)
    return berth__fail(err, BERTH_INVALID, "attribute 'to' is '%s', expected the name of a type such as f32 or i64",
                       name ? name : "");
  infer->out_type[0] = to;
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

static void cast_run(const berth_op_call *call, const berth__runs *runs) {
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  berth__class cls = berth__class_of(in->type);
  union {
    float f32[BERTH__BLOCK];
    double f64[BERTH__BLOCK];
    int64_t i64[BERTH__BLOCK];
  } block;
  for (int64_t at = 0; at < runs->count; at += BERTH__BLOCK) {
    int64_t n = runs->count - at < BERTH__BLOCK ? runs->count - at : BERTH__BLOCK;
    berth__gather(cls, &block, in->type, in->data, runs->index[1] + at * runs->step[1], runs->step[1], n);
    berth__scatter(cls, &block, out->type, out->data, runs->index[0] + at * runs->step[0], runs->step[0], n);
  }
}

static berth_status cast_kernel(const berth_op_call *call, berth_error *err) {
  if (call->in[0].type == call->out[0].type) return berth__family_identity.kernel(call, err);
  berth__runs runs;
  berth__runs_of_call(&runs, call);
  while (berth__runs_next(&runs)) cast_run(call, &runs);
  return BERTH_OK;
}

static bool cast_view(const berth_tensor *in, const berth_attr *attrs, const berth__shape *shape, berth_type type,
                      uint32_t out, int64_t *offset, int64_t *stride) {
  return in->type == type && berth__family_identity.view(in, attrs, shape, type, out, offset, stride);
}

const berth__family berth__family_cast = {.attrs = attrs_of_cast,
                                          .n_attrs = 1,
                                          .required = 1u << BERTH__CAST_TO,
                                          .infer = infer_cast,
                                          .items = berth__items_elements,
                                          .kernel = cast_kernel,
                                          .view = cast_view};
