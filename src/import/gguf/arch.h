/* The architectures of GGUF files: each is a row of the table in arch.c and a function. */
#ifndef BERTH_IMPORT_GGUF_ARCH_H
#define BERTH_IMPORT_GGUF_ARCH_H

#include "import/gguf/net.h"

typedef struct berth__arch {
  const char *name; /* general.architecture */
  void (*build)(berth__net *net);
  bool embeds;    /* it computes embeddings of texts; otherwise it generates */
  bool may_embed; /* it embeds if the file says how (.pooling_type); otherwise it generates */
} berth__arch;

/* By the file's general.architecture. Fails if the file is no model, or if its architecture is not supported. */
berth_status berth__arch_of(const berth__gguf *file, const berth__arch **out, berth_error *err);

/* Whether the model in this file embeds. */
bool berth__arch_embeds(const berth__arch *arch, const berth__gguf *file);

/* The default type of keys and values: half the bytes of f32, with almost no loss (docs/generation.md). */
#define BERTH__ARCH_CACHE BERTH_F16

typedef struct berth__arch_options {
  berth_type cache; /* BERTH_TYPE_NONE: BERTH__ARCH_CACHE */
  bool every_row;   /* logits of every row, not of one */
} berth__arch_options;
/* Makes the graph of a file; the graph keeps the file open. options NULL: the defaults. */
berth_status berth__arch_graph(berth__gguf *file, const berth__arch_options *options, berth_graph **out,
                               berth_error *err);

void berth__arch_llama(berth__net *net);
void berth__arch_halves(berth__net *net); /* like llama, with rope over halves */
void berth__arch_arcee(berth__net *net);
void berth__arch_qwen2moe(berth__net *net);
void berth__arch_seed_oss(berth__net *net);
void berth__arch_glm4(berth__net *net);
void berth__arch_glm4_moe(berth__net *net);
void berth__arch_ernie4_5_moe(berth__net *net);
void berth__arch_dots1(berth__net *net);
void berth__arch_hunyuan(berth__net *net);
void berth__arch_deepseek2(berth__net *net);
void berth__arch_lfm2(berth__net *net);
void berth__arch_phi3(berth__net *net);
void berth__arch_smollm3(berth__net *net);
void berth__arch_granite(berth__net *net);
void berth__arch_minicpm(berth__net *net);
void berth__arch_mistral3(berth__net *net);
void berth__arch_olmo2(berth__net *net);
void berth__arch_olmoe(berth__net *net);
void berth__arch_exaone4(berth__net *net);
void berth__arch_gpt2(berth__net *net);
void berth__arch_gptneox(berth__net *net);
void berth__arch_falcon(berth__net *net);
void berth__arch_phi2(berth__net *net);
void berth__arch_starcoder2(berth__net *net);
void berth__arch_nemotron(berth__net *net);
void berth__arch_stablelm(berth__net *net);
void berth__arch_command_r(berth__net *net);
void berth__arch_cohere2(berth__net *net);
void berth__arch_gemma(berth__net *net);
void berth__arch_gemma2(berth__net *net);
void berth__arch_gemma3(berth__net *net);
void berth__arch_gemma_embedding(berth__net *net);
void berth__arch_gpt_oss(berth__net *net);
void berth__arch_bert(berth__net *net);

#endif
