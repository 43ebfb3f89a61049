/* Products with the experts of each row, with weights in blocks: x is quantised to bytes, as in product_blocks.c. With
 * few rows, an item is one use of an expert and a panel of its columns. With more rows, it is an expert and a panel,
 * which is unpacked once for all the rows that use it. */
#include "base/math.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "ops/operand.h"

#define FEW_ROWS 3
#define MOST_ROWS 512          /* rows quantised at a time; more are processed in turns */
#define LEAST_DEPTH 256        /* smaller sums are left to f32: nothing is gained */
#define WORTH_BYTES (96 << 10) /* bytes of weights from memory that are worth a thread */

typedef struct expert_blocks_job {
  const berth_op_call *call;
  const berth_tensor *x, *w, *which;
  int64_t uses, columns, depth, row_bytes, panels, room;
  bool has_own_rows; /* each use has a row of x of its own; otherwise the uses of a row share it */
  float *out;
  /* Of one expert: */
  int64_t n;
  int64_t *use; /* indices of its uses, with capacity `room` */
  float *tile;
  void *panel;
  void *bytes; /* rows of x */
} expert_blocks_job;

static int64_t expert_blocks_rows(const berth_op_call *call) { return call->out[0].dim[0]; }
static bool expert_blocks_is_few(const berth_op_call *call) { return expert_blocks_rows(call) <= FEW_ROWS; }

static bool expert_blocks_takes(const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__EXPERTS_WEIGHTS], *x = &call->in[BERTH__EXPERTS_X];
  return x->type == BERTH_F32 && berth__type_is_block(w->type) && blocks_has_dots(w->type) &&
         w->dim[2] >= LEAST_DEPTH && berth__is_contiguous(w) && berth__is_contiguous(x);
}

static int64_t expert_blocks_panels(const berth_op_call *call) {
  return (call->in[BERTH__EXPERTS_WEIGHTS].dim[1] + VF_PANEL - 1) / VF_PANEL;
}

static int64_t expert_blocks_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  const int64_t across = expert_blocks_panels(call);
  if (berth__count(out) == 0) return 0;
  return across * (expert_blocks_is_few(call) ? out->dim[0] * out->dim[1] : call->in[BERTH__EXPERTS_WEIGHTS].dim[0]);
}

static int64_t expert_blocks_row_bytes(const berth_tensor *w) {
  return (int64_t)berth__storage_size(berth_type_storage(w->type), (uint64_t)w->dim[2]);
}

static int64_t expert_blocks_grain(const berth_op_call *call) {
  return WORTH_BYTES / (expert_blocks_row_bytes(&call->in[BERTH__EXPERTS_WEIGHTS]) * VF_PANEL + 1) + 1;
}

/* ---- Scratch: rows of x; with many rows, those that use an expert, their results, and a panel ---- */

static int64_t expert_blocks_room(const berth_op_call *call) {
  const int64_t rows = expert_blocks_rows(call);
  return expert_blocks_is_few(call) ? 1 : rows < MOST_ROWS ? rows : MOST_ROWS;
}

static uint64_t expert_blocks_round(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

static uint64_t expert_blocks_x_size(const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__EXPERTS_WEIGHTS];
  const uint64_t few = blocks_x_bytes(1, w->dim[2], blocks_copies(w->type));
  const uint64_t many = blocks_x_bytes(expert_blocks_room(call), w->dim[2], blocks_copies_many(w->type));
  return expert_blocks_round(few > many ? few : many);
}

static uint64_t expert_blocks_scratch(const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__EXPERTS_WEIGHTS];
  const uint64_t room = (uint64_t)expert_blocks_room(call);
  if (expert_blocks_is_few(call)) return expert_blocks_x_size(call);
  return expert_blocks_x_size(call) + expert_blocks_round(room * sizeof(int64_t)) +
         expert_blocks_round(room * VF_PANEL * sizeof(float)) + blocks_panel_bytes(w->type, w->dim[2]);
}

static void expert_blocks_begin(expert_blocks_job *j, const berth_op_call *call) {
  const berth_tensor *w = &call->in[BERTH__EXPERTS_WEIGHTS], *x = &call->in[BERTH__EXPERTS_X];
  char *scratch = call->scratch;
  *j = (expert_blocks_job){.call = call,
                           .x = x,
                           .w = w,
                           .which = &call->in[BERTH__EXPERTS_WHICH],
                           .uses = call->out[0].dim[1],
                           .columns = w->dim[1],
                           .depth = w->dim[2],
                           .row_bytes = expert_blocks_row_bytes(w),
                           .panels = expert_blocks_panels(call),
                           .room = expert_blocks_room(call),
                           .has_own_rows = x->rank == 3,
                           .out = call->out[0].data,
                           .bytes = scratch};
  scratch += expert_blocks_x_size(call);
  j->use = (int64_t *)(void *)scratch;
  scratch += expert_blocks_round((uint64_t)j->room * sizeof *j->use);
  j->tile = (float *)(void *)scratch;
  j->panel = scratch + expert_blocks_round((uint64_t)j->room * VF_PANEL * sizeof *j->tile);
}

/* ---- Items ---- */

static const uint8_t *expert_blocks_weight(const expert_blocks_job *j, int64_t expert, int64_t column) {
  return (const uint8_t *)j->w->data + (expert * j->columns + column) * j->row_bytes;
}

static const float *expert_blocks_row(const expert_blocks_job *j, int64_t use) {
  return (const float *)j->x->data + (j->has_own_rows ? use : use / j->uses) * j->depth;
}

/* One row of x, in the order that the kernel for one row needs. */
static blocks_x expert_blocks_one(const expert_blocks_job *j, int64_t use) {
  const blocks_x x = blocks_x_in(j->bytes, 1, j->depth, blocks_copies(j->w->type));
  blocks_quantise(expert_blocks_row(j, use), 1, &x, 0);
  blocks_arrange(j->w->type, &x, 0);
  return x;
}

static void expert_blocks_dots(const expert_blocks_job *j, const blocks_x *x, int64_t use, int64_t expert,
                               int64_t column, int64_t end) {
  const blocks_row_x row = blocks_row_of(x, 0);
  blocks_dots(j->w->type, expert_blocks_weight(j, expert, column), j->row_bytes, end - column, &row, j->depth,
              j->out + use * j->columns + column);
}

static void expert_blocks_few(expert_blocks_job *j, int64_t begin, int64_t end) {
  blocks_x x = {0};
  int64_t ready = -1;
  for (int64_t item = begin; item < end; item++) {
    const int64_t use = item / j->panels, column = item % j->panels * VF_PANEL;
    const int64_t last = column + VF_PANEL < j->columns ? column + VF_PANEL : j->columns;
    if (use != ready) x = expert_blocks_one(j, ready = use);
    expert_blocks_dots(j, &x, use, berth__load_i64(j->which, use), column, last);
  }
}

/* The uses of an expert from `from` on, as many as there is room for; returns where to continue. */
static int64_t expert_blocks_find(expert_blocks_job *j, int64_t expert, int64_t from) {
  const int64_t all = berth__count(j->which);
  j->n = 0;
  for (; from < all && j->n < j->room; from++)
    if (berth__load_i64(j->which, from) == expert) j->use[j->n++] = from;
  return from;
}

/* Panels [first, last) of an expert, for the uses that were found. */
static void expert_blocks_panels_of(const expert_blocks_job *j, int64_t expert, int64_t first, int64_t last) {
  blocks_x x = blocks_x_in(j->bytes, j->n, j->depth, blocks_copies_many(j->w->type));
  x.has_starts = blocks_starts_many(j->w->type);
  for (int64_t i = 0; i < j->n; i++) {
    blocks_quantise(expert_blocks_row(j, j->use[i]), 1, &x, i);
    blocks_arrange_many(j->w->type, &x, i);
  }
  for (int64_t panel = first; panel < last; panel++) {
    const int64_t column = panel * VF_PANEL, left = j->columns - column, n = left < VF_PANEL ? left : VF_PANEL;
    blocks_product(j->w->type, expert_blocks_weight(j, expert, column), n, &x, j->n, j->panel, j->tile);
    for (int64_t i = 0; i < j->n; i++)
      memcpy(j->out + j->use[i] * j->columns + column, j->tile + i * VF_PANEL, (size_t)n * sizeof(float));
  }
}

static void expert_blocks_many(expert_blocks_job *j, int64_t expert, int64_t first, int64_t last) {
  const int64_t all = berth__count(j->which);
  for (int64_t from = 0; from < all;) {
    from = expert_blocks_find(j, expert, from);
    if (j->n > FEW_ROWS) {
      expert_blocks_panels_of(j, expert, first, last);
      continue;
    }
    for (int64_t i = 0; i < j->n; i++) {
      const blocks_x x = expert_blocks_one(j, j->use[i]);
      const int64_t end = last * VF_PANEL < j->columns ? last * VF_PANEL : j->columns;
      expert_blocks_dots(j, &x, j->use[i], expert, first * VF_PANEL, end);
    }
  }
}

static berth_status expert_blocks_check(const expert_blocks_job *j, berth_error *err) {
  const int64_t all = berth__count(j->which);
  for (int64_t use = 0; use < all; use++) {
    const int64_t expert = berth__load_i64(j->which, use);
    if (expert < 0 || expert >= j->w->dim[0])
      return berth__fail(err, BERTH_INVALID, "there is no expert %lld among %lld", (long long)expert,
                         (long long)j->w->dim[0]);
  }
  return BERTH_OK;
}

static berth_status expert_blocks_run(const berth_op_call *call, berth_error *err) {
  expert_blocks_job j;
  expert_blocks_begin(&j, call);
  BERTH__TRY(expert_blocks_check(&j, err));
  if (expert_blocks_is_few(call)) {
    expert_blocks_few(&j, call->begin, call->end);
    return BERTH_OK;
  }
  for (int64_t item = call->begin, next; item < call->end; item = next) {
    const int64_t expert = item / j.panels, first = item % j.panels;
    next = (expert + 1) * j.panels < call->end ? (expert + 1) * j.panels : call->end;
    expert_blocks_many(&j, expert, first, first + next - item);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_expert_blocks)[] = {
    {.name = "experts blocks",
     .code = BERTH__OP_expert_matmul,
     .takes = expert_blocks_takes,
     .items = expert_blocks_items,
     .grain = expert_blocks_grain,
     .scratch = expert_blocks_scratch,
     .run = expert_blocks_run},
    {0},
};
