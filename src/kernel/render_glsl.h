/* The parts of the GLSL renderer. */
#ifndef BERTH_KERNEL_RENDER_GLSL_H
#define BERTH_KERNEL_RENDER_GLSL_H

#include "kernel/render.h"

/* render_glsl_tiles.c: for kernels with sums. Whether a device with these units has a form for them; and what is
 * written before the bindings, after them, before `main`, and at its beginning. */
bool berth__glsl_tiles_fit(const berth__kernel *kernel, const berth__render_desc *desc);
void berth__glsl_tiles_extensions(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
void berth__glsl_tiles_head(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
void berth__glsl_tiles_define(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);
void berth__glsl_tiles_open(const berth__kernel *kernel, const berth__render_desc *desc, berth__text *out);

#endif
