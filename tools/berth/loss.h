/* Losses, as nodes of a graph: of what a model gives, and of what it should have given. */
#ifndef BERTH_TOOLS_LOSS_H
#define BERTH_TOOLS_LOSS_H

#include "berth/berth.h"

/* The first output of a float type; BERTH_VALUE_NONE: there is none. */
berth_value loss_output(const berth_graph *graph);
/* What cross entropy is taken of: a softmax that makes this value is left out, as its logarithm is exact where it
 * overflows. */
berth_value loss_logits(const berth_graph *graph, berth_value output);
/* The mean of -log p of each label, in f32. Labels have one element in the axis of the classes, which is the last. */
berth_status loss_cross_entropy(berth_graph *graph, berth_value logits, berth_value labels, uint32_t rank,
                                berth_value *loss, berth_error *err);
/* The mean of the squares of what is off, in f32. */
berth_status loss_squares(berth_graph *graph, berth_value y, berth_value wanted, berth_value *loss, berth_error *err);

#endif
