/* Losses, as nodes of a graph, from a model's output and the target. */
#ifndef BERTH_TOOLS_LOSS_H
#define BERTH_TOOLS_LOSS_H

#include "berth/berth.h"

/* The first output of a float type; BERTH_VALUE_NONE: none. */
berth_value loss_output(const berth_graph *graph);
/* The logits for cross entropy: skips a softmax that makes this value, because its logarithm may overflow. */
berth_value loss_logits(const berth_graph *graph, berth_value output);
/* The mean of -log p over the labels, in f32. Labels have extent 1 on the axis of the classes, which is the last. */
berth_status loss_cross_entropy(berth_graph *graph, berth_value logits, berth_value labels, uint32_t rank,
                                berth_value *loss, berth_error *err);
/* The mean squared error, in f32. */
berth_status loss_squares(berth_graph *graph, berth_value y, berth_value wanted, berth_value *loss, berth_error *err);

#endif
