/* One of ONNX's own test cases: a folder with model.onnx and test_data_set_0/{input,output}_K.pb. */
#ifndef BERTH_TESTS_ONNX_CASE_H
#define BERTH_TESTS_ONNX_CASE_H

#include <stddef.h>

typedef enum onnx_verdict {
  ONNX_PASS = 0,
  ONNX_FAIL = 1,
  ONNX_UNSUPPORTED = 3
} onnx_verdict;

/* Runs the case in this process; message says what is wrong where it does not pass. */
onnx_verdict onnx_case_run(const char *folder, char *message, size_t message_size);
/* The same in a child process, so that a crash is a failure of this case alone. */
onnx_verdict onnx_case_run_apart(const char *folder, char *message, size_t message_size);

#endif
