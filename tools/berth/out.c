#include "out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static const char *error_text(int error) { return error ? strerror(error) : "unknown error"; }

int out_open(const char *path, out_file *file) {
  *file = (out_file){stdout, path, 0};
  if (strcmp(path, "-") == 0) return CLI_OK;
  file->stream = fopen(path, "wb");
  if (!file->stream) return cli_failed("cannot write %s: %s", path, error_text(errno));
  return CLI_OK;
}

berth_status out_write(void *user, const char *text, size_t size) {
  out_file *file = user;
  errno = 0;
  if (file->error == 0 && fwrite(text, 1, size, file->stream) != size) file->error = errno ? errno : EIO;
  return file->error ? BERTH_IO : BERTH_OK;
}

static bool is_regular(FILE *stream) {
  struct stat status;
  return fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode);
}

/* Closes the file; removes it if it is incomplete. Returns false if closing failed. */
static bool end_file(out_file *file, bool whole) {
  if (file->stream == stdout) return true;
  bool regular = is_regular(file->stream);
  errno = 0;
  bool closed = fclose(file->stream) == 0;
  if (!closed && file->error == 0) file->error = errno ? errno : EIO;
  if (regular && !(whole && closed)) remove(file->path);
  return closed;
}

int out_close(out_file *file) {
  bool closed = end_file(file, file->error == 0);
  if (closed && file->error == 0) return CLI_OK;
  if (file->stream == stdout) return CLI_FAILED; /* main reports errors of stdout */
  return cli_failed("cannot write %s: %s", file->path, error_text(file->error));
}

int out_check_place(const char *path) {
  struct stat there;
  if (path == NULL) return CLI_OK;
  if (*path == '\0') return cli_usage("the name of a file to write is empty");
  if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
    return cli_failed("cannot write %s: %s", path, error_text(EISDIR));
  const char *slash = strrchr(path, '/');
  const size_t length = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
  char *folder = strndup(slash == NULL ? "." : path, length);
  if (folder == NULL) return cli_no_memory();
  const int code = access(folder, W_OK) == 0 ? CLI_OK : cli_failed("cannot write %s: %s", path, error_text(errno));
  free(folder);
  return code;
}

/* A file that exists may be writable where its folder is not, and so may a device. */
static int out_check_new(const char *path) {
  struct stat there;
  const bool exists = strcmp(path, "-") == 0 || (stat(path, &there) == 0 && !S_ISDIR(there.st_mode));
  return exists ? CLI_OK : out_check_place(path);
}

static int out_write_whole(const char *path, const char *data, size_t size) {
  out_file file;
  const int code = out_open(path, &file);
  if (code != CLI_OK) return code;
  (void)out_write(&file, data, size);
  return out_close(&file);
}

/* In memory first: where it cannot be made, the file that is there stays. */
int out_make(const char *path, out_maker make, const void *subject) {
  berth_error err = {BERTH_OK, ""};
  char *data = NULL;
  size_t size = 0;
  int code = out_check_new(path);
  if (code != CLI_OK) return code;
  out_file made = {open_memstream(&data, &size), path, 0};
  if (!made.stream) return cli_no_memory();
  const berth_status status = make(subject, out_write, &made, &err);
  if (fclose(made.stream) != 0 || made.error)
    code = cli_no_memory();
  else
    code = status == BERTH_OK ? out_write_whole(path, data, size) : cli_report(&err);
  free(data);
  return code;
}

bool out_picture_kind(const char *path, berth_report_kind *kind) {
  const char *dot = strrchr(path, '.');
  if (dot && strcasecmp(dot, ".svg") == 0) {
    *kind = BERTH_REPORT_SVG;
  } else if (dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0)) {
    *kind = BERTH_REPORT_HTML;
  } else {
    cli_usage("--picture takes a file that ends in .svg or .html, not '%s'", path);
    return false;
  }
  return true;
}

/* Enough for ten million buffers; an endless device has more. */
enum {
  most_bytes = 256 << 20
};

static int too_long(const char *path) {
  return cli_failed("cannot read %s: it is larger than %d bytes, the most that is read", path, (int)most_bytes);
}

static int read_stream(FILE *stream, const char *path, char **data, size_t *size) {
  struct stat status;
  size_t capacity = 1 << 16, used = 0;
  if (fstat(fileno(stream), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > most_bytes)
    return too_long(path);
  char *text = malloc(capacity);
  while (text) {
    if (used > most_bytes) {
      free(text);
      return too_long(path);
    }
    errno = 0;
    used += fread(text + used, 1, capacity - used - 1, stream);
    if (ferror(stream)) {
      free(text);
      return cli_failed("cannot read %s: %s", path, error_text(errno));
    }
    if (used + 1 < capacity) {
      text[used] = '\0';
      *data = text;
      *size = used;
      return CLI_OK;
    }
    char *grown = capacity <= SIZE_MAX / 2 ? realloc(text, capacity *= 2) : NULL;
    if (!grown) free(text);
    text = grown;
  }
  return cli_no_memory();
}

int out_read_all(const char *path, char **data, size_t *size) {
  if (strcmp(path, "-") == 0) return read_stream(stdin, "standard input", data, size);
  FILE *stream = fopen(path, "rb");
  if (!stream) return cli_failed("cannot read %s: %s", path, error_text(errno));
  int code = read_stream(stream, path, data, size);
  fclose(stream);
  return code;
}
