/* Outputs whose extents are upper bounds until a run determines the actual ones. */
#ifndef BERTH_TOOLS_BOUNDS_H
#define BERTH_TOOLS_BOUNDS_H

#include "dims.h"

/* bound: the graph of a plan, or any other bound graph. */
void bounds_print(const berth_graph *bound, const char *label); /* one line each, "<label>NAME i64[<=20,2]" */
void bounds_write_json(const berth_graph *bound, json *out);    /* "bounds": name, shape, and which axes are bounds */

/* The graph with these dimensions, and 1 for unknown ones; NULL if it cannot be bound. */
berth_graph *bounds_try(const berth_graph *graph, const dims *set);

#endif
