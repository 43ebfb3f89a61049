/* What a file contains: the public struct, and the memory that it points to. */
#ifndef BERTH_IMPORT_SUMMARY_H
#define BERTH_IMPORT_SUMMARY_H

#include <stdbool.h>

#include "base/map.h"

typedef struct berth__summary {
  berth_model_info info; /* must be first: berth_model_info_destroy frees everything */
  berth_context *ctx;
  const char *path; /* of the file; NULL: it is in memory */
  void **blocks;    /* strings and lists */
  size_t n_blocks, blocks_capacity;
  berth_model_op *ops;
  size_t n_ops, ops_capacity;
  const char **files;
  size_t n_files, files_capacity;
  berth__map seen; /* "domain:op" to its index in ops */
} berth__summary;

berth_status berth__summary_create(berth_context *ctx, const char *format, berth__summary **out, berth_error *err);
/* A copy of `size` characters; data may be NULL if size is 0. */
berth_status berth__summary_text(berth__summary *s, const void *data, size_t size, const char **out, berth_error *err);
berth_status berth__summary_list(berth__summary *s, size_t count, size_t element, void **out, berth_error *err);
/* Counts one more node of an op. *is_new: it is the first, and the caller says whether berth supports it. */
berth_status berth__summary_op(berth__summary *s, const char *domain, const char *name, berth_model_op **out,
                               bool *is_new, berth_error *err);
berth_status berth__summary_file(berth__summary *s, const void *name, size_t size, berth_error *err); /* listed once */
/* Adds one more param. */
berth_status berth__summary_param(berth__summary *s, uint64_t elements, uint64_t bytes, berth_error *err);
void berth__summary_finish(berth__summary *s); /* sorts and publishes the lists */

#endif
