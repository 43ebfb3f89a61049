/* The table of formats. */
#include "import/format.h"

#include <stdio.h>
#include <strings.h>

#include "base/desc.h"
#include "import/weights.h"

static const berth__format formats[] = {
    {.name = "npy",
     .description = "an npy array",
     .probe = berth__npy_probe,
     .inspect = berth__npy_inspect,
     .is_array = true},
    {.name = "berth",
     .description = "a graph as text",
     .probe = berth__text_probe,
     .ending = ".berth",
     .load = berth__text_load,
     .inspect = berth__text_inspect},
    {.name = "safetensors",
     .description = "safetensors weights",
     .probe = berth__safetensors_probe,
     .ending = ".safetensors",
     .read_weights = berth__safetensors_read,
     .inspect = berth__weights_inspect},
    {.name = "gguf",
     .description = "a GGUF model",
     .probe = berth__gguf_probe,
     .ending = ".gguf",
     .load = berth__gguf_load,
     .read_weights = berth__gguf_read_weights,
     .inspect = berth__gguf_inspect},
    {.name = "onnx",
     .description = "an ONNX model",
     .probe = berth__onnx_probe,
     .ending = ".onnx",
     .is_weak = true,
     .load = berth__onnx_load,
     .fixes_dims = true,
     .inspect = berth__onnx_inspect},
};
#define N_FORMATS (sizeof formats / sizeof formats[0])

static bool ends_so(const berth__format *format, const char *path) {
  if (path == NULL || format->ending == NULL) return false;
  const size_t n = strlen(path), m = strlen(format->ending);
  return n > m && strcasecmp(path + n - m, format->ending) == 0;
}

/* By distinctive content first, then by name, then by weak content. */
static const berth__format *import_format_find(const berth__mapping *file, const char *path, bool of_weights) {
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < N_FORMATS; i++) {
      const berth__format *format = &formats[i];
      if (of_weights && format->read_weights == NULL) continue;
      if (round == 1 ? ends_so(format, path) : format->is_weak == (round == 2) && format->probe(file->data, file->size))
        return format;
    }
  return NULL;
}

const berth__format *berth__format_find(const berth__mapping *file, const char *path) {
  return import_format_find(file, path, false);
}

const berth__format *berth__format_for_weights(const berth__mapping *file, const char *path) {
  const berth__format *found = import_format_find(file, path, true);
  for (size_t i = 0; found == NULL && i < N_FORMATS; i++)
    if (formats[i].read_weights != NULL) found = &formats[i];
  return found;
}

berth_status berth__format_refuse(const berth__format *format, const char *path, const char *wanted, berth_error *err) {
  const char *file = path != NULL ? path : "the memory given";
  if (format == NULL) return berth__fail(err, BERTH_UNSUPPORTED, "%s is not in a format that berth reads", file);
  if (format->load == NULL && format->read_weights == NULL && format->inspect == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "%s is %s, which this build does not read yet", file,
                       format->description);
  return berth__fail(err, BERTH_UNSUPPORTED, "%s is %s: that format cannot contain %s", file, format->description,
                     wanted);
}

/* ---- For callers ---- */

static berth_status import_format_tell(const berth__format *format, berth_format_info *out, berth_error *err) {
  berth_format_info info = BERTH_FORMAT_INFO_INIT;
  info.name = format->name;
  info.description = format->description;
  info.parts = (format->load != NULL ? BERTH_FORMAT_GRAPH : 0u) |
               (format->read_weights != NULL ? BERTH_FORMAT_WEIGHTS : 0u) |
               (format->is_array ? BERTH_FORMAT_ARRAY : 0u);
  return BERTH__RESULT_WRITE(out, &info, "berth_format_info", err);
}

uint32_t berth_format_count(void) { return (uint32_t)N_FORMATS; }

berth_status berth_format_at(uint32_t index, berth_format_info *out, berth_error *err) {
  if (index >= N_FORMATS) return berth__fail(err, BERTH_INVALID, "there is no format number %u", index);
  return import_format_tell(&formats[index], out, err);
}

berth_status berth_file_format(const char *path, berth_format_info *out, berth_error *err) {
  berth__mapping file;
  if (path == NULL) return berth__fail(err, BERTH_INVALID, "berth_file_format needs a path");
  BERTH__TRY(berth__result_check(out, "berth_format_info", err));
  BERTH__TRY(berth__file_map(path, &file, err));
  const berth__format *format = berth__format_find(&file, path);
  const bool is_empty = file.size == 0;
  berth__file_unmap(&file);
  if (is_empty) return berth__fail(err, BERTH_MALFORMED, "%s is empty", path);
  return format != NULL ? import_format_tell(format, out, err) : berth__format_refuse(NULL, path, "anything", err);
}
