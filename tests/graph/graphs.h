/* What the tests of the graph share. */
#ifndef BERTH_TESTS_GRAPHS_H
#define BERTH_TESTS_GRAPHS_H

#include "graph/graph.h"
#include "support.h"

/* The text form; free with test_buffer_free. */
test_buffer graph_text(const berth_graph *graph);
/* Parses, or fails the test with the message. */
berth_graph *graph_parse(berth_context *ctx, const char *text);
/* Fails unless parsing gives this status and a message with this part. */
void graph_parse_fails(berth_context *ctx, const char *text, berth_status want, const char *part);
/* Prints, parses and compares; also that printing again gives the same text. */
void graph_round_trip(const berth_graph *graph);
/* "2, n, 3" is a shape; names must stay valid as long as the shape is used. */
berth_shape graph_shape(const char *text);

#endif
