/* Epilogues in reference kernels: the chain after a product or a convolution, element by element in f64. Register 0 is
 * the result, followed by the extra operands, which broadcast against it. */
#ifndef BERTH_OPS_EPILOGUE_H
#define BERTH_OPS_EPILOGUE_H

#include "ops/chain.h"

/* Checks that the code is valid, and that the operands from `first` on broadcast to the shape of the result. */
berth_status berth__epilogue_check(const berth__infer *infer, uint32_t first, const berth_attr *code,
                                   const berth_attr *numbers, const berth__shape *out, berth_error *err);

typedef struct berth__epilogue {
  berth__chain chain; /* no steps: no epilogue */
  const berth_tensor *extra, *out;
  int64_t stride[BERTH__CHAIN_OPERANDS][BERTH_MAX_RANK]; /* of the extra operands over the axes of the result */
} berth__epilogue;
berth_status berth__epilogue_read(berth__epilogue *epilogue, const berth_op_call *call, uint32_t first,
                                  const berth_attr *code, const berth_attr *numbers, berth_error *err);
/* The finished value of the result's element `index` (row-major). */
double berth__epilogue_value(const berth__epilogue *epilogue, int64_t index, double value);

/* The attribute `adds` of product and conv_last: operand BERTH__EPILOGUE_SUM, of the result's shape, is added to the
 * sums before the epilogue, whose operands follow it. The result may overwrite it. */
#define BERTH__EPILOGUE_SUM 3u
#define BERTH__ADDS_ATTR \
  { .name = "adds", .kind = BERTH_ATTR_INT }
static inline uint32_t berth__epilogue_first(const berth_attr *adds) { return BERTH__EPILOGUE_SUM + (adds->i != 0); }
static inline uint32_t berth__epilogue_in_place(const berth_attr *adds) {
  return adds->i != 0 ? 1u << BERTH__EPILOGUE_SUM : 0;
}
/* Checks that operand `sum` is given and can be added to the result. */
berth_status berth__epilogue_check_added(const berth__infer *infer, uint32_t sum, const berth__shape *out,
                                         berth_error *err);
berth_status berth__epilogue_check_sum(const berth__infer *infer, const berth_attr *adds, const berth__shape *out,
                                       berth_error *err);

#endif
