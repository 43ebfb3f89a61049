/* File access: reading whole files, and writing through a berth_write_fn with all errors checked. */
#ifndef BERTH_TOOLS_OUT_H
#define BERTH_TOOLS_OUT_H

#include <stdbool.h>
#include <stdio.h>

#include "berth/berth.h"

typedef struct out_file {
  FILE *stream;
  const char *path; /* "-": stdout */
  int error;        /* the first errno; 0: none */
} out_file;

/* Return exit codes, and print errors. out_close removes a file that was not completely written. */
int out_open(const char *path, out_file *file);
berth_status out_write(void *file, const char *text, size_t size); /* a berth_write_fn; user is the out_file */
int out_close(out_file *file);
/* Whether a file can be written there (NULL: none is wanted), asked before the long work whose result it is. */
int out_check_place(const char *path);
/* Writes one file by a callback: `make` gets out_write and the file. */
typedef berth_status (*out_maker)(const void *subject, berth_write_fn write, void *user, berth_error *err);
int out_make(const char *path, out_maker make, const void *subject);

/* SVG or HTML by the file's extension; false (after printing a usage error) for anything else. */
bool out_picture_kind(const char *path, berth_report_kind *kind);

/* The contents of a file ("-": stdin), with a terminator that is not counted; free() it. */
int out_read_all(const char *path, char **data, size_t *size);

#endif
