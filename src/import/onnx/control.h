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
