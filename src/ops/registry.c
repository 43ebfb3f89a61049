#include "ops/registry.h"

#include <inttypes.h>

#include "base/desc.h"

static const berth__op builtin[] = {
#define BERTH_OP(op_name, op_tier, family_name, in0, in1, out0, out1, in_place_bits, strided_bits, ...) \
  {.name = #op_name,                                                                                    \
   .code = BERTH__OP_##op_name,                                                                         \
   .tier = BERTH__##op_tier,                                                                            \
   .family = &berth__family_##family_name,                                                              \
   .min_in = in0,                                                                                       \
   .max_in = in1,                                                                                       \
   .min_out = out0,                                                                                     \
   .max_out = out1,                                                                                     \
   .in_place = in_place_bits,                                                                           \
   .strided = strided_bits},
#include "ops/ops.def"
};

/* A registered op keeps a deep copy of its descriptor and is used by the rest of the library like any other op. Its
 * items, scratch and kernel functions are called directly, because call->user is the user's pointer for them. */
typedef struct custom_op {
  berth__op op; /* first, so that an op's entry can be found again */
  berth__family family;
  berth_op_desc desc;
  berth_context *ctx;
  _Atomic(struct custom_op *) next; /* the next registered one */
} custom_op;

/* Only grows, at its end, with the context's lock held. An op is complete before it is linked in, and exists until the
 * context is destroyed; so lookups need no lock, and see each op completely or not at all. */
struct berth__op_list {
  _Atomic(custom_op *) first;
  custom_op *last; /* protected by the lock */
  _Atomic uint32_t count;
};

/* The list is created with the first op. */
static struct berth__op_list *list_of(const berth_context *ctx) {
  return ctx != NULL ? atomic_load_explicit(&((berth_context *)(uintptr_t)ctx)->custom_ops, memory_order_acquire)
                     : NULL;
}

static custom_op *first_of(struct berth__op_list *list) {
  return list != NULL ? atomic_load_explicit(&list->first, memory_order_acquire) : NULL;
}

static custom_op *after(custom_op *entry) { return atomic_load_explicit(&entry->next, memory_order_acquire); }

/* ---- Finding -------------------------------------------------------------------------------------------------- */

const berth__op *berth__op_builtin(berth__op_code code) {
  return (unsigned)code < BERTH__OP_COUNT ? &builtin[code] : NULL;
}

static const berth__op *find_builtin(const char *name) {
  for (uint32_t i = 0; i < BERTH__OP_COUNT; i++)
    if (strcmp(builtin[i].name, name) == 0) return &builtin[i];
  return NULL;
}

static const berth__op *find_custom(const berth_context *ctx, const char *name) {
  for (custom_op *entry = first_of(list_of(ctx)); entry != NULL; entry = after(entry))
    if (strcmp(entry->op.name, name) == 0) return &entry->op;
  return NULL;
}

const berth__op *berth__op_find(const berth_context *ctx, const char *name) {
  if (!name) return NULL;
  const berth__op *op = find_builtin(name);
  return op ? op : find_custom(ctx, name);
}

static uint32_t count_public(void) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < BERTH__OP_COUNT; i++) count += builtin[i].tier == BERTH__PUBLIC;
  return count;
}

uint32_t berth_op_count(const berth_context *ctx) {
  struct berth__op_list *list = list_of(ctx);
  return count_public() + (list != NULL ? atomic_load_explicit(&list->count, memory_order_acquire) : 0);
}

const char *berth_op_name(const berth_context *ctx, uint32_t index) {
  for (uint32_t i = 0; i < BERTH__OP_COUNT; i++)
    if (builtin[i].tier == BERTH__PUBLIC && index-- == 0) return builtin[i].name;
  custom_op *entry = first_of(list_of(ctx));
  for (; index != 0 && entry != NULL; index--) entry = after(entry);
  return entry != NULL ? entry->op.name : NULL;
}

/* ---- Inference of a registered op ----------------------------------------------------------------------------- */

static void to_public(const berth__infer *infer, const berth__shape *in, berth_shape *out) {
  memset(out, 0, sizeof *out);
  out->rank = in->rank;
  for (uint32_t i = 0; i < in->rank; i++) {
    int64_t dim = in->dim[i];
    if (berth__dim_is_fixed(dim)) {
      out->dim[i].extent = dim;
      continue;
    }
    const char *name = berth__dim_is_named(dim) && infer->dim_name ? infer->dim_name(infer, dim) : NULL;
    out->dim[i].name = name ? name : "?";
  }
}

static berth_status from_public(const berth__infer *infer, uint32_t output, const berth_shape *in, berth__shape *out,
                                berth_error *err) {
  if (in->rank > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_INVALID,
                       "the infer function gave output %" PRIu32 " rank %" PRIu32
                       ", at most %d is"
                       " possible",
                       output, in->rank, BERTH_MAX_RANK);
  out->rank = in->rank;
  for (uint32_t i = 0; i < in->rank; i++) {
    const berth_dim *dim = &in->dim[i];
    if (dim->name)
      out->dim[i] = strcmp(dim->name, "?") != 0 && infer->resolve ? infer->resolve(infer, dim) : BERTH__DIM_UNKNOWN;
    else if (dim->extent < 0)
      return berth__fail(err, BERTH_INVALID,
                         "the infer function gave output %" PRIu32 " the extent %" PRId64 " at axis %" PRIu32, output,
                         dim->extent, i);
    else
      out->dim[i] = dim->extent;
  }
  return BERTH_OK;
}

static berth_status infer_outputs(berth__infer *infer, const berth_op_desc *desc, berth_op_infer *call,
                                  berth_error *err) {
  BERTH__TRY(desc->infer(call, err));
  for (uint32_t i = 0; i < infer->n_out; i++) {
    if (berth_type_size(call->out_type[i]) == 0)
      return berth__fail(err, BERTH_INVALID, "the infer function gave output %" PRIu32 " no type", i);
    BERTH__TRY(from_public(infer, i, &call->out_shape[i], &infer->out_shape[i], err));
    infer->out_type[i] = call->out_type[i];
  }
  return BERTH_OK;
}

static berth_status infer_custom(berth__infer *infer, berth_error *err) {
  const custom_op *entry = (const custom_op *)infer->op;
  size_t n = (size_t)infer->n_in + infer->n_out;
  berth_status status = BERTH_NOMEM;
  berth_shape *shapes = berth__alloc_array_zero(entry->ctx, n, sizeof *shapes);
  berth_type *types = berth__alloc_array_zero(entry->ctx, infer->n_out, sizeof *types);
  if (!shapes || !types) {
    berth__fail_nomem(err, "the shapes of a registered op");
  } else {
    for (uint32_t i = 0; i < infer->n_in; i++) to_public(infer, &infer->in_shape[i], &shapes[i]);
    berth_op_infer call = {(uint32_t)sizeof call, infer->in_type,      shapes, infer->n_in,          infer->n_out,
                           infer->attrs,          entry->desc.n_attrs, types,  shapes + infer->n_in, entry->desc.user};
    status = infer_outputs(infer, &entry->desc, &call, err);
  }
  berth__free(entry->ctx, types);
  berth__free(entry->ctx, shapes);
  return status;
}

/* ---- Copies of attributes ------------------------------------------------------------------------------------- */

static void free_attr(berth_context *ctx, berth_attr *attr) {
  if (attr->dims && attr->kind == BERTH_ATTR_DIMS)
    for (uint32_t i = 0; i < attr->count; i++) berth__free(ctx, (void *)(uintptr_t)attr->dims[i].name);
  berth__free(ctx, (void *)(uintptr_t)attr->name);
  berth__free(ctx, (void *)(uintptr_t)attr->s);
  berth__free(ctx, (void *)(uintptr_t)attr->ints);
  berth__free(ctx, (void *)(uintptr_t)attr->floats);
  berth__free(ctx, (void *)(uintptr_t)attr->dims);
}

static void *registry_copy_list(berth_context *ctx, const void *list, uint32_t count, size_t element_size) {
  void *copy = berth__alloc_array(ctx, count, element_size);
  if (copy && count > 0) memcpy(copy, list, count * element_size);
  return copy;
}

static bool registry_copy_dims(berth_context *ctx, const berth_attr *from, berth_attr *to) {
  berth_dim *dims = berth__alloc_array_zero(ctx, from->count, sizeof *dims);
  to->dims = dims;
  if (!dims) return false;
  for (uint32_t i = 0; i < from->count; i++) {
    dims[i].extent = from->dims[i].extent;
    if (!from->dims[i].name) continue;
    dims[i].name = berth__strdup(ctx, from->dims[i].name);
    if (!dims[i].name) return false;
  }
  return true;
}

/* False if memory runs out; *to then has what was copied so far, for free_attr. */
static bool copy_attr(berth_context *ctx, const berth_attr *from, berth_attr *to) {
  to->kind = from->kind;
  to->count = from->count;
  to->i = from->i;
  to->f = from->f;
  to->name = berth__strdup(ctx, from->name);
  if (!to->name) return false;
  switch (from->kind) {
    case BERTH_ATTR_STRING: return (to->s = berth__strdup(ctx, from->s)) != NULL;
    case BERTH_ATTR_INTS:
      return (to->ints = registry_copy_list(ctx, from->ints, from->count, sizeof *to->ints)) != NULL;
    case BERTH_ATTR_FLOATS:
      return (to->floats = registry_copy_list(ctx, from->floats, from->count, sizeof *to->floats)) != NULL;
    case BERTH_ATTR_DIMS: return registry_copy_dims(ctx, from, to);
    default: return true;
  }
}

/* ---- Registering ---------------------------------------------------------------------------------------------- */

static void free_custom(custom_op *entry) {
  if (!entry) return;
  berth_attr *attrs = (berth_attr *)(uintptr_t)entry->desc.attrs;
  for (uint32_t i = 0; attrs && i < entry->desc.n_attrs; i++) free_attr(entry->ctx, &attrs[i]);
  berth__free(entry->ctx, attrs);
  berth__free(entry->ctx, (void *)(uintptr_t)entry->desc.in_places);
  berth__free(entry->ctx, (void *)(uintptr_t)entry->desc.name);
  berth__free(entry->ctx, entry);
}

static void free_custom_ops(berth_context *ctx) {
  struct berth__op_list *list = list_of(ctx);
  for (custom_op *entry = first_of(list), *next; entry != NULL; entry = next) {
    next = after(entry);
    free_custom(entry);
  }
  berth__free(ctx, list);
}

static berth_status check_attr(const berth_op_desc *desc, uint32_t index, berth_error *err) {
  const berth_attr *attr = &desc->attrs[index];
  if (!attr->name || !attr->name[0])
    return berth__fail(err, BERTH_INVALID, "op '%s': attribute %" PRIu32 " has no name", desc->name, index);
  if (attr->kind < BERTH_ATTR_INT || attr->kind > BERTH_ATTR_DIMS)
    return berth__fail(err, BERTH_INVALID, "op '%s': attribute '%s' has the unknown kind %d", desc->name, attr->name,
                       (int)attr->kind);
  bool missing = (attr->kind == BERTH_ATTR_STRING && !attr->s) ||
                 (attr->kind == BERTH_ATTR_INTS && attr->count > 0 && !attr->ints) ||
                 (attr->kind == BERTH_ATTR_FLOATS && attr->count > 0 && !attr->floats) ||
                 (attr->kind == BERTH_ATTR_DIMS && attr->count > 0 && !attr->dims);
  if (missing)
    return berth__fail(err, BERTH_INVALID, "op '%s': attribute '%s' has no default value", desc->name, attr->name);
  for (uint32_t i = 0; i < index; i++)
    if (strcmp(desc->attrs[i].name, attr->name) == 0)
      return berth__fail(err, BERTH_INVALID, "op '%s': attribute '%s' is declared twice", desc->name, attr->name);
  return BERTH_OK;
}

static berth_status registry_check_desc(const berth_op_desc *desc, berth_error *err) {
  if (!desc->name || !desc->name[0]) return berth__fail(err, BERTH_INVALID, "an op needs a name");
  if (find_builtin(desc->name))
    return berth__fail(err, BERTH_INVALID,
                       "op '%s' is built in: a registered op needs a name of its own, such as"
                       " 'vendor.%s'",
                       desc->name, desc->name);
  if (!desc->infer) return berth__fail(err, BERTH_INVALID, "op '%s' has no infer function", desc->name);
  if (!desc->kernel) return berth__fail(err, BERTH_INVALID, "op '%s' has no kernel function", desc->name);
  if (desc->n_out == 0 || desc->n_out >= BERTH__ANY)
    return berth__fail(err, BERTH_INVALID, "op '%s' has %" PRIu32 " outputs, expected 1 to %u", desc->name, desc->n_out,
                       BERTH__ANY - 1);
  if (desc->min_in > desc->max_in)
    return berth__fail(err, BERTH_INVALID,
                       "op '%s' takes at least %" PRIu32 " and at most %" PRIu32
                       " operands, which"
                       " no call can satisfy",
                       desc->name, desc->min_in, desc->max_in);
  if (desc->n_attrs > 0 && !desc->attrs)
    return berth__fail(err, BERTH_INVALID, "op '%s' has %" PRIu32 " attributes but attrs is NULL", desc->name,
                       desc->n_attrs);
  for (uint32_t i = 0; i < desc->n_attrs; i++) BERTH__TRY(check_attr(desc, i, err));
  return BERTH_OK;
}

static berth_status copy_desc(berth_context *ctx, const berth_op_desc *desc, custom_op *entry, berth_error *err) {
  berth_attr *attrs = berth__alloc_array_zero(ctx, desc->n_attrs, sizeof *attrs);
  entry->desc = *desc;
  entry->desc.attrs = attrs;
  entry->desc.n_attrs = attrs ? desc->n_attrs : 0;
  entry->desc.name = berth__strdup(ctx, desc->name);
  bool copied = attrs && entry->desc.name;
  entry->desc.in_places = NULL;
  if (desc->in_places != NULL) {
    uint32_t *masks = berth__alloc_array(ctx, desc->n_out, sizeof *masks);
    copied = copied && masks != NULL;
    if (masks != NULL) memcpy(masks, desc->in_places, desc->n_out * sizeof *masks);
    entry->desc.in_places = masks;
  }
  for (uint32_t i = 0; copied && i < desc->n_attrs; i++) copied = copy_attr(ctx, &desc->attrs[i], &attrs[i]);
  return copied ? BERTH_OK : berth__fail_nomem(err, "a registered op");
}

static void fill_op(custom_op *entry) {
  const berth_op_desc *desc = &entry->desc;
  entry->family = (berth__family){.attrs = desc->attrs,
                                  .n_attrs = desc->n_attrs,
                                  .infer = infer_custom,
                                  .items = desc->items,
                                  .scratch = desc->scratch,
                                  .kernel = desc->kernel};
  entry->op = (berth__op){.name = desc->name,
                          .code = BERTH__OP_CUSTOM,
                          .family = &entry->family,
                          .min_in = desc->min_in,
                          .max_in = desc->max_in < BERTH__ANY ? desc->max_in : BERTH__ANY,
                          .min_out = desc->n_out,
                          .max_out = desc->n_out,
                          .in_place = desc->in_place,
                          .strided = desc->strided,
                          .custom = desc};
}

/* Requires the lock. */
static berth_status want_list(berth_context *ctx, struct berth__op_list **out, berth_error *err) {
  if ((*out = list_of(ctx)) != NULL) return BERTH_OK;
  struct berth__op_list *list = berth__alloc_zero(ctx, sizeof *list);
  if (list == NULL) return berth__fail_nomem(err, "the list of registered ops");
  ctx->free_custom_ops = free_custom_ops;
  atomic_store_explicit(&ctx->custom_ops, list, memory_order_release);
  *out = list;
  return BERTH_OK;
}

/* Requires the lock. */
static berth_status link_custom(berth_context *ctx, custom_op *entry, berth_error *err) {
  struct berth__op_list *list;
  if (find_custom(ctx, entry->desc.name))
    return berth__fail(err, BERTH_INVALID, "op '%s' is already registered with this context", entry->desc.name);
  BERTH__TRY(want_list(ctx, &list, err));
  atomic_store_explicit(list->last != NULL ? &list->last->next : &list->first, entry, memory_order_release);
  list->last = entry;
  atomic_fetch_add_explicit(&list->count, 1, memory_order_release);
  return BERTH_OK;
}

berth_status berth_op_register(berth_context *ctx, const berth_op_desc *desc, berth_error *err) {
  berth_status status;
  berth_op_desc given = BERTH_OP_DESC_INIT;
  if (!ctx || !desc) return berth__fail(err, BERTH_INVALID, "registering an op needs a context and a descriptor");
  BERTH__TRY(BERTH__DESC_COPY(&given, desc, "berth_op_desc", err));
  BERTH__TRY(registry_check_desc(&given, err));
  custom_op *entry = berth__alloc_zero(ctx, sizeof *entry);
  if (!entry) return berth__fail_nomem(err, "a registered op");
  entry->ctx = ctx;
  BERTH__TRY_OR_FAIL(copy_desc(ctx, &given, entry, err));
  fill_op(entry);
  berth__context_lock(ctx);
  status = link_custom(ctx, entry, err);
  berth__context_unlock(ctx);
  if (status == BERTH_OK) return BERTH_OK;

fail:
  free_custom(entry);
  return status;
}
