#include "base/status.h"

const char *berth_type_name(berth_type type) {
  switch (type) {
#define TYPE_NAME(name, value, text, bytes) \
  case BERTH_##name: return text;
    BERTH_TYPE_MAP(TYPE_NAME)
#undef TYPE_NAME
#define TYPE_NAME(name, value, text, elements, bytes) \
  case BERTH_##name: return text;
    BERTH_BLOCK_TYPE_MAP(TYPE_NAME)
#undef TYPE_NAME
    case BERTH_TYPE_NONE: break;
  }
  return "none";
}

size_t berth_type_size(berth_type type) {
  switch (type) {
#define TYPE_SIZE(name, value, text, bytes) \
  case BERTH_##name: return bytes;
    BERTH_TYPE_MAP(TYPE_SIZE)
#undef TYPE_SIZE
    default: break;
  }
  return 0;
}

berth_type berth_type_from_name(const char *name) {
  if (name == NULL) return BERTH_TYPE_NONE;
#define TYPE_FROM(type, value, text, bytes) \
  if (strcmp(name, text) == 0) return BERTH_##type;
  BERTH_TYPE_MAP(TYPE_FROM)
#undef TYPE_FROM
#define TYPE_FROM(type, value, text, elements, bytes) \
  if (strcmp(name, text) == 0) return BERTH_##type;
  BERTH_BLOCK_TYPE_MAP(TYPE_FROM)
#undef TYPE_FROM
  return BERTH_TYPE_NONE;
}

berth_shape berth_shape_fixed(uint32_t rank, const int64_t *extents) {
  berth_shape shape;
  memset(&shape, 0, sizeof shape);
  shape.rank = rank > BERTH_MAX_RANK ? BERTH_MAX_RANK + 1 : rank;
  for (uint32_t i = 0; i < rank && i < BERTH_MAX_RANK; i++) shape.dim[i].extent = extents[i];
  return shape;
}

static berth_attr make_attr(const char *name, berth_attr_kind kind, uint32_t count) {
  berth_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.name = name;
  attr.kind = kind;
  attr.count = count;
  return attr;
}

berth_attr berth_attr_int(const char *name, int64_t value) {
  berth_attr a = make_attr(name, BERTH_ATTR_INT, 0);
  a.i = value;
  return a;
}

berth_attr berth_attr_float(const char *name, double value) {
  berth_attr a = make_attr(name, BERTH_ATTR_FLOAT, 0);
  a.f = value;
  return a;
}

berth_attr berth_attr_string(const char *name, const char *value) {
  berth_attr a = make_attr(name, BERTH_ATTR_STRING, 0);
  a.s = value;
  return a;
}

berth_attr berth_attr_ints(const char *name, const int64_t *values, uint32_t count) {
  berth_attr a = make_attr(name, BERTH_ATTR_INTS, count);
  a.ints = values;
  return a;
}

berth_attr berth_attr_floats(const char *name, const double *values, uint32_t count) {
  berth_attr a = make_attr(name, BERTH_ATTR_FLOATS, count);
  a.floats = values;
  return a;
}

berth_attr berth_attr_dims(const char *name, const berth_dim *values, uint32_t count) {
  berth_attr a = make_attr(name, BERTH_ATTR_DIMS, count);
  a.dims = values;
  return a;
}
