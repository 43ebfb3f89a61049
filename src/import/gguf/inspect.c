/* What a GGUF file contains, for inspection. */
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "import/format.h"
#include "import/gguf/reader.h"
#include "import/gguf/types.h"

#define MAX_VALUES 8u     /* elements of an array that are shown */
#define MAX_ELEMENT 1024u /* bytes shown of a string in an array */

/* ---- Values as text ---- */

/* The fewest digits that give the same number. An f32 is parsed back as f32: as a double it would have 17 digits, most
 * of them meaningless. */
static void gguf_format_float(double value, bool is_wide, char text[BERTH__DOUBLE_TEXT]) {
  double shown = value;
  if (value > -1e9 && value < 1e9 && value == (double)(int64_t)value) {
    snprintf(text, BERTH__DOUBLE_TEXT, "%lld", (long long)value);
    return;
  }
  for (int precision = 1; !is_wide && precision <= 9; precision++) {
    snprintf(text, BERTH__DOUBLE_TEXT, "%.*g", precision, value);
    shown = strtod(text, NULL); /* in the same locale */
    if ((float)shown == (float)value) break;
  }
  berth__format_double(shown == shown ? shown : value, text);
}

static berth_status gguf_number_text(berth__summary *s, const berth__gguf_array *array, uint64_t i, const char **out,
                                     berth_error *err) {
  char text[BERTH__DOUBLE_TEXT];
  if (array->kind == BERTH__GGUF_F32 || array->kind == BERTH__GGUF_F64)
    gguf_format_float(berth__gguf_array_f64(array, i), array->kind == BERTH__GGUF_F64, text);
  else if (array->kind == BERTH__GGUF_BOOL)
    snprintf(text, sizeof text, "%s", berth__gguf_array_i64(array, i) != 0 ? "true" : "false");
  else if (array->kind == BERTH__GGUF_U64)
    snprintf(text, sizeof text, "%llu", (unsigned long long)berth__gguf_word(array->data + 8 * i, 8));
  else
    snprintf(text, sizeof text, "%lld", (long long)berth__gguf_array_i64(array, i));
  return berth__summary_text(s, text, strlen(text), out, err);
}

static berth_status gguf_element_text(berth__summary *s, const berth__gguf_array *array, uint64_t i, uint64_t most,
                                      const char **out, berth_error *err) {
  char text[64];
  if (array->kind == BERTH__GGUF_STRING) {
    const berth__gguf_string string = berth__gguf_array_string(array, i);
    return berth__summary_text(s, string.data, (size_t)(string.size < most ? string.size : most), out, err);
  }
  if (array->kind != BERTH__GGUF_ARRAY) return gguf_number_text(s, array, i, out, err);
  const berth__gguf_array inner = berth__gguf_array_array(array, i);
  snprintf(text, sizeof text, "%llu of %s", (unsigned long long)inner.count, berth__gguf_kind_name(inner.kind));
  return berth__summary_text(s, text, strlen(text), out, err);
}

/* ---- Keys and tensors ---- */

static berth_status gguf_show_key(berth__summary *s, const berth__gguf_key *key, berth_model_key *out,
                                  berth_error *err) {
  void *values;
  /* A single value is shown like an array of one. */
  berth__gguf_array array = {.kind = key->kind, .count = 1, .data = key->data};
  out->is_array = key->kind == BERTH__GGUF_ARRAY;
  if (out->is_array) array = key->array;
  if (key->kind == BERTH__GGUF_STRING)
    array.data = (const uint8_t *)key->text.data - 8; /* its length comes before it */
  out->type = berth__gguf_kind_name(array.kind);
  out->count = array.count;
  out->n_values = (size_t)(array.count < MAX_VALUES ? array.count : MAX_VALUES);
  BERTH__TRY(berth__summary_text(s, key->name, strlen(key->name), &out->name, err));
  BERTH__TRY(berth__summary_list(s, out->n_values, sizeof *out->values, &values, err));
  const char **texts = values;
  for (size_t i = 0; i < out->n_values; i++)
    BERTH__TRY(gguf_element_text(s, &array, i, out->is_array ? MAX_ELEMENT : UINT64_MAX, &texts[i], err));
  out->values = texts;
  return BERTH_OK;
}

static berth_status gguf_show_tensor(berth__summary *s, const berth__gguf_tensor *tensor, berth_model_tensor *out,
                                     berth_error *err) {
  char type[32];
  uint64_t elements = 1;
  berth__gguf_type_name(tensor->ggml_type, type);
  BERTH__TRY(berth__summary_text(s, tensor->name, strlen(tensor->name), &out->name, err));
  BERTH__TRY(berth__summary_text(s, type, strlen(type), &out->type, err));
  out->supported = tensor->type != BERTH_TYPE_NONE;
  out->rank = tensor->rank;
  memcpy(out->dim, tensor->dim, sizeof tensor->dim);
  out->size = tensor->size;
  for (uint32_t i = 0; i < tensor->rank; i++) elements *= (uint64_t)tensor->dim[i]; /* cannot overflow */
  return berth__summary_param(s, elements, tensor->size, err);
}

/* A key that is a string; if it is something else, *out is unchanged. */
static berth_status gguf_show_text(berth__summary *s, const berth__gguf *g, const char *key, const char **out,
                                   berth_error *err) {
  const berth__gguf_key *found = berth__gguf_find(g, key);
  if (found == NULL || found->kind != BERTH__GGUF_STRING) return BERTH_OK;
  return berth__summary_text(s, found->text.data, (size_t)found->text.size, out, err);
}

static berth_status gguf_show(berth__summary *s, const berth__gguf *g, berth_error *err) {
  void *keys, *tensors;
  berth_model_info *info = &s->info;
  info->ir_version = g->version;
  BERTH__TRY(berth__summary_list(s, g->n_keys, sizeof(berth_model_key), &keys, err));
  BERTH__TRY(berth__summary_list(s, g->n_tensors, sizeof(berth_model_tensor), &tensors, err));
  for (size_t i = 0; i < g->n_keys; i++) BERTH__TRY(gguf_show_key(s, &g->keys[i], &((berth_model_key *)keys)[i], err));
  for (size_t i = 0; i < g->n_tensors; i++)
    BERTH__TRY(gguf_show_tensor(s, &g->tensors[i], &((berth_model_tensor *)tensors)[i], err));
  for (uint32_t i = 0; g->n_files > 1 && i < g->n_files; i++)
    BERTH__TRY(berth__summary_file(s, g->files[i].name, strlen(g->files[i].name), err));
  info->keys = keys;
  info->n_keys = g->n_keys;
  info->n_metadata = g->n_keys;
  info->tensors = tensors;
  info->n_tensors = g->n_tensors;
  BERTH__TRY(gguf_show_text(s, g, "general.name", &info->name, err));
  BERTH__TRY(gguf_show_text(s, g, "general.architecture", &info->architecture, err));
  BERTH__TRY(gguf_show_text(s, g, "tokenizer.ggml.model", &info->tokenizer, err));
  return gguf_show_text(s, g, "tokenizer.chat_template", &info->chat_template, err);
}

berth_status berth__gguf_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err) {
  berth__gguf *g;
  berth__mapping shared = {
      .data = file->data, .size = file->size, .whole = file->whole}; /* still owned by the caller */
  memcpy(shared.name, file->name, sizeof shared.name);
  BERTH__TRY(berth__gguf_open(summary->ctx, summary->path, &shared, &g, err));
  const berth_status status = gguf_show(summary, g, err);
  berth__gguf_destroy(g);
  return status;
}
