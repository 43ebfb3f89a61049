/* `run --check`: runs the same model with the reference kernels and without sharing of bytes, and compares node by
 * node.
 *
 * An element differs if |got - want| > abs + rel * |want|, with abs and rel 1e-4 and 1e-3 for f32 and f64, 1e-3 and
 * 4e-3 for f16, 1e-2 and 2e-2 for bf16; u8 and i8, which fused quantisation may round the other way, may differ by 1;
 * other integers and bool must be equal. NaN equals NaN. The reported relative difference is |got - want| / max(|want|,
 * 1e-3). */
#ifndef BERTH_TOOLS_CHECK_H
#define BERTH_TOOLS_CHECK_H

#include "json.h"
#include "runner.h"

#define CHECK_DETAILS                                                                                          \
  "--check also runs the reference kernels, with no memory shared, and compares every output and every node\n" \
  "that is not fused (of fused nodes, the last). An element may differ by 1e-4 + 1e-3 * |reference| (f16:\n"   \
  "1e-3 + 4e-3, bf16: 1e-2 + 2e-2, of |reference| or, where that is more, of the usual size of the value's\n"  \
  "elements, also for f32 computed from them; u8 and i8: 1); other integers must be equal.\n"

typedef struct check_node {
  const char *name, *op;
  bool compared; /* false: not made by a kernel: a view, part of a fused node, a branch that was not taken */
  bool is_view;
  berth_type noise; /* the least precise of f16 and bf16 on the way to it; BERTH_TYPE_NONE: neither */
  double max_abs, max_rel;
  double excess; /* the largest difference relative to the tolerance; above 1 fails */
} check_node;

typedef struct check_result {
  check_node *nodes; /* by node number */
  uint32_t n;
  uint32_t worst; /* UINT32_MAX: nothing was compared */
  double max_abs, max_rel;
  bool ok;
  berth_session *reference; /* owns the names */
} check_result;

/* Returns an exit code for whether the comparison was possible; the verdict is in out->ok. Close either way. */
int check_run(runner *r, check_result *out);
void check_print(const check_result *result);
void check_write_json(const check_result *result, json *out);
void check_close(check_result *result);

#endif
