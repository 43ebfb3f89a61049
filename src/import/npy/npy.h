/* Shared by reading and writing .npy files; npy.c describes the format. */
#ifndef BERTH_IMPORT_NPY_NPY_H
#define BERTH_IMPORT_NPY_NPY_H

#include "base/status.h"

#define BERTH__NPY_MAGIC "\x93NUMPY"
#define BERTH__NPY_MAGIC_SIZE 6

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BERTH__NPY_NATIVE_ORDER '>'
#else
#define BERTH__NPY_NATIVE_ORDER '<'
#endif

/* A descr without its byte order, and the type it stands for. */
typedef struct berth__npy_kind {
  const char *text;
  berth_type type;
} berth__npy_kind;

#define BERTH__NPY_KINDS 12
extern const berth__npy_kind berth__npy_kinds[BERTH__NPY_KINDS];

#endif
