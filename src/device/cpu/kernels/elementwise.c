/* Element-wise ops: `chain`, and every single op that can be expressed as a chain of one step. */
#include "device/cpu/kernels/chain_run.h"

/* A call as a chain: its own attributes, or those of the one step that the op is. */
typedef struct program {
  berth_attr code, numbers;
  int64_t step[4];
  double bounds[2];
} program;

static void read_program(program *p, const berth_op_call *call) {
  const berth__op_code op = berth__call_code(call);
  if (op == BERTH__OP_chain) {
    p->code = call->attrs[BERTH__CHAIN_ATTR_CODE];
    p->numbers = call->attrs[BERTH__CHAIN_ATTR_NUMBERS];
    return;
  }
  const berth__chain_code code = berth__chain_code_of(op);
  p->step[0] = (int64_t)code;
  for (int k = 0; k < 3; k++) p->step[1 + k] = k < (int)berth__chain_arity(code) ? k : 0;
  p->code = (berth_attr){.kind = BERTH_ATTR_INTS, .count = 4, .ints = p->step};
  p->numbers = (berth_attr){.kind = BERTH_ATTR_FLOATS, .count = 0, .floats = p->bounds};
  if (code != BERTH__CHAIN_clamp) return;
  p->bounds[0] = call->attrs[BERTH__CLAMP_MIN].f;
  p->bounds[1] = call->attrs[BERTH__CLAMP_MAX].f;
  p->numbers.count = 2;
}

/* ---- Items ---------------------------------------------------------------------------------------------------- */

#define ITEM 4096           /* elements */
#define TURNED_COLUMNS 1024 /* per item with long rows, when several rows must be processed together */
#define TURNED_ROWS 16
#define WORTH 20000 /* steps of elements that are worth a thread; loading and storing count as two steps */

/* An item is a part of a long row, or several short rows. */
typedef struct pieces {
  int64_t rows_each, columns_each, across; /* items per row */
  int64_t count;
} pieces;

static pieces elementwise_kernel_pieces_of(const chain_run *run) {
  pieces p = {.rows_each = 1, .columns_each = ITEM};
  if (run->columns == 0) return p;
  if (run->is_turned && run->columns > TURNED_COLUMNS) {
    p.columns_each = TURNED_COLUMNS;
    p.rows_each = TURNED_ROWS;
  } else if (run->columns <= ITEM) {
    p.columns_each = run->columns;
    p.rows_each = ITEM / run->columns;
  }
  p.across = (run->columns + p.columns_each - 1) / p.columns_each;
  p.count = (run->rows + p.rows_each - 1) / p.rows_each * p.across;
  return p;
}

static bool elementwise_kernel_prepare(chain_run *run, const berth_op_call *call, program *p) {
  read_program(p, call);
  return chain_prepare(run, call->in, call->n_in, call->out, &p->code, &p->numbers);
}

static int64_t chain_items(const berth_op_call *call) {
  program p;
  chain_run run;
  return elementwise_kernel_prepare(&run, call, &p) ? elementwise_kernel_pieces_of(&run).count : 0;
}

static int64_t chain_grain(const berth_op_call *call) {
  program p;
  chain_run run;
  if (!elementwise_kernel_prepare(&run, call, &p)) return 1;
  const pieces each = elementwise_kernel_pieces_of(&run);
  return WORTH / (each.rows_each * each.columns_each * (run.n_loops + 2)) + 1;
}

/* Neighbouring items are processed together. */
static void run_pieces(const chain_run *run, int64_t begin, int64_t end) {
  const pieces p = elementwise_kernel_pieces_of(run);
  for (int64_t i = begin, n; i < end; i += n) {
    const int64_t row = i / p.across * p.rows_each, column = i % p.across * p.columns_each;
    const int64_t beside = p.across - i % p.across;
    n = p.across == 1 || end - i < beside ? end - i : beside;
    const int64_t rows = p.across == 1 ? n * p.rows_each : p.rows_each;
    const int64_t columns = p.across == 1 ? p.columns_each : n * p.columns_each;
    const int64_t left_rows = run->rows - row, left_columns = run->columns - column;
    chain_rows(run, row, rows < left_rows ? rows : left_rows, column, columns < left_columns ? columns : left_columns);
  }
}

static berth_status run_chain(const berth_op_call *call, berth_error *err) {
  program p;
  chain_run run;
  (void)err;
  if (elementwise_kernel_prepare(&run, call, &p)) run_pieces(&run, call->begin, call->end);
  return BERTH_OK;
}

/* Elements of four bytes are moved as if they were f32. */
static berth_status run_where(const berth_op_call *call, berth_error *err) {
  berth_tensor in[] = {call->in[BERTH__WHERE_CONDITION], call->in[BERTH__WHERE_A], call->in[BERTH__WHERE_B]};
  berth_tensor out = call->out[0];
  berth_op_call moved = *call;
  in[BERTH__WHERE_A].type = in[BERTH__WHERE_B].type = out.type = BERTH_F32;
  moved.in = in;
  moved.out = &out;
  return run_chain(&moved, err);
}

/* ---- Which calls are taken --------------------------------------------------------------------------------------- */

/* f16 and bf16 are computed in f32 and rounded once. */
static bool takes_floats(const berth_op_call *call) {
  const berth_type type = call->out[0].type;
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16;
}

static bool takes_compared(const berth_op_call *call) {
  const berth_type type = call->in[0].type;
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16;
}

static bool takes_where(const berth_op_call *call) { return berth_type_size(call->out[0].type) == sizeof(float); }

#define ROW(op, which, function)                                                                       \
  {                                                                                                    \
    .name = #op, .code = BERTH__OP_##op, .takes = (which), .items = chain_items, .grain = chain_grain, \
    .run = (function)                                                                                  \
  }
#define FLOATS(op) ROW(op, takes_floats, run_chain)

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_elementwise)[] = {
    ROW(chain, NULL, run_chain),
    FLOATS(add),
    FLOATS(sub),
    FLOATS(mul),
    FLOATS(div),
    FLOATS(min),
    FLOATS(max),
    FLOATS(pow),
    FLOATS(clamp),
    FLOATS(neg),
    FLOATS(abs),
    FLOATS(relu),
    FLOATS(sqrt),
    FLOATS(rsqrt),
    FLOATS(reciprocal),
    FLOATS(sign),
    FLOATS(round),
    FLOATS(floor),
    FLOATS(ceil),
    FLOATS(exp),
    FLOATS(expm1),
    FLOATS(log),
    FLOATS(tanh),
    FLOATS(sigmoid),
    FLOATS(softplus),
    FLOATS(erf),
    FLOATS(gelu),
    FLOATS(gelu_tanh),
    FLOATS(silu),
    FLOATS(sin),
    FLOATS(cos),
    FLOATS(asin),
    FLOATS(acos),
    FLOATS(atan),
    FLOATS(sinh),
    FLOATS(cosh),
    FLOATS(asinh),
    FLOATS(acosh),
    FLOATS(atanh),
    ROW(eq, takes_compared, run_chain),
    ROW(ne, takes_compared, run_chain),
    ROW(lt, takes_compared, run_chain),
    ROW(le, takes_compared, run_chain),
    ROW(gt, takes_compared, run_chain),
    ROW(ge, takes_compared, run_chain),
    ROW(where, takes_where, run_where),
    {0},
};
