/* The part of the CUDA driver API that is used, declared here: nothing of NVIDIA's is needed to build berth. The driver
 * is opened at run time (library.c). */
#ifndef BERTH_DEVICE_CUDA_API_H
#define BERTH_DEVICE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef int berth__cu_result;
typedef int berth__cu_device;
typedef unsigned long long berth__cu_address; /* address in device memory; 0: none */
typedef struct berth__cu_context_s *berth__cu_context;
typedef struct berth__cu_stream_s *berth__cu_stream;
typedef struct berth__cu_event_s *berth__cu_event;
typedef struct berth__cu_module_s *berth__cu_module;
typedef struct berth__cu_function_s *berth__cu_function;
typedef struct berth__cu_graph_s *berth__cu_graph;
typedef struct berth__cu_node_s *berth__cu_node;
typedef struct berth__cu_exec_s *berth__cu_exec; /* a graph that can be launched */

/* Version 2; version 1 consists of the fields before `kernel`. */
typedef struct berth__cu_kernel_node {
  berth__cu_function function;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void **params;
  void **extra;
  void *kernel;
  berth__cu_context context;
} berth__cu_kernel_node;

/* An edge of a graph, since CUDA 12.3. */
typedef struct berth__cu_edge {
  unsigned char from_port, to_port, type, reserved[5];
} berth__cu_edge;
/* From a kernel whose workgroups have all released the next one, to a kernel that waits explicitly. */
#define BERTH__CU_PORT_PROGRAMMATIC 1u
#define BERTH__CU_EDGE_PROGRAMMATIC 1u

enum {
  BERTH__CU_SUCCESS = 0,
  BERTH__CU_OUT_OF_MEMORY = 2,
  BERTH__CU_DEINITIALIZED = 4,
  BERTH__CU_STUB_LIBRARY = 34,
  BERTH__CU_NO_DEVICE = 100,
  BERTH__CU_NO_BINARY_FOR_GPU = 209,
  BERTH__CU_ECC_UNCORRECTABLE = 214,
  BERTH__CU_NVLINK_UNCORRECTABLE = 220,
  BERTH__CU_UNSUPPORTED_PTX_VERSION = 222,
  BERTH__CU_CONTAINED = 226, /* a hardware error, after which the process can compute nothing any more */
  BERTH__CU_NOT_READY = 600,
  BERTH__CU_ILLEGAL_ADDRESS = 700,
  BERTH__CU_LAUNCH_TIMEOUT = 702,
  BERTH__CU_CONTEXT_IS_DESTROYED = 709,
  BERTH__CU_ASSERT = 710,
  BERTH__CU_HARDWARE_STACK_ERROR = 714, /* up to 719: a launch that failed */
  BERTH__CU_LAUNCH_FAILED = 719,
  BERTH__CU_MPS_CLIENT_TERMINATED = 810 /* by the server through which several processes share a GPU */
};

/* Device attributes. */
enum {
  BERTH__CU_MAX_THREADS_PER_BLOCK = 1,
  BERTH__CU_MAX_SHARED_PER_BLOCK = 8,
  BERTH__CU_WARP_SIZE = 10,
  BERTH__CU_CAPABILITY_MAJOR = 75,
  BERTH__CU_CAPABILITY_MINOR = 76,
  BERTH__CU_MAX_SHARED_OPTIN = 97 /* bytes that a launch may request */
};

/* Function attributes. */
enum {
  BERTH__CU_FUNCTION_DYNAMIC_SHARED = 8
};

#define BERTH__CU_STREAM_NON_BLOCKING 1u
#define BERTH__CU_EVENT_DISABLE_TIMING 2u
#define BERTH__CU_OLDEST 11040 /* graphs with event nodes that are created with flags */

typedef struct berth__cu_calls {
#define BERTH__CU_CALL(name, symbol, arguments) berth__cu_result(*name) arguments;
#define BERTH__CU_EITHER(name, symbol, older, arguments) berth__cu_result(*name) arguments;
#define BERTH__CU_MAYBE(name, symbol, arguments) berth__cu_result(*name) arguments;
#include "device/cuda/calls.def"
#undef BERTH__CU_MAYBE
#undef BERTH__CU_CALL
#undef BERTH__CU_EITHER
} berth__cu_calls;

#define BERTH__CUDA_TEXT 300u

/* The driver's library, opened and initialised on the first call; one for the whole process. NULL: `reason` says what
 * is missing and what to do. path NULL: the usual name. */
const berth__cu_calls *berth__cuda_library(const char *path, char reason[BERTH__CUDA_TEXT]);
/* A result as text: "out of memory (CUDA_ERROR_OUT_OF_MEMORY)". */
void berth__cuda_say(const berth__cu_calls *cu, berth__cu_result result, char text[BERTH__CUDA_TEXT]);

#endif
