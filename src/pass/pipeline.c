/* The order of the passes, and why it is this one. */
#include "pass/pass.h"

berth_status berth__pass_all(berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__pass_fold(graph, err));            /* first: constants need no other pass */
  BERTH__TRY(berth__pass_static_operands(graph, err)); /* so that reshapes and slices can be views */
  BERTH__TRY(berth__pass_same(graph, err));            /* after the passes that make nodes equal */
  BERTH__TRY(berth__pass_dead(graph, err));            /* last: the others leave unused nodes behind */
  return BERTH_OK;
}
