/* ONNX tensors as elements of berth's types. */
#ifndef BERTH_IMPORT_ONNX_TENSOR_H
#define BERTH_IMPORT_ONNX_TENSOR_H

#include "base/file.h"
#include "import/onnx/model.h"

/* The type for a TensorProto.DataType. UNSUPPORTED names it ("string", "complex64", ...). */
berth_status berth__onnx_type(int32_t data_type, berth_type *out, berth_error *err);

/* The same for messages: "f32", or ONNX's name of a type that berth does not have. */
const char *berth__onnx_type_text(int32_t data_type);

/* External data: files are mapped once and stay mapped until this is freed. */
typedef struct berth__onnx_files {
  berth_context *ctx;
  const char *model; /* the path of the model that refers to them; NULL: external data is refused */
  struct berth__onnx_file *items;
  size_t n_items, items_capacity;
  void **decoded; /* elements of weights that had to be decoded */
  size_t n_decoded, decoded_capacity;
} berth__onnx_files;
void berth__onnx_files_free(berth__onnx_files *files);
/* The pages of these bytes, if they are in one of the files, are not needed for now. */
berth_status berth__onnx_files_check(const berth__onnx_files *files, berth_error *err); /* berth__file_check of all */
void berth__onnx_files_rest(const berth__onnx_files *files, const void *data, size_t size);

/* The elements of a tensor. If they can be used as they are in the file, *data points there (perhaps unaligned) and
 * *owned is NULL; otherwise they were decoded into *owned, which the caller must free. */
berth_status berth__onnx_elements(const berth__onnx_tensor *tensor, berth__onnx_files *files, berth_type *type,
                                  const void **data, size_t *size, void **owned, berth_error *err);
/* A SparseTensorProto as a dense tensor: values, indices and dims. *owned is always set. */
berth_status berth__onnx_dense(berth_context *ctx, berth__span sparse, berth__onnx_tensor *shape, berth_type *type,
                               void **owned, size_t *size, berth_error *err);

#endif
