/* What the kernels of product and matmul share. */
#ifndef BERTH_DEVICE_CPU_KERNELS_PRODUCT_H
#define BERTH_DEVICE_CPU_KERNELS_PRODUCT_H

#include "device/cpu/kernels/gemm.h"

#define product_plan BERTH__PER_ISA(berth__product_plan)

/* How a call of product or matmul is computed. */
void product_plan(const berth_op_call *call, gemm *g);

#endif
