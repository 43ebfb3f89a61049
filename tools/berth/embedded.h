/* The model that ships inside the binary: the files of examples/digits as arrays, made by the build. */
#ifndef BERTH_TOOLS_EMBEDDED_H
#define BERTH_TOOLS_EMBEDDED_H

#include <stddef.h>

extern const unsigned char berth_digits_graph[]; /* the graph's text form */
extern const size_t berth_digits_graph_size;
extern const unsigned char berth_digits_weights[]; /* safetensors */
extern const size_t berth_digits_weights_size;
extern const unsigned char berth_digits_samples[]; /* npy, f32[10,1,8,8], pixels in [0,1] */
extern const size_t berth_digits_samples_size;
extern const unsigned char berth_digits_labels[]; /* npy, i64[10] */
extern const size_t berth_digits_labels_size;

#endif
