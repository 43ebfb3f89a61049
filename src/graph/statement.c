/* Reading the text form into statements.
 *
 *   graph "name" {
 * weights "file.safetensors"              optional: the file with the params' data, in the same folder
 *     input %x : f32[batch, 64]               a name or a number per dimension
 *     param %fc.weight : f32[64, 10]
 * const %c : f32[2] = [1, 2.5]            or: = hex "..." (bytes in memory order)
 * state %s : f32[2] = zeros               outlives a run; or data as for a const: = [1, 2.5]
 *     %y, %z = op(%x, _, %c) {axis = 1, parts = [1, 2], mode = "same"} : f32[batch, 10], f32[2]
 * update %s = %z                          the state's value at the end of a run
 *     output "y" = %y
 *   }
 *
 * Names with characters other than letters, digits and _.:/- are written %"like this"; those of dimensions, ops and
 * attributes are quoted, too, if they are not words. Statements may be in any order. A # begins a comment. */
#include "graph/statement.h"

#include <stdlib.h>

#include "base/math.h"
#include "base/storage.h"
#include "graph/literal.h"

typedef struct reader {
  berth__lexer lexer;
  berth__document *document;
} reader;

static berth_status graph_statement_keep(berth__document *d, size_t size, void **out, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(d->ctx, d->blocks, d->blocks_capacity, d->n_blocks + 1, err));
  *out = berth__alloc_zero(d->ctx, size);
  if (*out == NULL) return berth__fail_nomem(err, "the graph's text");
  d->blocks[d->n_blocks++] = *out;
  return BERTH_OK;
}

/* A copy of the current token's text; consumes the token if it has the kind. */
static berth_status take_text(reader *r, int kind, const char *what, const char **out, berth_error *err) {
  void *copy;
  if (r->lexer.token.kind != kind) return berth__lexer_expected(&r->lexer, what, err);
  BERTH__TRY(graph_statement_keep(r->document, r->lexer.token.size + 1, &copy, err));
  memcpy(copy, r->lexer.token.text, r->lexer.token.size);
  *out = copy;
  return berth__lexer_next(&r->lexer, err);
}

/* A word, or a string if it has other characters. */
static berth_status graph_statement_take_word(reader *r, const char *what, const char **out, berth_error *err) {
  int kind = r->lexer.token.kind == BERTH__TOKEN_STRING ? BERTH__TOKEN_STRING : BERTH__TOKEN_WORD;
  return take_text(r, kind, what, out, err);
}

static berth_status graph_statement_read_dim(reader *r, berth_dim *dim, berth_error *err) {
  *dim = (berth_dim){.name = NULL, .extent = 0};
  if (r->lexer.token.kind == BERTH__TOKEN_NUMBER) return berth__lexer_int(&r->lexer, &dim->extent, err);
  return graph_statement_take_word(r, "an extent or a dimension's name", &dim->name, err);
}

/* f32[2, batch] */
static berth_status graph_statement_read_type(reader *r, berth__statement *s, berth_error *err) {
  berth_context *ctx = r->document->ctx;
  BERTH__TRY(BERTH__RESERVE(ctx, s->types, s->types_capacity, s->n_types + 1, err));
  BERTH__TRY(BERTH__RESERVE(ctx, s->shapes, s->shapes_capacity, s->n_types + 1, err));
  berth_shape shape = {.rank = 0};
  berth_type type = BERTH_TYPE_NONE;
  if (r->lexer.token.kind == BERTH__TOKEN_WORD) type = berth_type_from_name(r->lexer.token.text);
  if (type == BERTH_TYPE_NONE) return berth__lexer_expected(&r->lexer, "a type such as f32", err);
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  BERTH__TRY(berth__lexer_take(&r->lexer, '[', err));
  while (r->lexer.token.kind != ']') {
    if (shape.rank == BERTH_MAX_RANK)
      return berth__lexer_fail(&r->lexer, err, "a shape has more than %d dimensions", BERTH_MAX_RANK);
    if (shape.rank != 0) BERTH__TRY(berth__lexer_take(&r->lexer, ',', err));
    BERTH__TRY(graph_statement_read_dim(r, &shape.dim[shape.rank++], err));
  }
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  s->types[s->n_types] = type;
  s->shapes[s->n_types++] = shape;
  return BERTH_OK;
}

/* A list consists of numbers or of dimensions; one fraction makes all of them fractions, one name makes all of them
 * dimensions. */
typedef struct list {
  double *floats;
  int64_t *ints;
  berth_dim *dims;
  size_t floats_capacity, ints_capacity, dims_capacity, count;
  bool has_fraction, has_name;
} list;

static bool looks_fractional(const berth__lexer *lexer) {
  if (lexer->token.kind == BERTH__TOKEN_WORD)
    return strcmp(lexer->token.text, "inf") == 0 || strcmp(lexer->token.text, "nan") == 0;
  return lexer->token.kind == BERTH__TOKEN_NUMBER && strpbrk(lexer->token.text, ".einEIN") != NULL;
}

static berth_status read_list_item(reader *r, list *l, berth_error *err) {
  berth_context *ctx = r->document->ctx;
  BERTH__TRY(BERTH__RESERVE(ctx, l->floats, l->floats_capacity, l->count + 1, err));
  BERTH__TRY(BERTH__RESERVE(ctx, l->ints, l->ints_capacity, l->count + 1, err));
  BERTH__TRY(BERTH__RESERVE(ctx, l->dims, l->dims_capacity, l->count + 1, err));
  l->floats[l->count] = 0;
  l->dims[l->count] = (berth_dim){.name = NULL, .extent = 0};
  if (looks_fractional(&r->lexer)) {
    l->has_fraction = true;
    BERTH__TRY(berth__lexer_double(&r->lexer, &l->floats[l->count], err));
  } else {
    BERTH__TRY(graph_statement_read_dim(r, &l->dims[l->count], err));
    l->has_name = l->has_name || l->dims[l->count].name != NULL;
    l->floats[l->count] = (double)l->dims[l->count].extent;
  }
  l->ints[l->count] = l->dims[l->count].extent;
  l->count++;
  return BERTH_OK;
}

static berth_status keep_list(reader *r, const list *l, berth_attr *attr, berth_error *err) {
  void *copy;
  size_t element = l->has_name ? sizeof *l->dims : sizeof *l->ints;
  const void *from = l->has_name ? (const void *)l->dims : l->has_fraction ? (const void *)l->floats : l->ints;
  if (l->has_name && l->has_fraction)
    return berth__lexer_fail(&r->lexer, err, "list '%s' mixes names and fractions", attr->name);
  if (l->count > UINT32_MAX / 2) return berth__lexer_fail(&r->lexer, err, "list '%s' is too long", attr->name);
  BERTH__TRY(graph_statement_keep(r->document, l->count * element, &copy, err));
  if (l->count != 0) memcpy(copy, from, l->count * element);
  attr->count = (uint32_t)l->count;
  attr->kind = l->has_name ? BERTH_ATTR_DIMS : l->has_fraction ? BERTH_ATTR_FLOATS : BERTH_ATTR_INTS;
  attr->dims = l->has_name ? copy : NULL;
  attr->floats = l->has_fraction ? copy : NULL;
  attr->ints = l->has_name || l->has_fraction ? NULL : copy;
  return BERTH_OK;
}

static berth_status graph_statement_read_list(reader *r, berth_attr *attr, berth_error *err) {
  list l = {.count = 0};
  berth_status status = berth__lexer_take(&r->lexer, '[', err);
  while (status == BERTH_OK && r->lexer.token.kind != ']') {
    if (l.count != 0) status = berth__lexer_take(&r->lexer, ',', err);
    if (status == BERTH_OK) status = read_list_item(r, &l, err);
  }
  if (status == BERTH_OK) status = keep_list(r, &l, attr, err);
  if (status == BERTH_OK) status = berth__lexer_next(&r->lexer, err);
  berth__free(r->document->ctx, l.floats);
  berth__free(r->document->ctx, l.ints);
  berth__free(r->document->ctx, l.dims);
  return status;
}

static berth_status read_attr(reader *r, berth_attr *attr, berth_error *err) {
  BERTH__TRY(graph_statement_take_word(r, "an attribute's name", &attr->name, err));
  BERTH__TRY(berth__lexer_take(&r->lexer, '=', err));
  if (r->lexer.token.kind == '[') return graph_statement_read_list(r, attr, err);
  if (r->lexer.token.kind == BERTH__TOKEN_STRING) {
    attr->kind = BERTH_ATTR_STRING;
    return take_text(r, BERTH__TOKEN_STRING, "a string", &attr->s, err);
  }
  attr->kind = looks_fractional(&r->lexer) ? BERTH_ATTR_FLOAT : BERTH_ATTR_INT;
  if (attr->kind == BERTH_ATTR_FLOAT) return berth__lexer_double(&r->lexer, &attr->f, err);
  return berth__lexer_int(&r->lexer, &attr->i, err);
}

static berth_status read_attrs(reader *r, berth__statement *s, berth_error *err) {
  BERTH__TRY(berth__lexer_take(&r->lexer, '{', err));
  while (r->lexer.token.kind != '}') {
    if (s->n_attrs != 0) BERTH__TRY(berth__lexer_take(&r->lexer, ',', err));
    BERTH__TRY(BERTH__RESERVE(r->document->ctx, s->attrs, s->attrs_capacity, s->n_attrs + 1, err));
    memset(&s->attrs[s->n_attrs], 0, sizeof *s->attrs);
    BERTH__TRY(read_attr(r, &s->attrs[s->n_attrs], err));
    s->n_attrs++;
  }
  return berth__lexer_next(&r->lexer, err);
}

static berth_status graph_statement_read_operands(reader *r, berth__statement *s, berth_error *err) {
  BERTH__TRY(berth__lexer_take(&r->lexer, '(', err));
  while (r->lexer.token.kind != ')') {
    if (s->n_operands != 0) BERTH__TRY(berth__lexer_take(&r->lexer, ',', err));
    BERTH__TRY(BERTH__RESERVE(r->document->ctx, s->operands, s->operands_capacity, s->n_operands + 1, err));
    s->operands[s->n_operands] = NULL;
    if (berth__lexer_is_word(&r->lexer, "_"))
      BERTH__TRY(berth__lexer_next(&r->lexer, err));
    else
      BERTH__TRY(take_text(r, BERTH__TOKEN_VALUE, "a value such as %x", &s->operands[s->n_operands], err));
    s->n_operands++;
  }
  return berth__lexer_next(&r->lexer, err);
}

static berth_status read_name(reader *r, berth__statement *s, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(r->document->ctx, s->names, s->names_capacity, s->n_names + 1, err));
  BERTH__TRY(take_text(r, BERTH__TOKEN_VALUE, "a value such as %x", &s->names[s->n_names], err));
  s->n_names++;
  return BERTH_OK;
}

static berth_status read_constant_data(reader *r, berth__statement *s, berth_error *err) {
  const char *what = s->kind == BERTH__STATEMENT_STATE ? "state" : "constant";
  uint64_t count = 1, size;
  for (uint32_t i = 0; i < s->shapes[0].rank; i++) {
    const berth_dim *dim = &s->shapes[0].dim[i];
    if (dim->name != NULL || dim->extent < 0 || !berth__mul_u64(count, (uint64_t)dim->extent, &count))
      return berth__lexer_fail(&r->lexer, err, "%s '%s' needs fixed extents of a sensible size", what, s->names[0]);
  }
  /* Each element takes at least one character, so a count beyond the end of the text is wrong in any case. */
  const uint64_t left = (uint64_t)(r->lexer.end - r->lexer.at);
  const berth_storage storage = berth_type_storage(s->types[0]);
  if (storage.elements > 1 && count % storage.elements != 0)
    return berth__lexer_fail(&r->lexer, err, "%s '%s' is %s, and its shape has no whole blocks of %u", what,
                             s->names[0], berth_type_name(s->types[0]), storage.elements);
  if (!berth__storage_bytes(storage, count, &size) || (storage.elements == 1 ? count : size) > left)
    return berth__lexer_fail(&r->lexer, err, "%s '%s' has fewer numbers than its shape needs", what, s->names[0]);
  if (size > SIZE_MAX) return berth__fail_nomem(err, "a constant");
  BERTH__TRY(graph_statement_keep(r->document, (size_t)size, &s->data, err));
  s->data_size = (size_t)size;
  return berth__literal_parse(&r->lexer, s->types[0], s->data, count, err);
}

static berth_status read_source(reader *r, berth__statement *s, berth_error *err) {
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  BERTH__TRY(read_name(r, s, err));
  BERTH__TRY(berth__lexer_take(&r->lexer, ':', err));
  BERTH__TRY(graph_statement_read_type(r, s, err));
  if (s->kind != BERTH__STATEMENT_CONST && s->kind != BERTH__STATEMENT_STATE) return BERTH_OK;
  BERTH__TRY(berth__lexer_take(&r->lexer, '=', err));
  if (s->kind == BERTH__STATEMENT_STATE && berth__lexer_is_word(&r->lexer, "zeros"))
    return berth__lexer_next(&r->lexer, err);
  return read_constant_data(r, s, err);
}

static berth_status read_node(reader *r, berth__statement *s, berth_error *err) {
  BERTH__TRY(read_name(r, s, err));
  while (r->lexer.token.kind == ',') {
    BERTH__TRY(berth__lexer_next(&r->lexer, err));
    BERTH__TRY(read_name(r, s, err));
  }
  BERTH__TRY(berth__lexer_take(&r->lexer, '=', err));
  BERTH__TRY(graph_statement_take_word(r, "an op's name", &s->op, err));
  BERTH__TRY(graph_statement_read_operands(r, s, err));
  if (r->lexer.token.kind == '{') BERTH__TRY(read_attrs(r, s, err));
  if (r->lexer.token.kind != ':') return BERTH_OK;
  do {
    BERTH__TRY(berth__lexer_next(&r->lexer, err));
    BERTH__TRY(graph_statement_read_type(r, s, err));
  } while (r->lexer.token.kind == ',');
  if (s->n_types != s->n_names)
    return berth__fail(err, BERTH_MALFORMED, "line %u: '%s' has %zu result%s but %zu type%s", s->line, s->names[0],
                       s->n_names, berth__plural(s->n_names), s->n_types, berth__plural(s->n_types));
  return BERTH_OK;
}

static berth_status read_output(reader *r, berth_error *err) {
  berth__document *d = r->document;
  BERTH__TRY(BERTH__RESERVE(d->ctx, d->outputs, d->outputs_capacity, d->n_outputs + 1, err));
  berth__text_output *output = &d->outputs[d->n_outputs];
  output->line = r->lexer.line;
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  BERTH__TRY(take_text(r, BERTH__TOKEN_STRING, "an output's name in quotes", &output->name, err));
  BERTH__TRY(berth__lexer_take(&r->lexer, '=', err));
  BERTH__TRY(take_text(r, BERTH__TOKEN_VALUE, "a value such as %x", &output->value, err));
  d->n_outputs++;
  return BERTH_OK;
}

static berth_status read_update(reader *r, berth_error *err) {
  berth__document *d = r->document;
  BERTH__TRY(BERTH__RESERVE(d->ctx, d->updates, d->updates_capacity, d->n_updates + 1, err));
  berth__text_update *update = &d->updates[d->n_updates];
  update->line = r->lexer.line;
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  BERTH__TRY(take_text(r, BERTH__TOKEN_VALUE, "a state such as %s", &update->state, err));
  BERTH__TRY(berth__lexer_take(&r->lexer, '=', err));
  BERTH__TRY(take_text(r, BERTH__TOKEN_VALUE, "a value such as %x", &update->next, err));
  d->n_updates++;
  return BERTH_OK;
}

static berth_status graph_statement_read_weights(reader *r, berth_error *err) {
  if (r->document->weights != NULL) return berth__lexer_fail(&r->lexer, err, "weights are named twice");
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  return take_text(r, BERTH__TOKEN_STRING, "a file's name in quotes", &r->document->weights, err);
}

static berth_status read_statement(reader *r, berth_error *err) {
  berth__document *d = r->document;
  if (berth__lexer_is_word(&r->lexer, "output")) return read_output(r, err);
  if (berth__lexer_is_word(&r->lexer, "update")) return read_update(r, err);
  if (berth__lexer_is_word(&r->lexer, "weights")) return graph_statement_read_weights(r, err);
  BERTH__TRY(BERTH__RESERVE(d->ctx, d->statements, d->statements_capacity, d->n_statements + 1, err));
  berth__statement *s = &d->statements[d->n_statements++];
  memset(s, 0, sizeof *s);
  s->line = r->lexer.line;
  s->kind = BERTH__STATEMENT_NODE;
  if (r->lexer.token.kind == BERTH__TOKEN_VALUE) return read_node(r, s, err);
  if (berth__lexer_is_word(&r->lexer, "input"))
    s->kind = BERTH__STATEMENT_INPUT;
  else if (berth__lexer_is_word(&r->lexer, "param"))
    s->kind = BERTH__STATEMENT_PARAM;
  else if (berth__lexer_is_word(&r->lexer, "const"))
    s->kind = BERTH__STATEMENT_CONST;
  else if (berth__lexer_is_word(&r->lexer, "state"))
    s->kind = BERTH__STATEMENT_STATE;
  else
    return berth__lexer_expected(&r->lexer, "input, param, const, state, update, output or %name", err);
  return read_source(r, s, err);
}

static berth_status read_document(reader *r, berth_error *err) {
  if (!berth__lexer_is_word(&r->lexer, "graph")) return berth__lexer_expected(&r->lexer, "the word graph", err);
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  BERTH__TRY(take_text(r, BERTH__TOKEN_STRING, "the graph's name in quotes", &r->document->name, err));
  BERTH__TRY(berth__lexer_take(&r->lexer, '{', err));
  while (r->lexer.token.kind != '}') BERTH__TRY(read_statement(r, err));
  BERTH__TRY(berth__lexer_next(&r->lexer, err));
  if (r->lexer.token.kind != BERTH__TOKEN_END) return berth__lexer_expected(&r->lexer, "the end", err);
  return BERTH_OK;
}

berth_status berth__document_read(berth__document *document, berth_context *ctx, const char *text, size_t size,
                                  berth_error *err) {
  *document = (berth__document){.ctx = ctx};
  reader r = {.document = document};
  berth_status status = berth__lexer_start(&r.lexer, ctx, text, size, err);
  if (status == BERTH_OK) status = read_document(&r, err);
  berth__lexer_finish(&r.lexer);
  if (status != BERTH_OK) berth__document_free(document);
  return status;
}

void berth__document_free(berth__document *document) {
  berth_context *ctx = document->ctx;
  for (size_t i = 0; i < document->n_statements; i++) {
    berth__statement *s = &document->statements[i];
    berth__free(ctx, s->names);
    berth__free(ctx, s->operands);
    berth__free(ctx, s->attrs);
    berth__free(ctx, s->types);
    berth__free(ctx, s->shapes);
  }
  for (size_t i = 0; i < document->n_blocks; i++) berth__free(ctx, document->blocks[i]);
  berth__free(ctx, document->statements);
  berth__free(ctx, document->outputs);
  berth__free(ctx, document->updates);
  berth__free(ctx, document->blocks);
  *document = (berth__document){.ctx = ctx};
}
