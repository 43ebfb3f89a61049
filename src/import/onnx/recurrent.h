/* LSTM, GRU and RNN nodes, for the domains that have variants of them. */
#ifndef BERTH_IMPORT_ONNX_RECURRENT_H
#define BERTH_IMPORT_ONNX_RECURRENT_H

#include "import/onnx/convert.h"

/* Emits lstm, gru, rnn or qlstm with the node's attributes and sets the node's outputs. The operands are those of
 * ONNX's op, or berth's; they need not be the node's own. */
berth_status berth__onnx_recurrent_layer(berth__onnx_call *call, const char *op, const berth_value *in, size_t n_in,
                                         berth_error *err);

#endif
