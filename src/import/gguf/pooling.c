/* One vector for a text, from the rows of its tokens. */
#include <stdio.h>

#include "import/gguf/parts.h"

typedef enum pooling { /* values of the key */
  POOLING_NONE = 0,
  POOLING_MEAN = 1,
  POOLING_FIRST = 2,
  POOLING_LAST = 3
} pooling;

/* The sum of the text's rows. It need not be a mean, since the result is normalised anyway. */
static berth_value pool_sum(berth__net *net, berth_value x) {
  const int64_t rows = 0;
  const berth_attr attrs[] = {berth_attr_ints("axes", &rows, 1), berth_attr_int("keepdims", 1)};
  const berth_value counts =
      berth__net_reshape(net, berth__net_two(net, "lt", net->steps, net->length), berth__net_rows(1));
  x = berth__net_add(net, "where", (const berth_value[]){counts, x, berth__net_number(net, 0)}, 3, NULL, 0);
  return berth__net_add(net, "reduce_sum", &x, 1, attrs, 2);
}

static berth_value pool_row(berth__net *net, berth_value x, bool is_last) {
  const berth_shape one = {.rank = 1, .dim = {{.extent = 1}}};
  const berth_value first = berth__net_cast(net, berth__net_number(net, 0), BERTH_I32),
                    step = berth__net_cast(net, berth__net_number(net, 1), BERTH_I32);
  const berth_value row = is_last ? berth__net_two(net, "sub", net->length, step) : first;
  return berth__net_two(net, "gather", x, berth__net_reshape(net, row, one));
}

static berth_value pool_rows(berth__net *net, berth_value x) {
  const int64_t kind = berth__net_whole_or(net, ".pooling_type", POOLING_MEAN);
  if (kind == POOLING_MEAN || net->status != BERTH_OK) return pool_sum(net, x);
  if (kind == POOLING_FIRST || kind == POOLING_LAST) return pool_row(net, x, kind == POOLING_LAST);
  net->status = berth__fail(net->err, BERTH_UNSUPPORTED, "a pooling of type %lld does not make one vector of a text",
                            (long long)kind);
  return BERTH_VALUE_NONE;
}

/* x divided by its length. */
static berth_value pool_unit(berth__net *net, berth_value x) {
  const int64_t columns = 1;
  const berth_attr attrs[] = {berth_attr_ints("axes", &columns, 1), berth_attr_int("keepdims", 1)};
  const berth_value square = berth__net_two(net, "mul", x, x);
  const berth_value sum = berth__net_add(net, "reduce_sum", &square, 1, attrs, 2);
  return berth__net_two(net, "div", x, berth__net_one(net, "sqrt", sum));
}

/* Layers that some models have after pooling: "dense_2" and "dense_3". */
static berth_value pool_dense(berth__net *net, berth_value x, const char *name) {
  char text[BERTH__NET_NAME];
  snprintf(text, sizeof text, "%s.weight", name);
  const berth__gguf_tensor *weight = berth__net_find(net, text);
  if (weight == NULL || net->status != BERTH_OK) return x;
  const int64_t inner = net->graph->values[x].shape.dim[1];
  return berth__net_linear(net, x, name, inner, weight->rank == 2 ? weight->dim[0] : 0);
}

void berth__net_pool(berth__net *net, berth_value x) {
  x = pool_dense(net, pool_rows(net, x), "dense_2");
  x = pool_dense(net, x, "dense_3");
  berth__net_output(net, "embedding", pool_unit(net, x));
}
