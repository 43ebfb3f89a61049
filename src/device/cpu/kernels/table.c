/* The tables of this instruction set. kernel_tables.def, written by cmake/Kernels.cmake, has a row for every file of
 * this folder that defines the table BERTH__PER_ISA(berth__kernels_<file>). */
#include "device/cpu/kernels/vec.h"

#define BERTH__TABLE(name) extern const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_##name)[];
#include <kernel_tables.def>
#undef BERTH__TABLE

static const berth__cpu_kernel *const tables[] = {
#define BERTH__TABLE(name) BERTH__PER_ISA(berth__kernels_##name),
#include <kernel_tables.def>
#undef BERTH__TABLE
    NULL,
};

const berth__cpu_isa BERTH__PER_ISA(berth__isa) = {
    .name = BERTH__ISA_NAME,
    .lanes = VF_LANES,
    .panel = VF_PANEL,
    .has_dot8 = VI_HAS_DOT8,
    .tables = tables,
};
