/* What a training writes: weights as safetensors, and checkpoints. A file is written beside its name, brought to disk
 * and then renamed over it, so that what has the name is whole at every moment. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "train.h"

typedef struct whole_file {
  FILE *stream;
  const char *path;
  char *beside;
} whole_file;

static int whole_open(const char *path, whole_file *file) {
  *file = (whole_file){.path = path, .beside = malloc(strlen(path) + 5)};
  if (file->beside == NULL) return cli_no_memory();
  sprintf(file->beside, "%s.new", path);
  file->stream = fopen(file->beside, "wb");
  if (file->stream != NULL) return CLI_OK;
  const int code = cli_failed("%s: %s", file->beside, strerror(errno));
  free(file->beside);
  return code;
}

static void whole_write(const whole_file *file, const void *data, size_t size) {
  if (size != 0) (void)fwrite(data, 1, size, file->stream); /* ferror remembers */
}

/* Renames where all went well; otherwise the file that there was stays. */
static int whole_close(whole_file *file, int code) {
  bool fits = fflush(file->stream) == 0 && !ferror(file->stream) && fsync(fileno(file->stream)) == 0;
  fits = fclose(file->stream) == 0 && fits;
  if (code == CLI_OK && (!fits || rename(file->beside, file->path) != 0))
    code = cli_failed("%s: %s", file->path, strerror(errno));
  if (code != CLI_OK) (void)remove(file->beside);
  free(file->beside);
  return code;
}

static const char *safetensors_type(berth_type type) {
  static const struct {
    berth_type type;
    const char *name;
  } names[] = {{BERTH_F32, "F32"}, {BERTH_F64, "F64"}, {BERTH_F16, "F16"},  {BERTH_BF16, "BF16"}, {BERTH_I8, "I8"},
               {BERTH_U8, "U8"},   {BERTH_I16, "I16"}, {BERTH_I32, "I32"},  {BERTH_I64, "I64"},   {BERTH_U16, "U16"},
               {BERTH_U32, "U32"}, {BERTH_U64, "U64"}, {BERTH_BOOL, "BOOL"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].type == type) return names[i].name;
  return NULL;
}

/* The params of the model, as they were before it was trained: their names, and how many bytes they have. */
static berth_value_info train_param(const training *t, uint32_t index) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  (void)berth_graph_value(t->model.graph, berth_graph_param_at(t->model.graph, index), &info, NULL);
  return info;
}

static int train_write_header(const training *t, const whole_file *file) {
  json out = JSON_INIT;
  uint64_t at = 0;
  json_open_object(&out, NULL);
  for (uint32_t i = 0; i < berth_graph_n_params(t->model.graph); i++) {
    const berth_value_info info = train_param(t, i);
    int64_t shape[BERTH_MAX_RANK];
    if (safetensors_type(info.type) == NULL) {
      json_free(&out);
      return cli_unsupported("param '%s' is %s, which safetensors has no type for", info.name,
                             berth_type_name(info.type));
    }
    for (uint32_t k = 0; k < info.shape.rank; k++) shape[k] = info.shape.dim[k].extent;
    const int64_t offsets[] = {(int64_t)at, (int64_t)(at + info.size)};
    json_open_object(&out, info.name);
    json_string(&out, "dtype", safetensors_type(info.type));
    json_ints(&out, "shape", info.shape.rank, shape);
    json_ints(&out, "data_offsets", 2, offsets);
    json_close_object(&out);
    at += info.size;
  }
  json_close_object(&out);
  json_end(&out);
  const size_t size = out.failed ? 0 : strlen(out.text); /* without its terminator */
  const uint64_t padded = (size + 7) / 8 * 8;
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(padded >> 8 * i);
  if (!out.failed) {
    whole_write(file, length, sizeof length);
    whole_write(file, out.text, size);
    whole_write(file, "       ", (size_t)(padded - size));
  }
  const int code = out.failed ? cli_no_memory() : CLI_OK;
  json_free(&out);
  return code;
}

/* Trained ones are states of the session; the others are as they were. */
static int train_write_param(training *t, const whole_file *file, uint32_t index) {
  const berth_value_info info = train_param(t, index);
  berth_error err = {BERTH_OK, ""};
  berth_value_info now = BERTH_VALUE_INFO_INIT;
  if (berth_graph_value(t->graph, berth_graph_find(t->graph, info.name), &now, &err) != BERTH_OK)
    return cli_report(&err);
  if (now.kind != BERTH_VALUE_STATE) {
    whole_write(file, info.data, (size_t)info.size);
    return CLI_OK;
  }
  void *data = malloc((size_t)info.size + 1);
  if (data == NULL) return cli_no_memory();
  const berth_status status = berth_session_state_read(t->session, info.name, data, (size_t)info.size, &err);
  if (status == BERTH_OK) whole_write(file, data, (size_t)info.size);
  free(data);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

int train_save_weights(training *t, const char *path) {
  whole_file file;
  int code = whole_open(path, &file);
  if (code != CLI_OK) return code;
  code = train_write_header(t, &file);
  for (uint32_t i = 0; i < berth_graph_n_params(t->model.graph) && code == CLI_OK; i++)
    code = train_write_param(t, &file, i);
  return whole_close(&file, code);
}

/* ---- Checkpoints: all states, which count the steps too ---- */

static const char checkpoint_magic[16] = "berth training 1";

int train_save_checkpoint(training *t, const char *path) {
  const uint64_t size = berth_session_state_size(t->session);
  berth_error err = {BERTH_OK, ""};
  whole_file file;
  void *data = malloc((size_t)size + 1);
  if (data == NULL) return cli_no_memory();
  int code = whole_open(path, &file);
  if (code == CLI_OK) {
    if (berth_session_state_save(t->session, data, (size_t)size, &err) != BERTH_OK) code = cli_report(&err);
    whole_write(&file, checkpoint_magic, sizeof checkpoint_magic);
    whole_write(&file, &t->wanted->seed, sizeof t->wanted->seed);
    if (code == CLI_OK) whole_write(&file, data, (size_t)size);
    code = whole_close(&file, code);
  }
  free(data);
  return code;
}

static int train_restore(training *t, const char *path, FILE *stream, void *data, size_t size) {
  char magic[sizeof checkpoint_magic];
  uint64_t seed;
  int64_t steps = 0;
  berth_error err = {BERTH_OK, ""};
  if (fread(magic, 1, sizeof magic, stream) != sizeof magic || memcmp(magic, checkpoint_magic, sizeof magic) != 0 ||
      fread(&seed, 1, sizeof seed, stream) != sizeof seed || fread(data, 1, size, stream) != size ||
      fgetc(stream) != EOF)
    return cli_failed("%s is no checkpoint of this training", path);
  if (seed != t->wanted->seed)
    return cli_failed("%s was made with --seed %" PRIu64 "; go on with that one", path, seed);
  if (berth_session_state_restore(t->session, data, size, &err) != BERTH_OK ||
      berth_session_state_read(t->session, "train.step", &steps, sizeof steps, &err) != BERTH_OK)
    return cli_report(&err);
  t->step = (uint64_t)steps;
  return CLI_OK;
}

int train_load_checkpoint(training *t, const char *path) {
  const size_t size = (size_t)berth_session_state_size(t->session);
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) return errno == ENOENT ? CLI_OK : cli_failed("%s: %s", path, strerror(errno));
  void *data = malloc(size + 1);
  const int code = data != NULL ? train_restore(t, path, stream, data, size) : cli_no_memory();
  free(data);
  fclose(stream);
  return code;
}
