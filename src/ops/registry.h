/* The table of ops: built-in ones from ops.def, and those registered with a context. */
#ifndef BERTH_OPS_REGISTRY_H
#define BERTH_OPS_REGISTRY_H

#include "ops/op.h"

#define BERTH_OP(name, tier, family, ...) extern const berth__family berth__family_##family;
#include "ops/ops.def"

#endif
