#include "import/summary.h"

#include <stdlib.h>

#include "base/math.h"

static const char what[] = "the summary of a model";

berth_status berth__summary_create(berth_context *ctx, const char *format, berth__summary **out, berth_error *err) {
  berth__summary *s = berth__alloc_zero(ctx, sizeof *s);
  *out = s;
  if (s == NULL) return berth__fail_nomem(err, what);
  s->ctx = ctx;
  s->info.struct_size = (uint32_t)sizeof s->info;
  s->info.format = format;
  s->info.name = s->info.producer = s->info.producer_version = "";
  s->info.architecture = s->info.tokenizer = s->info.chat_template = "";
  return BERTH_OK;
}

static berth_status import_summary_keep(berth__summary *s, void *block, berth_error *err) {
  if (block == NULL) return berth__fail_nomem(err, what);
  berth_status status = BERTH__RESERVE(s->ctx, s->blocks, s->blocks_capacity, s->n_blocks + 1, err);
  if (status != BERTH_OK) {
    berth__free(s->ctx, block);
    return status;
  }
  s->blocks[s->n_blocks++] = block;
  return BERTH_OK;
}

berth_status berth__summary_text(berth__summary *s, const void *data, size_t size, const char **out, berth_error *err) {
  char *text = berth__strndup(s->ctx, data != NULL ? data : "", size);
  *out = text;
  return import_summary_keep(s, text, err);
}

berth_status berth__summary_list(berth__summary *s, size_t count, size_t element, void **out, berth_error *err) {
  *out = berth__alloc_array_zero(s->ctx, count, element);
  return import_summary_keep(s, *out, err);
}

/* ---- Ops ---- */

static berth_status import_summary_join(berth__summary *s, const char *domain, const char *name, char **out,
                                        berth_error *err) {
  const size_t n = strlen(domain), m = strlen(name);
  char *key = berth__alloc(s->ctx, n + m + 2);
  *out = key;
  if (key == NULL) return berth__fail_nomem(err, what);
  memcpy(key, domain, n);
  key[n] = ':';
  memcpy(key + n + 1, name, m + 1);
  return BERTH_OK;
}

static berth_status add_op(berth__summary *s, const char *domain, const char *name, const char *key, berth_error *err) {
  berth_model_op op = {0};
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->ops, s->ops_capacity, s->n_ops + 1, err));
  BERTH__TRY(berth__summary_text(s, domain, strlen(domain), &op.domain, err));
  BERTH__TRY(berth__summary_text(s, name, strlen(name), &op.name, err));
  BERTH__TRY(berth__map_put(s->ctx, &s->seen, key, (uint32_t)s->n_ops, err));
  s->ops[s->n_ops++] = op;
  return BERTH_OK;
}

berth_status berth__summary_op(berth__summary *s, const char *domain, const char *name, berth_model_op **out,
                               bool *is_new, berth_error *err) {
  char *key;
  uint32_t at = (uint32_t)s->n_ops;
  BERTH__TRY(import_summary_join(s, domain, name, &key, err));
  *is_new = !berth__map_get(&s->seen, key, &at);
  const berth_status status = *is_new ? add_op(s, domain, name, key, err) : BERTH_OK;
  berth__free(s->ctx, key);
  BERTH__TRY(status);
  s->ops[at].count++;
  s->info.n_nodes++;
  *out = &s->ops[at];
  return BERTH_OK;
}

static int import_summary_by_count(const void *a, const void *b) {
  const berth_model_op *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : strcmp(x->domain, y->domain);
}

/* ---- Params ---- */

berth_status berth__summary_file(berth__summary *s, const void *name, size_t size, berth_error *err) {
  const char *text;
  for (size_t i = 0; i < s->n_files; i++)
    if (strlen(s->files[i]) == size && memcmp(s->files[i], name, size) == 0) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->files, s->files_capacity, s->n_files + 1, err));
  BERTH__TRY(berth__summary_text(s, name, size, &text, err));
  s->files[s->n_files++] = text;
  return BERTH_OK;
}

berth_status berth__summary_param(berth__summary *s, uint64_t elements, uint64_t bytes, berth_error *err) {
  s->info.n_params++;
  if (berth__add_u64(s->info.param_elements, elements, &s->info.param_elements) &&
      berth__add_u64(s->info.param_bytes, bytes, &s->info.param_bytes))
    return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "the sizes of the model's tensors do not fit in 64 bits");
}

/* ---- The whole ---- */

void berth__summary_finish(berth__summary *s) {
  if (s->n_ops != 0) qsort(s->ops, s->n_ops, sizeof *s->ops, import_summary_by_count);
  s->info.ops = s->ops;
  s->info.n_ops = s->n_ops;
  s->info.files = s->files;
  s->info.n_files = s->n_files;
}

void berth_model_info_destroy(berth_model_info *info) {
  berth__summary *s = (berth__summary *)info; /* its first member */
  if (s == NULL) return;
  berth_context *ctx = s->ctx;
  for (size_t i = 0; i < s->n_blocks; i++) berth__free(ctx, s->blocks[i]);
  berth__map_clear(ctx, &s->seen);
  berth__free(ctx, s->blocks);
  berth__free(ctx, s->ops);
  berth__free(ctx, (void *)s->files);
  berth__free(ctx, s);
}
