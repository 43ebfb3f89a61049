#include "direct.h"

#include <stdio.h>
#include <stdlib.h>

static int complain(const op_case *c, const char *what, const char *detail) {
  fprintf(stderr, "%s:%d: %s: %s%s%s\n", c->file, c->line, c->name, what, detail ? ": " : "", detail ? detail : "");
  return 0;
}

/* ---- Attributes ----------------------------------------------------------------------------------------------- */

/* Converts an attribute of a case to the declared kind: integers to floats or extents. */
static int convert_attr(const berth_attr *declared, const berth_attr *given, berth_attr *out, berth_dim *dims) {
  *out = *given;
  out->name = declared->name;
  out->kind = declared->kind;
  if (declared->kind == given->kind) return 1;
  if (declared->kind == BERTH_ATTR_FLOAT && given->kind == BERTH_ATTR_INT) {
    out->f = (double)given->i;
    return 1;
  }
  if (given->kind != BERTH_ATTR_INTS) return 0;
  if (declared->kind == BERTH_ATTR_FLOATS) return given->count == 0;
  if (declared->kind != BERTH_ATTR_DIMS) return 0;
  for (uint32_t i = 0; i < given->count; i++) dims[i] = (berth_dim){NULL, given->ints[i]};
  out->dims = dims;
  return 1;
}

static const berth_attr *declared_attr(const berth__op *op, const char *name) {
  for (uint32_t i = 0; i < op->family->n_attrs; i++)
    if (strcmp(op->family->attrs[i].name, name) == 0) return &op->family->attrs[i];
  return NULL;
}

int op_case_attrs(const op_case *c, const berth__op *op, op_attrs *given) {
  for (uint32_t i = 0; i < c->n_attrs; i++) {
    const berth_attr *declared = declared_attr(op, c->attrs[i].name);
    if (!declared) return complain(c, "the op has no such attribute", c->attrs[i].name);
    if (!convert_attr(declared, &c->attrs[i], &given->attrs[i], given->dims[i]))
      return complain(c, "an attribute is of the wrong kind", c->attrs[i].name);
  }
  return 1;
}

/* All attributes that the op declares, in order, in the form for inference and kernels. */
static int fill_attrs(const op_case *c, const berth__op *op, op_attrs *given, berth_attr *all) {
  uint32_t seen = 0;
  if (!op_case_attrs(c, op, given)) return 0;
  for (uint32_t i = 0; i < op->family->n_attrs; i++) all[i] = op->family->attrs[i];
  for (uint32_t i = 0; i < c->n_attrs; i++) {
    uint32_t at = (uint32_t)(declared_attr(op, c->attrs[i].name) - op->family->attrs);
    all[at] = given->attrs[i];
    seen |= 1u << at;
  }
  return (op->family->required & ~seen) == 0 ? 1 : complain(c, "a required attribute is missing", NULL);
}

/* ---- Inference ------------------------------------------------------------------------------------------------ */

typedef struct inference {
  const berth__op *op;
  op_attrs given;
  berth_attr attrs[OP_CASE_MAX]; /* all that the op declares */
  berth_type in_type[OP_CASE_MAX], out_type[OP_CASE_MAX];
  berth__shape in_shape[OP_CASE_MAX], out_shape[OP_CASE_MAX];
  const void *in_data[OP_CASE_MAX]; /* of operands that shapes depend on */
  uint32_t n_out;
  berth_error err;
} inference;

static int64_t resolve_fixed(const berth__infer *infer, const berth_dim *dim) {
  (void)infer;
  return dim->name ? BERTH__DIM_UNKNOWN : dim->extent;
}

static int is_valued(const berth__op *op, uint32_t operand) { return op->family->valued >> operand & 1u; }

static int prepare(const op_case *c, inference *inf) {
  memset(inf, 0, sizeof *inf);
  inf->op = berth__op_find(NULL, c->op);
  if (!inf->op) return complain(c, "there is no such op", c->op);
  if (c->n_in < inf->op->min_in || (inf->op->max_in != BERTH__ANY && c->n_in > inf->op->max_in))
    return complain(c, "the op does not take that many operands", NULL);
  for (uint32_t i = 0; i < c->n_in; i++) {
    inf->in_type[i] = c->in[i].type;
    inf->in_shape[i].rank = c->in[i].rank;
    memcpy(inf->in_shape[i].dim, c->in[i].dim, sizeof c->in[i].dim);
    if (is_valued(inf->op, i)) inf->in_data[i] = c->in[i].data;
  }
  inf->n_out = c->n_out ? c->n_out : inf->op->min_out;
  return fill_attrs(c, inf->op, &inf->given, inf->attrs);
}

static berth_status infer_now(const op_case *c, inference *inf) {
  berth__infer infer = {.op = inf->op,
                        .in_type = inf->in_type,
                        .in_shape = inf->in_shape,
                        .in_data = inf->in_data,
                        .n_in = c->n_in,
                        .n_out = inf->n_out,
                        .attrs = inf->attrs,
                        .out_type = inf->out_type,
                        .out_shape = inf->out_shape,
                        .resolve = resolve_fixed};
  return inf->op->family->infer(&infer, &inf->err);
}

static int check_failure(const op_case *c, const inference *inf, berth_status status) {
  if (status == BERTH_OK) return complain(c, "inference succeeded, expected an error", c->error);
  if (inf->err.status != status) return complain(c, "the error's status is not the one returned", inf->err.message);
  return strstr(inf->err.message, c->error) ? 1 : complain(c, "another error came", inf->err.message);
}

int direct_infer(const op_case *c) {
  inference inf;
  if (!prepare(c, &inf)) return 0;
  berth_status status = infer_now(c, &inf);
  if (c->error) return check_failure(c, &inf, status);
  if (status != BERTH_OK) return complain(c, "inference failed", inf.err.message);
  for (uint32_t i = 0; i < c->n_out; i++) {
    berth__shape want = {.rank = c->out[i].rank};
    char text[BERTH__SHAPE_TEXT];
    memcpy(want.dim, c->out[i].dim, sizeof want.dim);
    if (inf.out_type[i] != c->out[i].type) return complain(c, "inferred type", berth_type_name(inf.out_type[i]));
    if (!berth__shape_equal(&inf.out_shape[i], &want))
      return complain(c, "inferred shape", berth__shape_text(&inf.out_shape[i], text));
  }
  return 1;
}

/* ---- Inference with open dimensions --------------------------------------------------------------------------- */

typedef struct names {
  int64_t extent[OP_CASE_MAX * BERTH_MAX_RANK]; /* of name i */
  uint32_t count;
} names;

/* One name for each extent: extents that are certainly equal have the same name. */
static int64_t name_of(names *n, int64_t extent) {
  uint32_t i = 0;
  while (i < n->count && n->extent[i] != extent) i++;
  if (i == n->count) n->extent[n->count++] = extent;
  return berth__dim_named(i);
}

static int check_open(const op_case *c, const inference *inf, const names *n) {
  for (uint32_t k = 0; k < c->n_out; k++) {
    const berth__shape *got = &inf->out_shape[k];
    char text[BERTH__SHAPE_TEXT];
    if (got->rank != c->out[k].rank) return complain(c, "open inference: rank", berth__shape_text(got, text));
    for (uint32_t i = 0; i < got->rank; i++) {
      int64_t dim = got->dim[i];
      if (berth__dim_is_named(dim)) {
        if (berth__dim_index(dim) >= n->count) return complain(c, "open inference: a name that is not there", NULL);
        dim = n->extent[berth__dim_index(dim)];
      }
      if (dim != BERTH__DIM_UNKNOWN && dim != c->out[k].dim[i])
        return complain(c, "open inference: a wrong extent", berth__shape_text(got, text));
    }
  }
  return 1;
}

int direct_infer_open(const op_case *c) {
  if (c->error) return 1;
  for (int unknown = 0; unknown < 2; unknown++) {
    inference inf;
    names n = {.count = 0};
    if (!prepare(c, &inf)) return 0;
    for (uint32_t k = 0; k < c->n_in; k++) {
      if (unknown) inf.in_data[k] = NULL;
      for (uint32_t i = 0; i < inf.in_shape[k].rank && !is_valued(inf.op, k); i++)
        inf.in_shape[k].dim[i] = unknown ? BERTH__DIM_UNKNOWN : name_of(&n, inf.in_shape[k].dim[i]);
    }
    const berth_status status = infer_now(c, &inf);
    if (status == BERTH_UNSUPPORTED) continue; /* even the rank is unknown */
    if (status != BERTH_OK)
      return complain(c, unknown ? "inference of unknown extents failed" : "inference of named extents failed",
                      inf.err.message);
    if (!check_open(c, &inf, &n)) return 0;
  }
  return 1;
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

typedef struct call_state {
  const op_case *c;
  const berth__op *op;
  berth_op_call call;
  berth_tensor in[OP_CASE_MAX], out[OP_CASE_MAX];
  void *in_block[OP_CASE_MAX], *out_block[OP_CASE_MAX]; /* what to free */
} call_state;

/* Exactly the requested size, so that the address sanitizer detects every access past the end. */
static void *take(size_t size) {
  void *block = NULL;
  if (posix_memalign(&block, 64, size ? size : 1) != 0) abort();
  memset(block, 0xa5, size ? size : 1);
  return block;
}

static berth_tensor tensor_of(const op_tensor *t, void *data) {
  berth_tensor tensor = {.data = data, .type = t->type, .rank = t->rank};
  memcpy(tensor.dim, t->dim, sizeof t->dim);
  berth__contiguous_strides(t->rank, t->dim, tensor.stride);
  return tensor;
}

static void start_call(call_state *s, const op_case *c, const inference *inf) {
  memset(s, 0, sizeof *s);
  s->c = c;
  s->op = inf->op;
  for (uint32_t i = 0; i < c->n_in; i++) {
    if (c->in[i].type == BERTH_TYPE_NONE) continue;
    s->in_block[i] = take(c->in[i].size);
    memcpy(s->in_block[i], c->in[i].data, c->in[i].size);
    s->in[i] = tensor_of(&c->in[i], s->in_block[i]);
  }
  for (uint32_t i = 0; i < c->n_out; i++) {
    s->out_block[i] = take(c->out[i].size);
    s->out[i] = tensor_of(&c->out[i], s->out_block[i]);
  }
  s->call = (berth_op_call){.in = s->in,
                            .out = s->out,
                            .n_in = c->n_in,
                            .n_out = c->n_out,
                            .attrs = inf->attrs,
                            .n_attrs = inf->op->family->n_attrs,
                            .user = berth__op_user(inf->op)};
}

static void end_call(call_state *s) {
  for (uint32_t i = 0; i < s->c->n_in; i++) free(s->in_block[i]);
  for (uint32_t i = 0; i < s->c->n_out; i++) free(s->out_block[i]);
}

/* Scratch is requested like by a planner: without data pointers. */
static uint64_t scratch_size(call_state *s) {
  if (!s->op->family->scratch) return 0;
  berth_tensor in[OP_CASE_MAX], out[OP_CASE_MAX];
  berth_op_call call = s->call;
  memcpy(in, s->in, sizeof in);
  memcpy(out, s->out, sizeof out);
  for (uint32_t i = 0; i < OP_CASE_MAX; i++) in[i].data = out[i].data = NULL;
  call.in = in;
  call.out = out;
  return s->op->family->scratch(&call);
}

static int run_range(call_state *s, int64_t begin, int64_t end) {
  berth_error err = {BERTH_OK, ""};
  void *scratch = take(scratch_size(s));
  s->call.begin = begin;
  s->call.end = end;
  s->call.scratch = scratch;
  berth_status status = s->op->family->kernel(&s->call, &err);
  free(scratch);
  return status == BERTH_OK ? 1 : complain(s->c, "the kernel failed", err.message);
}

static int64_t item_count(const call_state *s) { return s->op->family->items ? s->op->family->items(&s->call) : 1; }

static int run_whole(call_state *s) { return run_range(s, 0, item_count(s)); }

/* The last range first: an item must not depend on an earlier one. */
static int run_in_three(call_state *s) {
  int64_t n = item_count(s), a = n / 3, b = a + (n - a) / 2;
  return run_range(s, b, n) && run_range(s, 0, a) && run_range(s, a, b);
}

static int check_same(const call_state *whole, const call_state *s, const char *how) {
  for (uint32_t i = 0; i < s->c->n_out; i++)
    if (s->c->out[i].size > 0 && memcmp(whole->out[i].data, s->out[i].data, s->c->out[i].size) != 0)
      return complain(s->c, "the result differs from that of the plain call", how);
  return 1;
}

static int check_expected(const call_state *s) {
  for (uint32_t i = 0; i < s->c->n_out; i++) {
    int64_t at;
    const op_tensor *want = &s->c->out[i];
    if (op_case_matches(s->c, want, s->out[i].data, &at)) continue;
    char text[128];
    snprintf(text, sizeof text, "output %u, element %lld: got %.9g, expected %.9g", i, (long long)at,
             op_element(want->type, s->out[i].data, at), op_element(want->type, want->data, at));
    return complain(s->c, "wrong value", text);
  }
  return 1;
}

/* ---- Other layouts -------------------------------------------------------------------------------------------- */

typedef enum layout {
  PADDED,
  REVERSED,
  LAYOUT_COUNT
} layout;
static const char *const layout_names[] = {"padded operand", "operand with its axes in reverse order"};

/* Strides, and the elements that the block needs. PADDED leaves gaps after every element and row; REVERSED makes the
 * first axis the innermost one. The stride of an axis of extent 1 is never used, so it is garbage here. */
static int64_t lay_out(layout how, berth_tensor *t) {
  int64_t next = how == PADDED ? 2 : 1;
  for (uint32_t k = 0; k < t->rank; k++) {
    uint32_t i = how == PADDED ? t->rank - 1 - k : k;
    t->stride[i] = t->dim[i] == 1 ? 1000003 : next;
    next *= t->dim[i];
    if (how == PADDED) next += 3;
  }
  return next;
}

static void give_layout(call_state *s, uint32_t operand, layout how) {
  const op_tensor *from = &s->c->in[operand];
  berth_tensor *t = &s->in[operand];
  size_t size = berth_type_size(from->type);
  int64_t elements = lay_out(how, t), contiguous[BERTH_MAX_RANK];
  const int64_t *strides[2] = {contiguous, t->stride};
  char *block = take((size_t)elements * size);
  berth__walk walk;
  berth__contiguous_strides(t->rank, t->dim, contiguous);
  berth__walk_start(&walk, t->rank, t->dim, 2, strides, 0);
  for (int64_t i = 0; i < from->count; i++, berth__walk_next(&walk))
    memcpy(block + (size_t)walk.index[1] * size, (const char *)from->data + (size_t)walk.index[0] * size, size);
  free(s->in_block[operand]);
  s->in_block[operand] = t->data = block;
}

static int run_layouts(const op_case *c, const inference *inf, const call_state *whole) {
  int ok = 1;
  for (uint32_t k = 0; k < c->n_in; k++) {
    if (!berth__op_takes_strided(inf->op, k) || c->in[k].type == BERTH_TYPE_NONE) continue;
    if (berth_type_storage(c->in[k].type).elements > 1) continue; /* blocks are never cut */
    for (layout how = PADDED; how < LAYOUT_COUNT; how++) {
      call_state s;
      start_call(&s, c, inf);
      give_layout(&s, k, how);
      ok = run_in_three(&s) && check_same(whole, &s, layout_names[how]) && ok;
      end_call(&s);
    }
  }
  return ok;
}

static int can_be_in_place(const op_case *c, uint32_t allowed, uint32_t k) {
  const op_tensor *in = &c->in[k], *out = &c->out[0];
  return k < 32 && ((allowed >> k) & 1u) && in->type != BERTH_TYPE_NONE && in->rank == out->rank &&
         memcmp(in->dim, out->dim, sizeof in->dim) == 0 && berth_type_size(in->type) == berth_type_size(out->type);
}

static int run_in_place(const op_case *c, const inference *inf, const call_state *whole) {
  int ok = 1;
  for (uint32_t k = 0; k < c->n_in; k++) {
    if (!can_be_in_place(c, berth__op_in_place(inf->op, inf->attrs), k)) continue;
    call_state s;
    start_call(&s, c, inf);
    s.out[0].data = s.in[k].data;
    ok = run_in_three(&s) && check_same(whole, &s, "in place") && ok;
    end_call(&s);
  }
  return ok;
}

int direct_run(const op_case *c) {
  inference inf;
  call_state whole, split;
  if (c->error) return 1;
  if (!prepare(c, &inf) || infer_now(c, &inf) != BERTH_OK) return 0;
  start_call(&whole, c, &inf);
  int ok = run_whole(&whole) && check_expected(&whole);
  if (ok) {
    start_call(&split, c, &inf);
    ok = run_in_three(&split) && check_same(&whole, &split, "in three ranges");
    end_call(&split);
    ok = run_layouts(c, &inf, &whole) && ok;
    ok = run_in_place(c, &inf, &whole) && ok;
  }
  end_call(&whole);
  return ok;
}

/* ---- Views ---------------------------------------------------------------------------------------------------- */

static int check_view(const call_state *s, const inference *inf, uint32_t out, const char *how) {
  const op_tensor *want = &s->c->out[out];
  int64_t offset, stride[BERTH_MAX_RANK], contiguous[BERTH_MAX_RANK];
  const int64_t *strides[2] = {contiguous, stride};
  size_t size = berth_type_size(want->type);
  berth__walk walk;
  if (!inf->op->family->view(&s->in[0], inf->attrs, &inf->out_shape[out], want->type, out, &offset, stride)) return 1;
  berth__contiguous_strides(want->rank, want->dim, contiguous);
  berth__walk_start(&walk, want->rank, want->dim, 2, strides, 0);
  for (int64_t i = 0; i < want->count; i++, berth__walk_next(&walk)) {
    const char *seen = (const char *)s->in[0].data + (offset + walk.index[1]) * (int64_t)size;
    if (memcmp(seen, (const char *)want->data + (size_t)i * size, size) != 0)
      return complain(s->c, "the view shows other elements", how);
  }
  return 1;
}

int direct_view(const op_case *c) {
  inference inf;
  int ok = 1;
  if (c->error) return 1;
  if (!prepare(c, &inf) || infer_now(c, &inf) != BERTH_OK) return 0;
  if (!inf.op->family->view) return 1;
  for (uint32_t i = 1; i < c->n_in && i < BERTH__ATTR_OPERANDS; i++)
    if (c->in[i].type != BERTH_TYPE_NONE && inf.op->family->attr_of[i] != 0) return 1; /* views depend on attributes */
  for (int how = -1; how < LAYOUT_COUNT; how++) {
    call_state s;
    start_call(&s, c, &inf);
    if (how >= 0) give_layout(&s, 0, (layout)how);
    for (uint32_t out = 0; out < c->n_out; out++)
      ok = check_view(&s, &inf, out, how < 0 ? "contiguous operand" : layout_names[how]) && ok;
    end_call(&s);
  }
  return ok;
}
