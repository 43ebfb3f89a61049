/* A block of elements at a time: each step is one loop over the block, and values between steps stay in the L1 cache.
 * Operands that lie in memory as the block needs them are used there; the others (broadcast, strided, of other types)
 * are loaded into buffers. */
#include "device/cpu/kernels/chain_run.h"

#include "device/cpu/kernels/turn.h"

#define BUFFER 4096   /* floats in the buffers of one block */
#define WIDEST 1024   /* floats per block, at most */
#define CACHE_LINE 64 /* bytes */
#define LONG_ROW \
  512 /* rows with at least this many columns are processed one by one when only some columns are wanted */
/* Registers: operands, constants, results of steps, the reciprocals of the constants, and one for missing operands of
 * pairs. */
#define NOTHING (BERTH__CHAIN_OPERANDS + 2 * BERTH__CHAIN_NUMBERS + BERTH__CHAIN_STEPS)
#define N_REGISTERS (NOTHING + 1)

/* ---- Preparing ------------------------------------------------------------------------------------------------ */

/* Whether `axis` of the result can be joined with the last axis that was kept, for every operand. */
static bool continues(const chain_run *run, int64_t stride[][BERTH_MAX_RANK], uint32_t axis, int64_t extent) {
  for (uint32_t k = 0; k < run->chain.n_operands; k++)
    if (run->operand[k].stride[run->rank - 1] != stride[k][axis] * extent) return false;
  return true;
}

static void join_axes(chain_run *run, const berth_tensor *out, int64_t stride[][BERTH_MAX_RANK], bool keep_last) {
  run->rank = 0;
  for (uint32_t axis = 0; axis < out->rank; axis++) {
    const bool is_kept = keep_last && axis + 1 == out->rank;
    if (out->dim[axis] == 1 && !is_kept) continue;
    if (run->rank > 0 && !is_kept && continues(run, stride, axis, out->dim[axis]))
      run->dim[run->rank - 1] *= out->dim[axis];
    else
      run->dim[run->rank++] = out->dim[axis];
    for (uint32_t k = 0; k < run->chain.n_operands; k++) run->operand[k].stride[run->rank - 1] = stride[k][axis];
  }
  if (run->rank == 0) { /* one element */
    run->dim[run->rank++] = 1;
    for (uint32_t k = 0; k < run->chain.n_operands; k++) run->operand[k].stride[0] = 0;
  }
  run->columns = run->dim[run->rank - 1];
  run->rows = 1;
  for (uint32_t axis = 0; axis + 1 < run->rank; axis++) run->rows *= run->dim[axis];
}

/* ---- Loops ---------------------------------------------------------------------------------------------------- */

static uint32_t first_result(const berth__chain *c) { return c->n_operands + c->n_numbers; }
static uint32_t first_reciprocal(const berth__chain *c) { return first_result(c) + c->n_steps; }
static berth__chain_code code_at(const berth__chain *c, uint32_t step) { return (berth__chain_code)c->code[4 * step]; }

static uint32_t uses_of(const berth__chain *c, int64_t reg) {
  uint32_t uses = 0;
  for (uint32_t i = 0; i < c->n_steps; i++)
    for (uint32_t k = 0; k < berth__chain_arity(code_at(c, i)); k++) uses += c->code[4 * i + 1 + k] == reg;
  return uses;
}

static bool chain_run_kernel_is_number(const berth__chain *c, int64_t reg) {
  return reg >= c->n_operands && reg < (int64_t)first_result(c);
}

/* Which operand of step i + 1 is the result of step i, if the two may become one loop; -1: they may not. */
static int place_in_next(const berth__chain *c, uint32_t i) {
  const int64_t reg = (int64_t)first_result(c) + i, *next = c->code + 4 * i + 4;
  if (i + 1 >= c->n_steps || uses_of(c, reg) != 1 || chain_pair(code_at(c, i), code_at(c, i + 1)) == NULL) return -1;
  if (next[1] == reg) {
    if (next[0] != BERTH__CHAIN_div) return 0;
    return chain_run_kernel_is_number(c, next[2]) && chain_divides_fast((float)c->numbers[next[2] - c->n_operands])
               ? 0
               : -1;
  }
  const bool swaps = next[0] == BERTH__CHAIN_add || next[0] == BERTH__CHAIN_mul;
  return swaps && next[2] == reg ? 1 : -1;
}

static chain_loop pair_of(const berth__chain *c, uint32_t i, int place) {
  const int64_t *first = c->code + 4 * i, *second = first + 4;
  const uint32_t n_second = berth__chain_arity(code_at(c, i + 1));
  const uint8_t other = n_second > 1 ? (uint8_t)second[place == 0 ? 2 : 1] : NOTHING;
  chain_loop loop = {.run = chain_pair(code_at(c, i), code_at(c, i + 1)),
                     .in = {(uint8_t)first[1], (uint8_t)first[2], other, n_second > 2 ? (uint8_t)second[3] : NOTHING},
                     .result = (uint8_t)(first_result(c) + i + 1)};
  if (second[0] == BERTH__CHAIN_div) loop.in[3] = (uint8_t)(first_reciprocal(c) + other - c->n_operands);
  return loop;
}

static void make_loops(chain_run *run) {
  const berth__chain *c = &run->chain;
  run->n_loops = 0;
  for (uint32_t i = 0; i < c->n_steps; i++) {
    const int place = place_in_next(c, i);
    const int64_t *step = c->code + 4 * i;
    if (place >= 0)
      run->loop[run->n_loops++] = pair_of(c, i++, place);
    else
      run->loop[run->n_loops++] = (chain_loop){.run = chain_steps[step[0]],
                                               .in = {(uint8_t)step[1], (uint8_t)step[2], (uint8_t)step[3], 0},
                                               .result = (uint8_t)(first_result(c) + i)};
  }
}

/* A slot is free again after the last loop that reads it, which may already overwrite it. */
static void assign_slots(chain_run *run) {
  uint32_t last_use[N_REGISTERS] = {0};
  uint64_t taken = 0;
  for (uint32_t i = 0; i < run->n_loops; i++)
    for (uint32_t k = 0; k < 4; k++) last_use[run->loop[i].in[k]] = i;
  run->n_slots = 0;
  for (uint32_t i = 0; i < run->n_loops; i++) {
    for (uint32_t earlier = 0; earlier < i; earlier++)
      if (last_use[run->loop[earlier].result] == i) taken &= ~(UINT64_C(1) << run->loop[earlier].slot);
    uint8_t slot = 0;
    while (taken >> slot & 1u) slot++;
    if (last_use[run->loop[i].result] > i) taken |= UINT64_C(1) << slot; /* a result without readers needs no slot */
    run->loop[i].slot = slot;
    if (slot >= run->n_slots) run->n_slots = slot + 1u;
  }
}

static void choose_width(chain_run *run) {
  const int64_t width = BUFFER / (int64_t)(run->chain.n_operands + run->n_slots);
  run->width = (width < WIDEST ? width : WIDEST) / VF_LANES * VF_LANES;
}

static void repeat_numbers(chain_run *run) {
  for (uint32_t i = 0; i < run->chain.n_numbers; i++) {
    vf_store(run->number[i], vf_set1((float)run->chain.numbers[i]));
    vf_store(run->reciprocal[i], vf_set1(1.0f / (float)run->chain.numbers[i]));
  }
}

static bool has_turned(const chain_run *run) {
  const uint32_t last = run->rank - 1;
  for (uint32_t k = 0; k < run->chain.n_operands && last > 0; k++)
    if (run->operand[k].stride[last - 1] == 1 && run->operand[k].stride[last] > 1) return true;
  return false;
}

static void chain_run_kernel_prepare(chain_run *run, const berth_tensor *const *in, const berth_tensor *out,
                                     bool keep_last) {
  int64_t stride[BERTH__CHAIN_OPERANDS][BERTH_MAX_RANK];
  for (uint32_t k = 0; k < run->chain.n_operands; k++) {
    run->operand[k].data = in[k]->data;
    run->operand[k].type = in[k]->type;
    berth__broadcast_strides(in[k], out->rank, out->dim, stride[k]);
    for (uint32_t axis = 0; axis < out->rank; axis++)
      if (out->dim[axis] == 1) stride[k][axis] = 0; /* never followed, so it may have any value */
  }
  run->type = out->type;
  run->out = out->data;
  join_axes(run, out, stride, keep_last);
  run->is_turned = has_turned(run);
  make_loops(run);
  assign_slots(run);
  choose_width(run);
  repeat_numbers(run);
}

bool chain_prepare(chain_run *run, const berth_tensor *in, uint32_t n_in, const berth_tensor *out,
                   const berth_attr *code, const berth_attr *numbers) {
  const berth_tensor *operands[BERTH__CHAIN_OPERANDS];
  if (berth__chain_read(code, numbers, n_in, &run->chain, NULL) != BERTH_OK || run->chain.n_steps == 0) return false;
  for (uint32_t k = 0; k < n_in; k++) operands[k] = &in[k];
  chain_run_kernel_prepare(run, operands, out, false);
  return true;
}

bool epilogue_prepare(chain_run *run, const berth_tensor *extra, uint32_t n_extra, const berth_tensor *out,
                      const berth_attr *code, const berth_attr *numbers) {
  const berth_tensor *operands[BERTH__CHAIN_OPERANDS] = {out};
  if (code->count == 0) return false;
  if (berth__chain_read(code, numbers, n_extra + 1, &run->chain, NULL) != BERTH_OK) return false;
  for (uint32_t k = 0; k < n_extra; k++) operands[k + 1] = &extra[k];
  chain_run_kernel_prepare(run, operands, out, true);
  return true;
}

/* ---- A rectangle of rows and columns -------------------------------------------------------------------------- */

typedef struct source {
  const char *data; /* of the rectangle's first element */
  berth_type type;
  int64_t element; /* bytes */
  int64_t row_stride, column_stride;
} source;

typedef struct rectangle {
  const chain_run *run;
  int64_t n_rows, n_columns;
  source operand[BERTH__CHAIN_OPERANDS];
  char *out;
  int64_t out_element, out_stride; /* bytes; elements between rows */
} rectangle;

typedef struct buffers {
  _Alignas(64) float block[BUFFER];
  float repeated[BERTH__CHAIN_OPERANDS][VF_LANES];
  bool is_kept[BERTH__CHAIN_OPERANDS]; /* the buffer already holds what the next block needs */
} buffers;

/* Lines are short here: a call to memcpy would take longer than the copy. */
static inline void chain_run_kernel_copy_line(float *to, const float *from, int64_t n) {
  int64_t i = 0;
  for (; i + VF_LANES <= n; i += VF_LANES) vf_store(to + i, vf_load(from + i));
  if (i < n) vf_store_n(to + i, vf_load_n(from + i, n - i), n - i);
}

/* Whether the elements of a column are contiguous and those of a row are not: a transposed operand. */
static bool is_turned(const source *s) { return s->row_stride == 1 && s->column_stride != 0 && s->column_stride != 1; }

/* Transposed in their own type, then converted to f32. */
static void load_turned(float *to, const source *s, const char *from, int64_t n_rows, int64_t n_columns) {
  _Alignas(64) char turned[WIDEST * sizeof(float)];
  if (s->type == BERTH_F32) {
    turn_block(to, n_columns, from, s->column_stride, n_rows, n_columns, sizeof *to);
    return;
  }
  turn_block(turned, n_columns, from, s->column_stride, n_rows, n_columns, (size_t)s->element);
  chain_load(to, s->type, turned, 1, n_rows * n_columns);
}

static void load_block(float *to, const source *s, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns) {
  const char *from = s->data + (row * s->row_stride + column * s->column_stride) * s->element;
  if (is_turned(s) && n_rows > 1)
    load_turned(to, s, from, n_rows, n_columns);
  else if (s->type == BERTH_F32 && s->column_stride == 1)
    for (int64_t i = 0; i < n_rows; i++)
      chain_run_kernel_copy_line(to + i * n_columns, (const float *)(const void *)from + i * s->row_stride, n_columns);
  else
    for (int64_t i = 0; i < n_rows; i++)
      chain_load(to + i * n_columns, s->type, from + i * s->row_stride * s->element, s->column_stride, n_columns);
}

/* Operand k of a block: in place, repeated, or loaded. */
static chain_register chain_run_kernel_operand_of(const rectangle *r, uint32_t k, buffers *b, int64_t row,
                                                  int64_t n_rows, int64_t column, int64_t n_columns) {
  const source *s = &r->operand[k];
  const bool one_row = n_rows == 1 || s->row_stride == n_columns * s->column_stride;
  const char *at = s->data + (row * s->row_stride + column * s->column_stride) * s->element;
  if (s->column_stride == 1 && one_row && s->type == BERTH_F32)
    return (chain_register){(const float *)(const void *)at, 1};
  if (s->column_stride == 0 && (n_rows == 1 || s->row_stride == 0)) {
    if (!b->is_kept[k]) chain_load(b->repeated[k], s->type, at, 0, VF_LANES);
    b->is_kept[k] = s->row_stride == 0;
    return (chain_register){b->repeated[k], 0};
  }
  float *to = b->block + k * r->run->width;
  if (!b->is_kept[k]) load_block(to, s, row, n_rows, column, n_columns);
  b->is_kept[k] = s->row_stride == 0 && n_columns == r->n_columns;
  return (chain_register){to, 1};
}

static void store_block(const rectangle *r, const float *from, int64_t row, int64_t n_rows, int64_t column,
                        int64_t n_columns) {
  char *to = r->out + (row * r->out_stride + column) * r->out_element;
  if (r->run->type == BERTH_F32)
    for (int64_t i = 0; i < n_rows; i++)
      chain_run_kernel_copy_line((float *)(void *)to + i * r->out_stride, from + i * n_columns, n_columns);
  else
    for (int64_t i = 0; i < n_rows; i++)
      chain_store(to + i * r->out_stride * r->out_element, r->run->type, from + i * n_columns, n_columns);
}

static const float nothing[VF_LANES];

static void chain_kernel_run_block(const rectangle *r, buffers *b, int64_t row, int64_t n_rows, int64_t column,
                                   int64_t n_columns) {
  const chain_run *run = r->run;
  const berth__chain *c = &run->chain;
  const int64_t count = n_rows * n_columns;
  const bool is_direct = run->type == BERTH_F32 && (n_rows == 1 || r->out_stride == n_columns);
  chain_register at[N_REGISTERS];
  float *slots = b->block + c->n_operands * run->width, *result = NULL;
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n_operands; k++)
    at[n++] = chain_run_kernel_operand_of(r, k, b, row, n_rows, column, n_columns);
  for (uint32_t k = 0; k < c->n_numbers; k++) at[n++] = (chain_register){run->number[k], 0};
  for (uint32_t k = 0; k < c->n_numbers; k++) at[first_reciprocal(c) + k] = (chain_register){run->reciprocal[k], 0};
  at[NOTHING] = (chain_register){nothing, 0};
  for (uint32_t i = 0; i < run->n_loops; i++) {
    const chain_loop *loop = &run->loop[i];
    const chain_register in[4] = {at[loop->in[0]], at[loop->in[1]], at[loop->in[2]], at[loop->in[3]]};
    result = is_direct && i + 1 == run->n_loops ? (float *)(void *)r->out + row * r->out_stride + column
                                                : slots + loop->slot * run->width;
    loop->run(result, in, count);
    at[loop->result] = (chain_register){result, 1};
  }
  if (!is_direct) store_block(r, result, row, n_rows, column, n_columns);
}

/* If every operand continues from row to row as the result does, the rows are one long row. */
static void join_rows(rectangle *r) {
  bool is_one = r->n_rows == 1 || r->out_stride == r->n_columns;
  for (uint32_t k = 0; k < r->run->chain.n_operands && is_one && r->n_columns == 1; k++)
    r->operand[k].column_stride = r->operand[k].row_stride; /* a single column is never followed */
  for (uint32_t k = 0; k < r->run->chain.n_operands && is_one; k++)
    is_one = r->n_rows == 1 || r->operand[k].row_stride == r->n_columns * r->operand[k].column_stride;
  if (!is_one) return;
  r->n_columns *= r->n_rows;
  r->n_rows = 1;
}

typedef struct extent {
  int64_t rows, columns;
} extent;

/* Blocks are parts of a row, or several short rows. With transposed operands, they are some columns of as many rows as
 * make a column fill a cache line. */
static extent block_of(const rectangle *r) {
  const int64_t width = r->run->width;
  for (uint32_t k = 0; k < r->run->chain.n_operands; k++) {
    int64_t rows = CACHE_LINE / r->operand[k].element;
    while (rows > VF_LANES && (rows > r->n_rows || width / rows < VF_LANES)) rows /= 2;
    if (is_turned(&r->operand[k]) && r->n_rows > 1 && r->n_columns > width / rows) return (extent){rows, width / rows};
  }
  if (r->n_columns >= width || (r->out_stride != r->n_columns && r->n_columns >= LONG_ROW)) return (extent){1, width};
  return (extent){width / r->n_columns, width};
}

static void run_rectangle(rectangle *r) {
  buffers b;
  join_rows(r);
  const extent each = block_of(r);
  memset(b.is_kept, 0, sizeof b.is_kept);
  for (int64_t row = 0; row < r->n_rows; row += each.rows) {
    const int64_t rows = r->n_rows - row;
    for (int64_t column = 0; column < r->n_columns; column += each.columns) {
      const int64_t columns = r->n_columns - column;
      chain_kernel_run_block(r, &b, row, rows < each.rows ? rows : each.rows, column,
                             columns < each.columns ? columns : each.columns);
    }
  }
}

/* ---- Rows ----------------------------------------------------------------------------------------------------- */

/* Where the row starts in operand k. */
static int64_t row_offset(const chain_run *run, const chain_operand *operand, int64_t row) {
  int64_t offset = 0;
  for (uint32_t axis = run->rank - 1; axis-- > 0; row /= run->dim[axis])
    offset += row % run->dim[axis] * operand->stride[axis];
  return offset;
}

static void start_rectangle(rectangle *r, const chain_run *run, int64_t row, int64_t n_rows, int64_t column,
                            int64_t n_columns) {
  const uint32_t last = run->rank - 1;
  r->run = run;
  r->n_rows = n_rows;
  r->n_columns = n_columns;
  r->out_element = (int64_t)berth_type_size(run->type);
  r->out_stride = run->columns;
  r->out = run->out + (row * run->columns + column) * r->out_element;
  for (uint32_t k = 0; k < run->chain.n_operands; k++) {
    const chain_operand *o = &run->operand[k];
    const int64_t element = (int64_t)berth_type_size(o->type);
    r->operand[k] = (source){.data = o->data + (row_offset(run, o, row) + column * o->stride[last]) * element,
                             .type = o->type,
                             .element = element,
                             .row_stride = last > 0 ? o->stride[last - 1] : 0,
                             .column_stride = o->stride[last]};
  }
}

void chain_rows(const chain_run *run, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns) {
  const int64_t together = run->rank > 1 ? run->dim[run->rank - 2] : 1; /* rows that are one stride apart */
  while (n_rows > 0) {
    const int64_t left = together - row % together, n = n_rows < left ? n_rows : left;
    rectangle r;
    start_rectangle(&r, run, row, n, column, n_columns);
    run_rectangle(&r);
    row += n;
    n_rows -= n;
  }
}

/* ---- Epilogues
 * ---------------------------------------------------------------------------------------------------- */

void epilogue_rows(const chain_run *run, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns) {
  chain_rows(run, row, n_rows, column, n_columns);
}

void epilogue_rows_from(const chain_run *run, int64_t row, int64_t n_rows, int64_t column, int64_t n_columns,
                        const float *from, int64_t from_stride) {
  const int64_t together = run->rank > 1 ? run->dim[run->rank - 2] : 1;
  while (n_rows > 0) {
    const int64_t left = together - row % together, n = n_rows < left ? n_rows : left;
    rectangle r;
    start_rectangle(&r, run, row, n, column, n_columns);
    r.operand[0] = (source){.data = (const char *)from,
                            .type = BERTH_F32,
                            .element = sizeof *from,
                            .row_stride = from_stride,
                            .column_stride = 1};
    run_rectangle(&r);
    from += n * from_stride;
    row += n;
    n_rows -= n;
  }
}

/* The bounds of one step that reads `value` and constants only; false: it is no such step. */
static bool step_bounds(const berth__chain *c, const int64_t *step, int64_t value, float *low, float *high) {
  const bool is_number[] = {false, step[2] >= 1 && step[2] <= (int64_t)c->n_numbers,
                            step[3] >= 1 && step[3] <= (int64_t)c->n_numbers};
  *low = -INFINITY;
  *high = INFINITY;
  if (step[1] != value) return false;
  switch ((berth__chain_code)step[0]) {
    case BERTH__CHAIN_relu: *low = 0; return true;
    case BERTH__CHAIN_clamp:
      if (is_number[1]) *low = (float)c->numbers[step[2] - 1];
      if (is_number[2]) *high = (float)c->numbers[step[3] - 1];
      return is_number[1] && is_number[2];
    case BERTH__CHAIN_max:
      if (is_number[1]) *low = (float)c->numbers[step[2] - 1];
      return is_number[1] && !isnan(*low);
    case BERTH__CHAIN_min:
      if (is_number[1]) *high = (float)c->numbers[step[2] - 1];
      return is_number[1] && !isnan(*high);
    default: return false;
  }
}

static float within(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

bool epilogue_clamp(const berth_attr *code, const berth_attr *numbers, float *low, float *high) {
  berth__chain c;
  int64_t value = 0;
  *low = -INFINITY;
  *high = INFINITY;
  if (berth__chain_read(code, numbers, 1, &c, NULL) != BERTH_OK) return false;
  for (uint32_t i = 0; i < c.n_steps; i++) {
    float step_low, step_high;
    if (!step_bounds(&c, c.code + 4 * i, value, &step_low, &step_high)) return false;
    *low = within(*low, step_low, step_high);
    *high = within(*high, step_low, step_high);
    value = 1 + (int64_t)c.n_numbers + i;
  }
  return true;
}

void epilogue_read(epilogue_form *e, const berth_op_call *call, uint32_t first, const berth_attr *code,
                   const berth_attr *numbers) {
  const uint32_t n_extra = call->n_in > first ? call->n_in - first : 0;
  e->is_chain = false;
  if (n_extra == 0 && epilogue_clamp(code, numbers, &e->low, &e->high)) return;
  e->low = -INFINITY;
  e->high = INFINITY;
  e->is_chain = epilogue_prepare(&e->chain, call->in + first, n_extra, &call->out[0], code, numbers);
}
