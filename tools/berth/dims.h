/* Named dimensions of a model: from --dim, from the shapes of given inputs, or as small as possible. */
#ifndef BERTH_TOOLS_DIMS_H
#define BERTH_TOOLS_DIMS_H

#include "args.h"
#include "berth/berth.h"
#include "json.h"

typedef struct dims {
  berth_dim *items;    /* one for each named dimension of the graph; extent -1: not known yet */
  const char **origin; /* who said so, for messages */
  size_t n;
} dims;

/* All return exit codes, with an error printed. */
int dims_open(const berth_graph *graph, const arg_list *options, dims *out);
void dims_close(dims *set);
/* One extent of an input's array, where the input's shape has this name. */
int dims_infer(dims *set, const char *name, int64_t extent, const char *input);
/* What is not known becomes 1, or the least that the graph can be bound with, with a note. */
void dims_default(dims *set, const berth_graph *graph);
void dims_write_json(const dims *set, json *out);

#endif
