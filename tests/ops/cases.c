#include "cases.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"

typedef struct reader {
  const char *file;
  int line;
  op_case *current; /* inside case ... end */
} reader;

static int complain(const reader *r, const char *what, const char *text) {
  fprintf(stderr, "%s:%d: %s: '%s'\n", r->file, r->line, what, text);
  return 0;
}

static char *copy_text(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) abort();
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

static const char *skip_spaces(const char *text) {
  while (isspace((unsigned char)*text)) text++;
  return text;
}

/* ---- Tensors -------------------------------------------------------------------------------------------------- */

static int store_int(berth_type type, void *data, int64_t element, const char **at) {
  char *end;
  errno = 0;
  if (type == BERTH_U64) {
    ((uint64_t *)data)[element] = strtoull(*at, &end, 0);
    if (end == *at || errno || **at == '-') return 0;
    return *at = end, 1;
  }
  long long value = strtoll(*at, &end, 0);
  if (end == *at || errno) return 0;
  *at = end;
  switch (type) {
    case BERTH_I8: ((int8_t *)data)[element] = (int8_t)value; return value >= INT8_MIN && value <= INT8_MAX;
    case BERTH_U8: ((uint8_t *)data)[element] = (uint8_t)value; return value >= 0 && value <= UINT8_MAX;
    case BERTH_I16: ((int16_t *)data)[element] = (int16_t)value; return value >= INT16_MIN && value <= INT16_MAX;
    case BERTH_U16: ((uint16_t *)data)[element] = (uint16_t)value; return value >= 0 && value <= UINT16_MAX;
    case BERTH_I32: ((int32_t *)data)[element] = (int32_t)value; return value >= INT32_MIN && value <= INT32_MAX;
    case BERTH_U32: ((uint32_t *)data)[element] = (uint32_t)value; return value >= 0 && value <= UINT32_MAX;
    case BERTH_BOOL: ((uint8_t *)data)[element] = value != 0; return value == 0 || value == 1;
    default: ((int64_t *)data)[element] = value; return 1;
  }
}

static int store_float(berth_type type, void *data, int64_t element, const char **at) {
  char *end;
  double value = strtod(*at, &end);
  if (end == *at) return 0;
  *at = end;
  switch (type) {
    case BERTH_F32: ((float *)data)[element] = (float)value; return 1;
    case BERTH_F64: ((double *)data)[element] = value; return 1;
    case BERTH_F16: ((uint16_t *)data)[element] = berth__f64_to_f16(value); return 1;
    default: ((uint16_t *)data)[element] = berth__f64_to_bf16(value); return 1;
  }
}

static int is_float(berth_type type) {
  return type == BERTH_F32 || type == BERTH_F64 || type == BERTH_F16 || type == BERTH_BF16;
}

static int read_shape(op_tensor *t, const char **at) {
  t->count = 1;
  if (**at != '[') return 0;
  for (*at = skip_spaces(*at + 1); **at != ']';) {
    char *end;
    if (t->rank == BERTH_MAX_RANK) return 0;
    int64_t extent = strtoll(*at, &end, 10);
    if (end == *at || extent < 0) return 0;
    t->dim[t->rank++] = extent;
    t->count *= extent;
    *at = skip_spaces(end);
    if (**at == ',') *at = skip_spaces(*at + 1);
  }
  ++*at;
  return 1;
}

static int read_tensor(const reader *r, op_tensor *t, const char *text) {
  const char *at = text;
  memset(t, 0, sizeof *t);
  if (strcmp(text, "none") == 0) return 1;
  size_t length = strcspn(at, "[");
  char *type = copy_text(at, length);
  t->type = berth_type_from_name(type);
  free(type);
  at += length;
  if (t->type == BERTH_TYPE_NONE || !read_shape(t, &at)) return complain(r, "expected type[extents] or none", text);
  const int is_block = berth_type_size(t->type) == 0;
  t->size = (size_t)berth_storage_bytes(berth_type_storage(t->type), (uint64_t)t->count);
  t->data = calloc(1, t->size ? t->size : 1);
  at = skip_spaces(at);
  if (*at != '=' || !t->data) return complain(r, "expected = and values", text);
  at++;
  for (int64_t i = 0; i < (is_block ? (int64_t)t->size : t->count); i++)
    if (!(is_float(t->type) ? store_float : store_int)(is_block ? BERTH_U8 : t->type, t->data, i, &at))
      return complain(r, "too few values, or one that does not belong to the type", at);
  at = skip_spaces(at);
  return *at == '\0' ? 1 : complain(r, "too many values", at);
}

/* ---- Attributes ----------------------------------------------------------------------------------------------- */

static int read_list(const reader *r, berth_attr *attr, const char *text) {
  int64_t ints[64];
  double floats[64];
  int fractional = strpbrk(text, ".enf") != NULL;
  const char *at = skip_spaces(text + 1);
  while (*at != ']') {
    char *end;
    if (attr->count == 64) return complain(r, "a list is too long", text);
    floats[attr->count] = strtod(at, &end);
    if (end == at) return complain(r, "expected a number in a list", at);
    if (!fractional) ints[attr->count] = strtoll(at, &end, 10);
    attr->count++;
    at = skip_spaces(end);
    if (*at == ',') at = skip_spaces(at + 1);
  }
  size_t bytes = attr->count * sizeof(int64_t);
  void *copy = malloc(bytes ? bytes : 1);
  if (!copy) abort();
  if (bytes) memcpy(copy, fractional ? (void *)floats : (void *)ints, bytes);
  attr->kind = fractional ? BERTH_ATTR_FLOATS : BERTH_ATTR_INTS;
  attr->floats = fractional ? copy : NULL;
  attr->ints = fractional ? NULL : copy;
  return 1;
}

static int read_attr(const reader *r, berth_attr *attr, const char *text) {
  size_t length = strcspn(text, " =");
  const char *at = skip_spaces(text + length);
  memset(attr, 0, sizeof *attr);
  attr->name = copy_text(text, length);
  if (*at != '=') return complain(r, "expected name = value", text);
  at = skip_spaces(at + 1);
  if (*at == '[') return read_list(r, attr, at);
  if (*at == '"') {
    attr->kind = BERTH_ATTR_STRING;
    attr->s = copy_text(at + 1, strcspn(at + 1, "\""));
    return 1;
  }
  char *end;
  attr->kind = strpbrk(at, ".enf") ? BERTH_ATTR_FLOAT : BERTH_ATTR_INT;
  attr->f = strtod(at, &end);
  if (attr->kind == BERTH_ATTR_INT) attr->i = strtoll(at, &end, 10);
  return end != at && *end == '\0' ? 1 : complain(r, "expected a number", at);
}

/* ---- Lines ---------------------------------------------------------------------------------------------------- */

static op_case *new_case(op_cases *cases) {
  if (cases->count == cases->capacity) {
    cases->capacity = cases->capacity ? cases->capacity * 2 : 64;
    cases->items = realloc(cases->items, cases->capacity * sizeof *cases->items);
    if (!cases->items) abort();
  }
  op_case *c = &cases->items[cases->count++];
  memset(c, 0, sizeof *c);
  return c;
}

static int begin_case(op_cases *cases, reader *r, const char *name) {
  if (r->current) return complain(r, "the case before has no end", name);
  r->current = new_case(cases);
  r->current->name = copy_text(name, strlen(name));
  r->current->file = copy_text(r->file, strlen(r->file));
  r->current->line = r->line;
  return 1;
}

static int end_case(reader *r) {
  op_case *c = r->current;
  r->current = NULL;
  if (!c->op) return complain(r, "a case without op", c->name);
  if (!c->error == !c->n_out) return complain(r, "a case needs either outputs or an error", c->name);
  return 1;
}

static int read_field(reader *r, const char *word, const char *rest) {
  op_case *c = r->current;
  if (!c) return complain(r, "expected 'case NAME'", word);
  if (c->n_attrs == OP_CASE_MAX || c->n_in == OP_CASE_MAX || c->n_out == OP_CASE_MAX)
    return complain(r, "too many attributes, operands or outputs", c->name);
  if (strcmp(word, "op") == 0 && !c->op) return (c->op = copy_text(rest, strlen(rest))) != NULL;
  if (strcmp(word, "attr") == 0) return read_attr(r, &c->attrs[c->n_attrs++], rest);
  if (strcmp(word, "in") == 0) return read_tensor(r, &c->in[c->n_in++], rest);
  if (strcmp(word, "out") == 0) return read_tensor(r, &c->out[c->n_out++], rest);
  if (strcmp(word, "tol") == 0) return sscanf(rest, "%lf %lf", &c->absolute, &c->relative) == 2;
  if (strcmp(word, "error") == 0 && rest[0] == '"' && !c->error)
    return (c->error = copy_text(rest + 1, strcspn(rest + 1, "\""))) != NULL;
  if (strcmp(word, "end") == 0) return end_case(r);
  return complain(r, "unknown line", word);
}

static int read_line(op_cases *cases, reader *r, char *line) {
  size_t length = strlen(line);
  while (length > 0 && isspace((unsigned char)line[length - 1])) line[--length] = '\0';
  char *at = line + strspn(line, " \t");
  if (*at == '\0' || *at == '#') return 1;
  char *rest = at + strcspn(at, " \t");
  if (*rest) *rest++ = '\0';
  rest += strspn(rest, " \t");
  return strcmp(at, "case") == 0 ? begin_case(cases, r, rest) : read_field(r, at, rest);
}

static int load_file(op_cases *cases, const char *path) {
  reader r = {.file = path};
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t capacity = 0;
  int ok = file != NULL;
  if (!ok) complain(&r, "cannot be opened", strerror(errno));
  while (ok && getline(&line, &capacity, file) >= 0) {
    r.line++;
    ok = read_line(cases, &r, line);
  }
  if (ok && r.current) ok = complain(&r, "the last case has no end", r.current->name);
  free(line);
  if (file) fclose(file);
  return ok;
}

static int is_case_file(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 5 && strcmp(entry->d_name + length - 5, ".case") == 0;
}

int op_cases_load(op_cases *cases, const char *folder) {
  struct dirent **entries;
  int n = scandir(folder, &entries, is_case_file, alphasort), ok = n > 0;
  if (n <= 0) fprintf(stderr, "%s: no case files here\n", folder);
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    ok = load_file(cases, path) && ok;
    free(entries[i]);
  }
  if (n >= 0) free(entries);
  return ok;
}

const char *op_cases_folder(void) {
  static char path[4096];
  const char *source = getenv("BERTH_SRC");
  snprintf(path, sizeof path, "%s/tests/ops/cases", source ? source : ".");
  return path;
}

void op_cases_free(op_cases *cases) {
  for (size_t k = 0; k < cases->count; k++) {
    op_case *c = &cases->items[k];
    for (uint32_t i = 0; i < c->n_attrs; i++) {
      free((void *)(uintptr_t)c->attrs[i].name);
      free((void *)(uintptr_t)c->attrs[i].s);
      free((void *)(uintptr_t)c->attrs[i].ints);
      free((void *)(uintptr_t)c->attrs[i].floats);
    }
    for (uint32_t i = 0; i < c->n_in; i++) free(c->in[i].data);
    for (uint32_t i = 0; i < c->n_out; i++) free(c->out[i].data);
    free(c->name), free(c->op), free(c->file), free(c->error);
  }
  free(cases->items);
  memset(cases, 0, sizeof *cases);
}

/* ---- Comparing ------------------------------------------------------------------------------------------------ */

double op_element(berth_type type, const void *data, int64_t i) {
  switch (type) {
    case BERTH_F32: return (double)((const float *)data)[i];
    case BERTH_F64: return ((const double *)data)[i];
    case BERTH_F16: return (double)berth__f16_to_f32(((const uint16_t *)data)[i]);
    case BERTH_BF16: return (double)berth__bf16_to_f32(((const uint16_t *)data)[i]);
    case BERTH_I8: return ((const int8_t *)data)[i];
    case BERTH_I16: return ((const int16_t *)data)[i];
    case BERTH_U16: return ((const uint16_t *)data)[i];
    case BERTH_U64: return (double)((const uint64_t *)data)[i];
    case BERTH_I32: return ((const int32_t *)data)[i];
    case BERTH_U32: return ((const uint32_t *)data)[i];
    case BERTH_I64: return (double)((const int64_t *)data)[i];
    default: return ((const uint8_t *)data)[i];
  }
}

int op_case_matches(const op_case *c, const op_tensor *want, const void *got, int64_t *element) {
  const int is_block = berth_type_size(want->type) == 0; /* which is compared byte by byte */
  size_t size = is_block ? 1 : berth_type_size(want->type);
  for (int64_t i = 0; i < (is_block ? (int64_t)want->size : want->count); i++) {
    *element = i;
    if (!is_float(want->type)) {
      if (memcmp((const char *)want->data + (size_t)i * size, (const char *)got + (size_t)i * size, size) != 0)
        return 0;
      continue;
    }
    double w = op_element(want->type, want->data, i), g = op_element(want->type, got, i);
    if (w == g || (isnan(w) && isnan(g))) continue;
    if (!(fabs(w - g) <= c->absolute + c->relative * fabs(w)) || isinf(w) || isinf(g)) return 0;
  }
  return 1;
}
