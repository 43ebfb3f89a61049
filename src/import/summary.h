/* What a file says of itself: the public struct, and the memory that it points to. */
#ifndef BERTH_IMPORT_SUMMARY_H
#define BERTH_IMPORT_SUMMARY_H

#include <stdbool.h>

#include "base/map.h"

typedef struct berth__summary {
  berth_model_info info; /* the first member: berth_model_info_destroy frees all */
  berth_context *ctx;
  const char *path; /* of the file; NULL: it is memory */
  void **blocks;    /* strings and lists */
  size_t n_blocks, blocks_capacity;
  berth_model_op *ops;
  size_t n_ops, ops_capacity;
  const char **files;
  size_t n_files, files_capacity;
  berth__map seen; /* "domain:op" to its place in ops */
} berth__summary;

berth_status berth__summary_create(berth_context *ctx, const char *format, berth__summary **out, berth_error *err);
/* A copy of `size` characters; data may be NULL when there are none. */
berth_status berth__summary_text(berth__summary *s, const void *data, size_t size, const char **out, berth_error *err);
berth_status berth__summary_list(berth__summary *s, size_t count, size_t element, void **out, berth_error *err);
/* One more node of an op. *is_new: it is the first, and the caller says whether berth supports it. */
berth_status berth__summary_op(berth__summary *s, const char *domain, const char *name, berth_model_op **out,
                               bool *is_new, berth_error *err);
berth_status berth__summary_file(berth__summary *s, const void *name, size_t size, berth_error *err); /* each once */
/* One more param. */
berth_status berth__summary_param(berth__summary *s, uint64_t elements, uint64_t bytes, berth_error *err);
void berth__summary_finish(berth__summary *s); /* sorts, and shows the lists */

#endif
