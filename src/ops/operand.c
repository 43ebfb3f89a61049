#include "ops/operand.h"

#include <inttypes.h>

#include "ops/copy.h"

berth_tensor berth__infer_tensor(const berth__infer *infer, uint32_t operand) {
  const void *data = infer->in_data != NULL ? infer->in_data[operand] : NULL;
  return (berth_tensor){.data = (void *)(uintptr_t)data, .type = infer->in_type[operand]};
}

berth_tensor berth__infer_most(const berth__infer *infer, uint32_t operand) {
  berth_tensor tensor = berth__infer_tensor(infer, operand);
  if (tensor.data == NULL && infer->wants_bounds && infer->in_most != NULL)
    tensor.data = (void *)(uintptr_t)infer->in_most[operand];
  return tensor;
}

void berth__attr_list(const berth_attr *attr, berth__list *out) {
  *out = (berth__list){.known = true, .given = attr->count != 0, .name = attr->name, .count = attr->count};
  for (uint32_t k = 0; k < attr->count && k < BERTH__LIST_MAX; k++) out->at[k] = attr->ints[k];
}

static berth_status operand_length(const berth__infer *infer, uint32_t operand, uint32_t most, uint32_t *out,
                                   berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  const berth_type type = infer->in_type[operand];
  if ((type != BERTH_I64 && type != BERTH_I32) || shape->rank > 1)
    return berth__fail(err, BERTH_INVALID,
                       "operand %" PRIu32 " is %s of rank %" PRIu32 ", expected a list of i64 or i32", operand,
                       berth_type_name(type), shape->rank);
  const int64_t length = shape->rank == 0 ? 1 : shape->dim[0];
  if (!berth__dim_is_fixed(length))
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "the number of entries of operand %" PRIu32 ", a list, is not known; it must be fixed", operand);
  if (length > most)
    return berth__fail(err, BERTH_INVALID,
                       "operand %" PRIu32 " has %" PRId64 " entries, and at most %" PRIu32 " are possible", operand,
                       length, most);
  *out = (uint32_t)length;
  return BERTH_OK;
}

static berth_status operand_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth_tensor tensor,
                                 uint32_t most, berth__list *out, berth_error *err) {
  *out = (berth__list){.given = true, .known = tensor.data != NULL, .name = infer->attrs[attr].name};
  BERTH__TRY(operand_length(infer, operand, most, &out->count, err));
  if (out->count == 0) out->known = true;
  for (uint32_t k = 0; out->known && k < out->count; k++) out->at[k] = berth__load_i64(&tensor, k);
  return BERTH_OK;
}

static berth_status operand_read_list(const berth__infer *infer, uint32_t attr, uint32_t operand, bool as_most,
                                      berth__list *out, berth_error *err) {
  if (berth__infer_has(infer, operand))
    return operand_list(infer, attr, operand,
                        as_most ? berth__infer_most(infer, operand) : berth__infer_tensor(infer, operand),
                        BERTH__LIST_MAX, out, err);
  if (infer->attrs[attr].count > BERTH__LIST_MAX)
    return berth__fail(err, BERTH_INVALID, "`%s` has %" PRIu32 " entries, and at most %d are possible",
                       infer->attrs[attr].name, infer->attrs[attr].count, BERTH__LIST_MAX);
  berth__attr_list(&infer->attrs[attr], out);
  return BERTH_OK;
}

berth_status berth__infer_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth__list *out,
                               berth_error *err) {
  return operand_read_list(infer, attr, operand, false, out, err);
}

berth_status berth__infer_most_list(const berth__infer *infer, uint32_t attr, uint32_t operand, berth__list *out,
                                    berth_error *err) {
  return operand_read_list(infer, attr, operand, true, out, err);
}

/* Bounds of the elements of an operand that are not known; false if there are none. */
static bool ends_of(const berth__infer *infer, uint32_t operand, berth_tensor *least, berth_tensor *most) {
  if (infer->in_most == NULL || infer->in_most[operand] == NULL) return false;
  *least = (berth_tensor){.data = (void *)(uintptr_t)infer->in_least[operand], .type = infer->in_type[operand]};
  *most = (berth_tensor){.data = (void *)(uintptr_t)infer->in_most[operand], .type = infer->in_type[operand]};
  return true;
}

bool berth__infer_naturals(const berth__infer *infer, uint32_t operand, berth__list *list) {
  berth_tensor least, most;
  if (!ends_of(infer, operand, &least, &most)) return false;
  for (uint32_t k = 0; k < list->count; k++) {
    const int64_t low = berth__load_i64(&least, k);
    list->at[k] = berth__load_i64(&most, k);
    if (low < 0 && low != list->at[k]) return false;
  }
  return list->known = true;
}

/* In a list that is not known, single entries may be. */
static void read_certain(const berth__infer *infer, uint32_t operand, berth_dim *dims, berth__list *out) {
  berth_tensor least, most;
  if (!ends_of(infer, operand, &least, &most)) return;
  out->known = true;
  for (uint32_t k = 0; k < out->count; k++) {
    dims[k] = (berth_dim){.extent = berth__load_i64(&most, k)};
    if (berth__load_i64(&least, k) != dims[k].extent) dims[k].name = "?";
  }
}

berth_status berth__infer_dims(const berth__infer *infer, uint32_t attr, uint32_t operand, berth_dim *dims,
                               berth__list *out, berth_error *err) {
  const berth_attr *given = &infer->attrs[attr];
  if (berth__infer_has(infer, operand)) {
    BERTH__TRY(operand_list(infer, attr, operand, berth__infer_most(infer, operand), BERTH_MAX_RANK, out, err));
    for (uint32_t k = 0; k < out->count; k++) dims[k] = (berth_dim){.extent = out->at[k]};
    if (!out->known) read_certain(infer, operand, dims, out);
    return BERTH_OK;
  }
  if (given->count > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_INVALID, "the target shape has %" PRIu32 " dimensions, and at most %d are possible",
                       given->count, BERTH_MAX_RANK);
  *out = (berth__list){.known = true, .given = given->count != 0, .count = given->count};
  for (uint32_t k = 0; k < given->count; k++) dims[k] = given->dims[k];
  return BERTH_OK;
}

void berth__call_list(const berth_op_call *call, uint32_t attr, uint32_t operand, berth__list *out) {
  if (!berth__call_has(call, operand)) {
    berth__attr_list(&call->attrs[attr], out);
    return;
  }
  const berth_tensor *in = &call->in[operand];
  *out =
      (berth__list){.given = true, .known = true, .name = call->attrs[attr].name, .count = (uint32_t)berth__count(in)};
  for (uint32_t k = 0; k < out->count && k < BERTH__LIST_MAX; k++) out->at[k] = berth__load_i64(in, k);
}

berth_status berth__list_axes(berth__list *axes, uint32_t rank, uint32_t *mask, berth_error *err) {
  const berth_attr list = {.name = axes->name, .count = axes->count, .ints = axes->at};
  *mask = 0;
  if (!axes->known) return BERTH_OK;
  BERTH__TRY(berth__want_axes(&list, rank, mask, err));
  for (uint32_t k = 0; k < axes->count; k++)
    if (axes->at[k] < 0) axes->at[k] += rank;
  return BERTH_OK;
}
