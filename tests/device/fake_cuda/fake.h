/* A library that emulates NVIDIA's driver and NVRTC, for machines without either: memory is the host's, streams are
 * lists that are executed when queried, graphs run in any order that their edges allow, and kernels are the rendered
 * CUDA C, compiled as C by this machine's compiler (shim.h). Any call can be made to fail.
 *
 * Metal is compiled as C++ in the same way, for kernels only (shim_metal.h).
 *
 * FAKE_CUDA_DIR       a folder for compiled kernels; required
 * FAKE_CUDA_COLLECT   set: sources are only collected there, and nothing runs. The next process compiles all of them
 * together, which takes a fraction of the time
 * FAKE_CUDA_DEVICES   number of GPUs; 2
 *   FAKE_CUDA_VERSION   of the driver; 13000
 * FAKE_CUDA_INIT      result of cuInit; 0
 *   FAKE_CUDA_ARCH      the newest architecture that NVRTC knows; 90
 * FAKE_CUDA_SECOND    compute capability of all GPUs but the first; 90
 * FAKE_NVRTC_OLD      set: NVRTC lacks the option that keeps it from changing the stack limit */
#ifndef BERTH_TESTS_DEVICE_FAKE_CUDA_H
#define BERTH_TESTS_DEVICE_FAKE_CUDA_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct fake_cuda {
  _Atomic uint64_t calls;          /* calls that may fail, so far */
  _Atomic uint64_t fail_at;        /* 1: the next one fails, 2: the one after it, ...; 0: none. Counts down */
  _Atomic int fail_with;           /* the result of that call */
  _Atomic uint64_t failed;         /* calls that were made to fail */
  char failed_call[40];            /* the last of them */
  char architecture[40];           /* the last target: "sm_90" */
  _Atomic uint64_t made;           /* objects and allocations so far */
  _Atomic int64_t live;            /* of these, live ones */
  _Atomic uint64_t compiled;       /* compiled programs so far */
  _Atomic uint64_t launches;       /* graph launches so far */
  _Atomic uint64_t early_edges;    /* programmatic edges so far */
  _Atomic uint64_t memory;         /* bytes of a GPU */
  _Atomic int hangs;               /* streams never complete */
  _Atomic int refuses_source;      /* no program compiles */
  _Atomic int wrong_barriers;      /* some threads of a group reached a barrier, and others did not */
  _Atomic int current;             /* contexts pushed and not popped */
  _Atomic uint64_t default_events; /* recorded on the default stream so far */
} fake_cuda;

/* Found with dlsym: "fake_cuda_state". */
extern fake_cuda fake_cuda_state;

/* ---- Shared by the two files, and for tests that run kernels without a device (also found with dlsym) ---- */

#define FAKE_EXPORT __attribute__((visibility("default")))
typedef struct fake_kernel fake_kernel;
FAKE_EXPORT fake_kernel *fake_kernel_load(const char *source); /* CUDA C, or Metal; NULL: it does not compile */
FAKE_EXPORT void fake_kernel_free(fake_kernel *kernel);
int fake_kernel_has_entry(const fake_kernel *kernel, const char *name);
void fake_kernel_allow_shared(fake_kernel *kernel, unsigned bytes);
unsigned fake_kernel_shared(const fake_kernel *kernel);
void fake_kernel_let_await(fake_kernel *kernel); /* its target supports kernels that wait */
int fake_kernel_awaits(const fake_kernel *kernel);
unsigned fake_kernel_n_params(const fake_kernel *kernel);
/* 0, or a result of the driver. */
FAKE_EXPORT int fake_kernel_run(const fake_kernel *kernel, unsigned groups, unsigned threads, void **params);
int fake_fails(const char *call); /* whether the calling function has to fail */

#endif
