/* Named dimensions of a model: from --dim, from the shapes of given inputs, or the smallest possible. */
#ifndef BERTH_TOOLS_DIMS_H
#define BERTH_TOOLS_DIMS_H

#include "args.h"
#include "berth/berth.h"
#include "json.h"

typedef struct dims {
  berth_dim *items;    /* one per named dimension of the graph; extent -1: unknown */
  const char **origin; /* origin of each extent, for messages */
  size_t n;
  berth_dim *fixed; /* those that --dim gave when the model was loaded: the graph has them as extents */
  size_t n_fixed;
} dims;

/* All return exit codes, and print errors. */
/* The options alone, for a model that needs them to be loaded: *out is to be freed by the caller. */
int dims_read(const arg_list *options, berth_dim **out);
/* `fixed` is what dims_read made, if the model was loaded with that, and otherwise NULL; owned from here on. */
int dims_open(const berth_graph *graph, const arg_list *options, berth_dim *fixed, dims *out);
void dims_close(dims *set);
/* An extent of an input's array, for the named dimension in the input's shape. */
int dims_infer(dims *set, const char *name, int64_t extent, const char *input);
/* Another option for a named dimension: it must not contradict a known extent. */
int dims_check_option(const dims *set, const char *name, const char *option, uint64_t extent);
/* Unknown ones become 1, or the smallest extents with which the graph can be bound, with a note. */
void dims_default(dims *set, const berth_graph *graph);
void dims_write_json(const dims *set, json *out);

#endif
