/* Llama, Mistral, SmolLM, Mixtral (with experts) and all that are built like them. */
#include "import/gguf/arch.h"
#include "import/gguf/parts.h"

void berth__arch_llama(berth__net *net) {
  berth__net_decoder(net, BERTH__ROPE_NEIGHBOURS, berth__net_real_or(net, ".attention.scale", 0));
}

/* Qwen 2 and 2.5 (biases of queries, keys and values) and Qwen 3 (norms of queries and keys); Phi 3 and 4 (one product
 * for queries, keys and values, one for gate and up, factors of frequencies that depend on the length of the context):
 * the tensors that a file has tell them apart. Files of Phi say a sliding window that the models were not made with;
 * llama.cpp leaves it out as well. */
void berth__arch_halves(berth__net *net) { berth__net_decoder(net, BERTH__ROPE_HALVES, 0); }
