/* Weights inside the library: shared by the handle and by every graph that uses them. The public functions (open,
 * count, at, find, destroy) serve for looking at them. */
#ifndef BERTH_IMPORT_WEIGHTS_H
#define BERTH_IMPORT_WEIGHTS_H

#include "base/context.h"

/* One more holder, to be undone with berth_weights_destroy. Holders on several threads are fine; what const promises
 * is the weights, not the count of those who hold them. Returns its argument. */
berth_weights *berth__weights_retain(const berth_weights *weights);
/* The file's pages behind these bytes are not needed for now. */
void berth__weights_rest(const berth_weights *weights, const void *data, size_t size);

#endif
