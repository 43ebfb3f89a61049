/* Pictures of a packing: time across, bytes up, one rectangle per buffer. Independent of graphs and plans. */
#ifndef BERTH_PLAN_DRAW_H
#define BERTH_PLAN_DRAW_H

#include "base/context.h"

typedef enum berth__draw_group {
  BERTH__DRAW_ACTIVATION = 0,
  BERTH__DRAW_WEIGHTS = 1,
  BERTH__DRAW_INPUT = 2,
  BERTH__DRAW_OUTPUT = 3,
  BERTH__DRAW_SCRATCH = 4,
  BERTH__DRAW_CONSTANT = 5,
  BERTH__DRAW_GUARD = 6,
  BERTH__DRAW_STATE = 7,
  BERTH__DRAW_GROUPS = 8
} berth__draw_group;

typedef struct berth__draw_rect {
  const char *name;   /* NULL: "#" and its number */
  const char *detail; /* a description, such as "conv f32[1, 16, 8, 8]"; NULL: none */
  uint64_t offset, size;
  int64_t birth, death; /* alive over [birth, death) */
  berth__draw_group group;
} berth__draw_rect;

typedef struct berth__drawing {
  const char *title;
  const berth__draw_rect *rects;
  size_t n_rects;
  uint64_t arena_size;
  uint64_t lower_bound;           /* of the whole arena; 0: the load */
  uint64_t total_unshared;        /* 0: the sum of the sizes, without guard bytes */
  int64_t begin, end;             /* the steps [begin, end); a plan's are [0, n_steps) */
  const char *const *step_labels; /* end - begin labels, such as the nodes' names; NULL: none */
} berth__drawing;

/* kind: BERTH_REPORT_SVG or BERTH_REPORT_HTML. The drawing's strings may contain anything: what is not valid in the
 * picture is escaped or replaced. Rectangles outside the arena or the steps are an error. */
berth_status berth__draw(berth_context *ctx, const berth__drawing *drawing, berth_report_kind kind,
                         berth_write_fn write, void *user, berth_error *err);

#endif
