/* Which form a product of warpgroups takes, by what each would cost on a large GPU: a workgroup has a core to itself,
 * and they run in rounds over the cores. What a core copies for a step of the depth takes it longer than the products,
 * so large tiles are better, as long as they leave few cores idle in the last round. The numbers were measured on an
 * H200. */
#include "kernel/lower/tile.h"

#define CORES 132
#define MOST_SLOTS 6u
#define LEAST_THREADS 256u /* a device that takes these, and has warpgroups, takes 384 */
#define WINDOW_GROUPS 64   /* tiles of 128 x 128 from which on windows, whose places take work, are for warpgroups */
#define START 2500.0       /* nanoseconds until a workgroup multiplies, and from its last product to its end */
#define RESULT 0.06        /* nanoseconds that a result takes to be finished and stored */

/* step: nanoseconds per step of the depth. */
typedef struct cost_form {
  uint32_t rows, columns, threads;
  double step;
} cost_form;
static const cost_form cost_forms[] = {
    {128, 256, 256, 12.8}, {192, 256, 384, 20.5}, {128, 192, 256, 11.2}, {128, 128, 256, 9.5}, {64, 128, 128, 6.8}};

static double time_of_groups(int64_t groups, double depth, const cost_form *f) {
  const int64_t rounds = (groups + CORES - 1) / CORES;
  return (double)rounds * (depth * f->step + START + RESULT * f->rows * f->columns);
}

static double time_of(const berth__tile *tile, const cost_form *f, uint32_t sections) {
  const int64_t groups = berth__tile_groups(tile, f->rows, f->columns) * sections;
  return time_of_groups(groups, (double)berth__tile_count(&tile->depth) / sections, f);
}

double berth__tile_shape_cost(int64_t batch, int64_t rows, int64_t columns, int64_t depth) {
  double best = 0;
  for (size_t i = 0; i < sizeof cost_forms / sizeof *cost_forms; i++) {
    const cost_form *f = &cost_forms[i];
    const int64_t down = (rows + f->rows - 1) / f->rows, across = (columns + f->columns - 1) / f->columns;
    const double time = time_of_groups(batch * down * across, (double)depth, f);
    if (i == 0 || time < best) best = time;
  }
  return best;
}

/* Tiles of 16-bit numbers have no padding. */
static uint32_t slots_of(const berth__kernel_limits *limits, const cost_form *f) {
  const uint32_t room = limits->large_bytes > limits->tile_bytes ? limits->large_bytes : limits->tile_bytes;
  const uint32_t slots = room / ((f->rows + f->columns) * BERTH__ROW_BYTES);
  return slots < MOST_SLOTS ? slots : MOST_SLOTS;
}

/* Forms for single warps, with one workgroup on a core and with several. */
typedef struct cost_unit {
  int64_t rows, columns;
  double alone, each;
} cost_unit;
static const cost_unit float_units[] = {{128, 128, 97, 97}, {64, 64, 30, 30}, {32, 32, 9.5, 11}, {32, 16, 7, 7.5}};
static const cost_unit matrix_units[] = {{128, 128, 16, 12}, {64, 64, 11, 8}, {32, 32, 5.9, 5.9}, {32, 16, 4.2, 4.2}};
#define UNIT_START 700.0 /* nanoseconds per workgroup */

double berth__tile_units_cost(const berth__tile *tile, berth_compute kind, uint32_t sections) {
  const cost_unit *units = kind == BERTH_COMPUTE_F32 ? float_units : matrix_units;
  const double depth = (double)berth__tile_count(&tile->depth) / sections;
  double best = 0;
  for (size_t i = 0; i < sizeof matrix_units / sizeof *matrix_units; i++) {
    const int64_t groups = berth__tile_groups(tile, units[i].rows, units[i].columns) * sections;
    const int64_t rounds = (groups + CORES - 1) / CORES;
    const double time = (double)rounds * ((rounds > 1 ? units[i].each : units[i].alone) * depth + UNIT_START);
    if (i == 0 || time < best) best = time;
  }
  return best;
}

double berth__tile_warpgroup_cost(const berth__tile *tile, uint32_t sections, berth__matrix_form *out) {
  const berth__kernel_limits *limits = tile->l->limits;
  double best = 0;
  if (!limits->has_warpgroups || limits->group_size < LEAST_THREADS) return 0;
  if (tile->left.window != NULL && berth__tile_groups(tile, 128, 128) * sections < WINDOW_GROUPS) return 0;
  for (size_t i = 0; i < sizeof cost_forms / sizeof *cost_forms; i++) {
    const cost_form *f = &cost_forms[i];
    const double time = time_of(tile, f, sections);
    const uint32_t slots = slots_of(limits, f);
    if (slots < 3 || (best > 0 && time >= best)) continue;
    best = time;
    *out = (berth__matrix_form){.rows = f->rows,
                                .columns = f->columns,
                                .threads = f->threads,
                                .depth = BERTH__ROW_BYTES / 2,
                                .slots = slots,
                                .parts = 1,
                                .is_late = true};
  }
  return best;
}

/* ---- The order of workgroups ---- */

#define CACHED (20 << 20) /* bytes of one side that stay in a large GPU's cache while others pass through it */

static double side_bytes(const berth__tile *tile, const berth__tile_side *side, const berth__tile_space *lines) {
  return (double)berth__tile_count(lines) * (double)berth__tile_count(&tile->depth) *
         berth_type_storage(berth__l_storage_of(tile->l, side->operand)).bytes;
}

int64_t berth__tile_band(const berth__tile *tile, int64_t rows, int64_t columns) {
  const int64_t most = (berth__tile_count(&tile->rows) + rows - 1) / rows;
  const bool keeps_left = side_bytes(tile, &tile->left, &tile->rows) <= CACHED;
  if (keeps_left && side_bytes(tile, &tile->right, &tile->columns) > CACHED) return most;
  int64_t band = 1;
  while ((band + 1) * (band + 1) * rows <= CORES * columns) band++;
  return band < most ? band : most;
}
