/* Outputs whose extents are upper bounds until a run finds the true ones. */
#ifndef BERTH_TOOLS_BOUNDS_H
#define BERTH_TOOLS_BOUNDS_H

#include "dims.h"

/* bound: the graph of a plan, or any other that is bound. */
void bounds_print(const berth_graph *bound, const char *label); /* a line each, "<label>NAME i64[<=20,2]" */
void bounds_write_json(const berth_graph *bound, json *out);    /* "bounds": name, shape, and which axes are bounds */

/* The graph with these dimensions, and with 1 for those that are not known; NULL where it cannot be bound so. */
berth_graph *bounds_try(const berth_graph *graph, const dims *set);

#endif
