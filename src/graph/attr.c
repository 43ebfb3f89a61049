/* Attributes: converts the caller's attributes to one entry for each attribute that the op declares. */
#include <math.h>

#include "base/math.h"
#include "graph/graph.h"

static const char *kind_name(berth_attr_kind kind) {
  switch (kind) {
    case BERTH_ATTR_INT: return "an integer";
    case BERTH_ATTR_FLOAT: return "a number";
    case BERTH_ATTR_STRING: return "a string";
    case BERTH_ATTR_INTS: return "a list of integers";
    case BERTH_ATTR_FLOATS: return "a list of numbers";
    case BERTH_ATTR_DIMS: return "a list of dimensions";
  }
  return "an attribute of an unknown kind";
}

static void free_payload(berth_context *ctx, berth_attr *attr) {
  if (attr->kind == BERTH_ATTR_DIMS && attr->dims != NULL) {
    for (uint32_t i = 0; i < attr->count; i++) berth__free(ctx, (void *)(uintptr_t)attr->dims[i].name);
  }
  berth__free(ctx, (void *)(uintptr_t)attr->s);
  berth__free(ctx, (void *)(uintptr_t)attr->ints);
  berth__free(ctx, (void *)(uintptr_t)attr->floats);
  berth__free(ctx, (void *)(uintptr_t)attr->dims);
}

void berth__attrs_free(berth_context *ctx, const berth__op *op, berth_attr *attrs) {
  if (attrs == NULL) return;
  for (uint32_t i = 0; i < op->family->n_attrs; i++) free_payload(ctx, &attrs[i]);
  berth__free(ctx, attrs);
}

static void *graph_attr_copy_list(berth_context *ctx, const void *list, uint32_t count, size_t element_size) {
  void *copy = berth__alloc_array(ctx, count, element_size);
  if (copy != NULL && count != 0) memcpy(copy, list, count * element_size);
  return copy;
}

static bool copy_ints_as_floats(berth_context *ctx, const berth_attr *from, berth_attr *to) {
  double *floats = berth__alloc_array(ctx, from->count, sizeof *floats);
  if (floats == NULL) return false;
  for (uint32_t i = 0; i < from->count; i++) floats[i] = (double)from->ints[i];
  to->floats = floats;
  return true;
}

/* From DIMS, or from INTS if `from` holds plain integers. */
static bool graph_attr_copy_dims(berth_context *ctx, const berth_attr *from, berth_attr *to) {
  berth_dim *dims = berth__alloc_array_zero(ctx, from->count, sizeof *dims);
  if (dims == NULL) return false;
  to->dims = dims;
  for (uint32_t i = 0; i < from->count; i++) {
    if (from->kind == BERTH_ATTR_INTS) {
      dims[i].extent = from->ints[i];
      continue;
    }
    dims[i].extent = from->dims[i].name == NULL ? from->dims[i].extent : 0;
    dims[i].name = berth__strdup(ctx, from->dims[i].name);
    if (from->dims[i].name != NULL && dims[i].name == NULL) return false;
  }
  return true;
}

/* `to` already has its name and kind. False: out of memory; free_payload frees what was allocated. */
static bool copy_payload(berth_context *ctx, const berth_attr *from, berth_attr *to) {
  to->count = from->count;
  switch (to->kind) {
    case BERTH_ATTR_INT: to->i = from->i; return true;
    case BERTH_ATTR_FLOAT: to->f = from->kind == BERTH_ATTR_INT ? (double)from->i : from->f; return true;
    case BERTH_ATTR_STRING: to->s = berth__strdup(ctx, from->s); return from->s == NULL || to->s != NULL;
    case BERTH_ATTR_INTS:
      return (to->ints = graph_attr_copy_list(ctx, from->ints, from->count, sizeof(int64_t))) != NULL;
    case BERTH_ATTR_FLOATS:
      if (from->kind == BERTH_ATTR_INTS) return copy_ints_as_floats(ctx, from, to);
      return (to->floats = graph_attr_copy_list(ctx, from->floats, from->count, sizeof(double))) != NULL;
    case BERTH_ATTR_DIMS: return graph_attr_copy_dims(ctx, from, to);
  }
  return false;
}

/* Integers are accepted for numbers and for dimensions. */
static bool kind_fits(berth_attr_kind given, berth_attr_kind wanted) {
  if (given == wanted) return true;
  if (given == BERTH_ATTR_INT) return wanted == BERTH_ATTR_FLOAT;
  if (given == BERTH_ATTR_INTS) return wanted == BERTH_ATTR_FLOATS || wanted == BERTH_ATTR_DIMS;
  return false;
}

static bool list_is_missing(const berth_attr *attr) {
  if (attr->kind == BERTH_ATTR_STRING) return attr->s == NULL;
  if (attr->count == 0) return false;
  return (attr->kind == BERTH_ATTR_INTS && attr->ints == NULL) ||
         (attr->kind == BERTH_ATTR_FLOATS && attr->floats == NULL) ||
         (attr->kind == BERTH_ATTR_DIMS && attr->dims == NULL);
}

static berth_status check_given(const berth__op *op, const berth_attr *given, size_t n_given, berth_error *err) {
  const berth__family *family = op->family;
  for (size_t g = 0; g < n_given; g++) {
    if (given[g].name == NULL) return berth__fail(err, BERTH_INVALID, "attribute %zu has no name", g);
    uint32_t k = 0;
    while (k < family->n_attrs && strcmp(family->attrs[k].name, given[g].name) != 0) k++;
    if (k == family->n_attrs)
      return berth__fail(err, BERTH_INVALID, "there is no attribute '%s'%s%s", given[g].name,
                         family->n_attrs != 0 ? "; the first that it has is " : "; it has none",
                         family->n_attrs != 0 ? family->attrs->name : "");
    if (!kind_fits(given[g].kind, family->attrs[k].kind))
      return berth__fail(err, BERTH_INVALID, "attribute '%s' is %s, expected %s", given[g].name,
                         kind_name(given[g].kind), kind_name(family->attrs[k].kind));
    if (list_is_missing(&given[g]))
      return berth__fail(err, BERTH_INVALID, "attribute '%s' has a count but no values", given[g].name);
    for (size_t h = 0; h < g; h++)
      if (strcmp(given[h].name, given[g].name) == 0)
        return berth__fail(err, BERTH_INVALID, "attribute '%s' is given twice", given[g].name);
  }
  return BERTH_OK;
}

berth_status berth__attrs_resolve(berth_context *ctx, const berth__op *op, const berth_attr *given, size_t n_given,
                                  berth_attr **out, berth_error *err) {
  const berth__family *family = op->family;
  *out = NULL;
  BERTH__TRY(check_given(op, given, n_given, err));
  berth_attr *attrs = berth__alloc_array_zero(ctx, family->n_attrs, sizeof *attrs);
  if (attrs == NULL) return berth__fail_nomem(err, "attributes");
  for (uint32_t k = 0; k < family->n_attrs; k++) {
    const berth_attr *from = &family->attrs[k];
    bool is_given = false;
    for (size_t g = 0; g < n_given; g++) {
      if (strcmp(given[g].name, family->attrs[k].name) == 0) {
        from = &given[g];
        is_given = true;
      }
    }
    if (!is_given && berth__attr_is_required(family, k)) {
      berth__attrs_free(ctx, op, attrs);
      return berth__fail(err, BERTH_INVALID, "attribute '%s' (%s) must be given", from->name, kind_name(from->kind));
    }
    attrs[k].name = family->attrs[k].name;
    attrs[k].kind = family->attrs[k].kind;
    if (!copy_payload(ctx, from, &attrs[k])) {
      berth__attrs_free(ctx, op, attrs);
      return berth__fail_nomem(err, "attributes");
    }
  }
  *out = attrs;
  return BERTH_OK;
}

berth_status berth__attr_replace(berth_context *ctx, berth_attr *attr, const berth_attr *value, berth_error *err) {
  berth_attr copy = {.name = attr->name, .kind = attr->kind};
  if (!kind_fits(value->kind, attr->kind))
    return berth__fail(err, BERTH_INTERNAL, "attribute '%s' is %s, expected %s", attr->name, kind_name(value->kind),
                       kind_name(attr->kind));
  if (!copy_payload(ctx, value, &copy)) {
    free_payload(ctx, &copy);
    return berth__fail_nomem(err, "attributes");
  }
  free_payload(ctx, attr);
  *attr = copy;
  return BERTH_OK;
}

bool berth__same_text(const char *a, const char *b) {
  if (a == NULL || b == NULL) return a == b;
  return strcmp(a, b) == 0;
}

/* Zeros of different sign differ; all NaNs are equal. */
static bool same_number(double a, double b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

bool berth__attr_equal(const berth_attr *a, const berth_attr *b) {
  bool is_list = a->kind == BERTH_ATTR_INTS || a->kind == BERTH_ATTR_FLOATS || a->kind == BERTH_ATTR_DIMS;
  if (a->kind != b->kind || strcmp(a->name, b->name) != 0 || (is_list && a->count != b->count)) return false;
  switch (a->kind) {
    case BERTH_ATTR_INT: return a->i == b->i;
    case BERTH_ATTR_FLOAT: return same_number(a->f, b->f);
    case BERTH_ATTR_STRING: return berth__same_text(a->s, b->s);
    case BERTH_ATTR_INTS: return a->count == 0 || memcmp(a->ints, b->ints, a->count * sizeof(int64_t)) == 0;
    case BERTH_ATTR_FLOATS:
      for (uint32_t i = 0; i < a->count; i++)
        if (!same_number(a->floats[i], b->floats[i])) return false;
      return true;
    case BERTH_ATTR_DIMS:
      for (uint32_t i = 0; i < a->count; i++)
        if (a->dims[i].extent != b->dims[i].extent || !berth__same_text(a->dims[i].name, b->dims[i].name)) return false;
      return true;
  }
  return false;
}
