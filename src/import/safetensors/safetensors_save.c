/* Writing safetensors files; safetensors.c describes the format. Tensors with wide elements come first, so that every
 * one is aligned in the file. */
#include <stdio.h>

#include "base/desc.h"
#include "base/math.h"
#include "base/storage.h"
#include "base/text.h"
#include "base/whole.h"

static const char *safetensors_type_text(berth_type type) {
  static const struct {
    berth_type type;
    const char *text;
  } types[] = {{BERTH_F32, "F32"}, {BERTH_F64, "F64"}, {BERTH_F16, "F16"},  {BERTH_BF16, "BF16"}, {BERTH_I8, "I8"},
               {BERTH_U8, "U8"},   {BERTH_I16, "I16"}, {BERTH_I32, "I32"},  {BERTH_I64, "I64"},   {BERTH_U16, "U16"},
               {BERTH_U32, "U32"}, {BERTH_U64, "U64"}, {BERTH_BOOL, "BOOL"}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].type == type) return types[i].text;
  return NULL;
}

static berth_status safetensors_check(const berth_weight_info *w, berth_error *err) {
  uint64_t size = 0;
  if (w->name == NULL) return berth__fail(err, BERTH_INVALID, "a tensor has no name");
  if (strcmp(w->name, "__metadata__") == 0)
    return berth__fail(err, BERTH_INVALID, "a tensor cannot be called '__metadata__': safetensors keeps notes there");
  if (safetensors_type_text(w->type) == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "tensor '%s' is %s, which safetensors has no type for", w->name,
                       berth_type_name(w->type));
  if (w->rank > BERTH_MAX_RANK) return berth__fail(err, BERTH_INVALID, "tensor '%s' has too many axes", w->name);
  for (uint32_t i = 0; i < w->rank; i++)
    if (w->dim[i] < 0) return berth__fail(err, BERTH_INVALID, "extent %u of tensor '%s' is negative", i, w->name);
  if (!berth__dense_bytes(w->rank, w->dim, w->type, &size) || size != w->size)
    return berth__fail(err, BERTH_INVALID, "tensor '%s' has %llu bytes, which is not what its shape and type have",
                       w->name, (unsigned long long)w->size);
  if (w->data == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "tensor '%s' has no data", w->name);
  return BERTH_OK;
}

/* The caller's structs, possibly from another version, in file order. */
static berth_status safetensors_collect(const berth_weight_info *given, uint32_t n, berth_weight_info *out,
                                        berth_error *err) {
  uint32_t count = 0;
  for (size_t bytes = 8; bytes != 0; bytes /= 2)
    for (uint32_t i = 0; i < n; i++) {
      const char *at = (const char *)given + (size_t)i * given->struct_size;
      berth_weight_info one = BERTH_WEIGHT_INFO_INIT;
      BERTH__TRY(BERTH__DESC_COPY(&one, (const berth_weight_info *)(const void *)at, "berth_weight_info", err));
      if (bytes == 8) BERTH__TRY(safetensors_check(&one, err));
      if (berth_type_size(one.type) == bytes) out[count++] = one;
    }
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < i; k++)
      if (strcmp(out[i].name, out[k].name) == 0)
        return berth__fail(err, BERTH_INVALID, "two tensors are called '%s'", out[i].name);
  return BERTH_OK;
}

static void safetensors_string(berth__text *text, const char *string) {
  berth__text_add(text, "\"", 1);
  for (const char *c = string; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      berth__text_printf(text, "\\%c", *c);
    else if ((unsigned char)*c < 0x20)
      berth__text_printf(text, "\\u%04x", (unsigned)*c);
    else
      berth__text_add(text, c, 1);
  }
  berth__text_add(text, "\"", 1);
}

static void safetensors_header(berth__text *text, const berth_weight_info *weights, uint32_t n) {
  uint64_t at = 0;
  berth__text_add(text, "{", 1);
  for (uint32_t i = 0; i < n; i++) {
    const berth_weight_info *w = &weights[i];
    if (i != 0) berth__text_add(text, ",", 1);
    safetensors_string(text, w->name);
    berth__text_printf(text, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_type_text(w->type));
    for (uint32_t k = 0; k < w->rank; k++) berth__text_printf(text, "%s%lld", k != 0 ? "," : "", (long long)w->dim[k]);
    const uint64_t end = at + w->size;
    berth__text_printf(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)end);
    at = end;
  }
  berth__text_add(text, "}", 1);
  while (text->status == BERTH_OK && text->size % 64 != 56)
    berth__text_add(text, " ", 1); /* with the length before it: a multiple of 64 */
}

static berth_status safetensors_write(berth_context *ctx, const char *path, const berth_weight_info *weights,
                                      uint32_t n, berth_error *err) {
  berth__whole file;
  berth__text text;
  unsigned char length[8];
  berth__text_init(&text, ctx, NULL, NULL);
  safetensors_header(&text, weights, n);
  berth_status status = berth__text_finish(&text, err);
  if (status == BERTH_OK) status = berth__whole_open(ctx, path, &file, err);
  if (status == BERTH_OK) {
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)text.size >> 8 * i);
    berth__whole_write(&file, length, sizeof length);
    berth__whole_write(&file, text.data, text.size);
    for (uint32_t i = 0; i < n; i++) berth__whole_write(&file, weights[i].data, (size_t)weights[i].size);
    status = berth__whole_close(&file, BERTH_OK, err);
  }
  berth__text_free(&text);
  return status;
}

berth_status berth_weights_save(berth_context *ctx, const char *path, const berth_weight_info *weights, uint32_t n,
                                berth_error *err) {
  if (ctx == NULL || path == NULL || (weights == NULL && n != 0))
    return berth__fail(err, BERTH_INVALID, "berth_weights_save needs a context, a path and tensors");
  berth_weight_info *all = berth__alloc_array(ctx, n, sizeof *all);
  if (all == NULL) return berth__fail_nomem(err, "writing weights");
  berth_status status = safetensors_collect(weights, n, all, err);
  if (status != BERTH_OK)
    status = berth__fail_within(err, status, "%s", path);
  else
    status = safetensors_write(ctx, path, all, n, err);
  berth__free(ctx, all);
  return status;
}
