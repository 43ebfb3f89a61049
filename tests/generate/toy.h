/* Models of every architecture with few and small layers, as GGUF files. Their weights are random numbers that follow
 * from the names of the tensors, so that llama.cpp can be asked about the same files: that is where the logits that the
 * tests expect come from. */
#ifndef BERTH_TESTS_TOY_H
#define BERTH_TESTS_TOY_H

#include <stdbool.h>
#include <stdint.h>

#include "berth/berth.h"

#define TOY_WIDTH 64
#define TOY_HEADS 4
#define TOY_KV_HEADS 2
#define TOY_HIDDEN 96
#define TOY_VOCABULARY 80

/* name: an architecture, with what is special after a slash: "llama", "llama/yarn". Fails the test where it has none of
 * that name. */
void toy_write(const char *path, const char *name);
/* All there are; NULL past the end. */
const char *toy_name(uint32_t index);

#endif
