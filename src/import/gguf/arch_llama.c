/* Llama, Mistral, SmolLM, Mixtral (with experts) and all that are built like them. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_llama(berth__net *net) {
  berth__net_decoder(net, BERTH__ROPE_NEIGHBOURS, berth__net_real_or(net, ".attention.scale", 0), 0);
}

/* Qwen 2 and 2.5 (biases of queries, keys and values) and Qwen 3 (norms of queries and keys): the tensors that a file
 * has tell them apart. */
void berth__arch_halves(berth__net *net) { berth__net_decoder(net, BERTH__ROPE_HALVES, 0, 0); }

/* Phi 3 and 4: one product for queries, keys and values, one for gate and up, factors of frequencies that depend on the
 * length of the context. All layers of the models for short contexts have a sliding window, as in transformers;
 * llama.cpp (b10361) leaves it out and warns. Those for long ones say a window that is longer than their context. */
void berth__arch_phi3(berth__net *net) {
  const int64_t window = berth__net_whole_or(net, ".attention.sliding_window", 0);
  const int64_t context = berth__net_whole_or(net, ".context_length", INT32_MAX);
  berth__net_decoder(net, BERTH__ROPE_HALVES, 0, window < context ? window : 0);
}
