/* Shared by the files for control flow. */
#ifndef BERTH_IMPORT_ONNX_CONTROL_H
#define BERTH_IMPORT_ONNX_CONTROL_H

#include "import/onnx/converter.h"

/* Inlines one copy of an inner graph. n_in is at most the number of its inputs. */
berth_status berth__onnx_inner(berth__onnx_call *call, const berth__onnx_graph *graph, const berth_value *in,
                               size_t n_in, berth_value *out, size_t n_out, berth_error *err);

/* The same for the body of a Loop, which takes as many as it has; carried values may be sequences. */
berth_status berth__onnx_loop_body(berth__onnx_call *call, const berth__onnx_graph *body, size_t n_carried,
                                   const berth_value *in, berth_value *out, berth_error *err);

/* The graph of an attribute. */
berth_status berth__onnx_inner_graph(const berth__onnx_call *call, const char *name, const berth__onnx_graph **out,
                                     berth_error *err);

/* ---- Unrolled loops ---- */

#define BERTH__ONNX_FEW_ROUNDS 16 /* are unrolled at once */
#define BERTH__ONNX_MAX_ROUNDS 1000

/* Carried values, and the results of every iteration that are to be stacked. */
typedef struct berth__onnx_rounds {
  const berth__onnx_graph *body;
  int64_t count;               /* no more than can be unrolled */
  bool is_open;                /* whether there is another iteration depends on data */
  bool is_cut;                 /* there may be more */
  size_t n_carried, n_scanned; /* scanned: results that get one more entry in every iteration */
  berth_value *in, *out;       /* of the body */
  berth_value *scanned;        /* [n_scanned][count] */
} berth__onnx_rounds;

berth_status berth__onnx_rounds_create(berth__onnx_call *call, berth__onnx_rounds *r, berth_error *err);
void berth__onnx_rounds_free(berth__onnx_call *call, berth__onnx_rounds *r);
/* Whether so many iterations can be unrolled, and the graph is not too large yet. */
berth_status berth__onnx_rounds_check(const berth__onnx_call *call, int64_t count, berth_error *err);
/* Stacks the parts of all iterations on a new axis, in order or reversed. */
berth_status berth__onnx_stack(berth__onnx_call *call, berth_value *parts, int64_t count, int64_t axis,
                               bool is_reversed, berth_value *out, berth_error *err);
/* Whether a value added since then has an unknown dimension: it may depend on the iteration. */
bool berth__onnx_has_open_shape(const berth_graph *graph, size_t n_before);

/* ops_scan.c */
berth_status berth__onnx_scan(berth__onnx_call *call, berth_error *err);

/* ---- Other loops ---- */

/* A Loop or Scan that is not unrolled. */
typedef struct berth__onnx_loop {
  const berth__onnx_graph *body;
  berth_value trips, condition; /* BERTH_VALUE_NONE: no bound; true */
  const berth_value *first;     /* of carried values; in a Loop some may be sequences */
  size_t n_carried;
} berth__onnx_loop;

/* A slice of a scanned operand: what the body of a Scan reads of it in one iteration. */
typedef struct berth__onnx_slice {
  berth_value value;
  int64_t axis;
  bool is_reversed;
} berth__onnx_slice;

/* rolled.c: sets out[k] for every output of the node that is asked for. Scanned results are stacked on their first
 * axis; the caller moves it. slices: one per scanned operand of a Scan; a Loop has none. */
berth_status berth__onnx_roll_loop(berth__onnx_call *call, const berth__onnx_loop *loop, berth_error *err);
berth_status berth__onnx_roll_scan(berth__onnx_call *call, const berth__onnx_loop *loop,
                                   const berth__onnx_slice *slices, size_t n_slices, berth_error *err);

/* ops_control.c: stacked results have a row for each of the trips; if a condition may end the loop earlier, the rows
 * that no iteration has filled are cut off. */
berth_status berth__onnx_cut_rows(berth__onnx_call *call, berth_value *rows, berth_error *err);

#endif
