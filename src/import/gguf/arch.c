#include "import/gguf/arch.h"

#include "import/format.h"

static const berth__arch archs[] = {
    {.name = "llama", .build = berth__arch_llama, .may_embed = true},
    {.name = "internlm2", .build = berth__arch_llama},
    {.name = "ernie4_5", .build = berth__arch_llama},
    {.name = "ernie4_5-moe", .build = berth__arch_ernie4_5_moe},
    {.name = "mistral3", .build = berth__arch_mistral3},
    {.name = "smollm3", .build = berth__arch_smollm3},
    {.name = "arcee", .build = berth__arch_arcee},
    {.name = "granite", .build = berth__arch_granite},
    {.name = "granitemoe", .build = berth__arch_granite},
    {.name = "minicpm", .build = berth__arch_minicpm},
    {.name = "glm4", .build = berth__arch_glm4},
    {.name = "glm4moe", .build = berth__arch_glm4_moe},
    {.name = "qwen2", .build = berth__arch_halves, .may_embed = true},
    {.name = "qwen2vl", .build = berth__arch_halves},
    {.name = "qwen3", .build = berth__arch_halves, .may_embed = true},
    {.name = "qwen3vl", .build = berth__arch_halves},
    {.name = "qwen2moe", .build = berth__arch_qwen2moe},
    {.name = "qwen3moe", .build = berth__arch_halves},
    {.name = "qwen3vlmoe", .build = berth__arch_halves},
    {.name = "dots1", .build = berth__arch_dots1},
    {.name = "bailingmoe2", .build = berth__arch_dots1},
    {.name = "hunyuan-dense", .build = berth__arch_hunyuan},
    {.name = "hunyuan-moe", .build = berth__arch_hunyuan},
    {.name = "deepseek2", .build = berth__arch_deepseek2},
    {.name = "lfm2", .build = berth__arch_lfm2},
    {.name = "lfm2moe", .build = berth__arch_lfm2},
    {.name = "seed_oss", .build = berth__arch_seed_oss},
    {.name = "exaone", .build = berth__arch_halves},
    {.name = "exaone4", .build = berth__arch_exaone4},
    {.name = "olmo2", .build = berth__arch_olmo2},
    {.name = "olmoe", .build = berth__arch_olmoe},
    {.name = "gemma", .build = berth__arch_gemma},
    {.name = "gemma2", .build = berth__arch_gemma2, .may_embed = true},
    {.name = "gemma3", .build = berth__arch_gemma3, .may_embed = true},
    {.name = "gemma-embedding", .build = berth__arch_gemma_embedding, .embeds = true},
    {.name = "phi2", .build = berth__arch_phi2},
    {.name = "phi3", .build = berth__arch_phi3},
    {.name = "gpt2", .build = berth__arch_gpt2},
    {.name = "gptneox", .build = berth__arch_gptneox},
    {.name = "falcon", .build = berth__arch_falcon},
    {.name = "starcoder2", .build = berth__arch_starcoder2},
    {.name = "stablelm", .build = berth__arch_stablelm},
    {.name = "nemotron", .build = berth__arch_nemotron},
    {.name = "command-r", .build = berth__arch_command_r},
    {.name = "cohere2", .build = berth__arch_cohere2},
    {.name = "gpt-oss", .build = berth__arch_gpt_oss},
    {.name = "bert", .build = berth__arch_bert, .embeds = true},
    {.name = "nomic-bert", .build = berth__arch_bert, .embeds = true},
};
#define N_ARCHS (sizeof archs / sizeof archs[0])

/* ---- Keeping the file open ---- */

static void arch_retain(void *file) { (void)berth__gguf_retain(file); }

static void arch_release(void *file) { berth__gguf_destroy(file); }

static void arch_rest(void *file, const void *data, size_t size) { berth__gguf_rest(file, data, size); }

static berth_status arch_check(void *file, berth_error *err) { return berth__gguf_check(file, err); }

/* ---- Graphs ---- */

/* Files that go with a model, and are none themselves. */
static berth_status arch_check_kind(const berth__gguf *file, berth_error *err) {
  static const struct {
    const char *type, *what;
  } kinds[] = {{"adapter", "a LoRA adapter, which changes the weights of a model: merge the two into one file first"},
               {"mmproj", "a projector for images or sound, which goes with a model of text: give that model's file"},
               {"vocab", "a vocabulary without a model"},
               {"imatrix", "statistics for quantising a model"}};
  const berth__gguf_key *key = berth__gguf_find(file, "general.type");
  for (size_t i = 0; key != NULL && key->kind == BERTH__GGUF_STRING && i < sizeof kinds / sizeof kinds[0]; i++)
    if (berth__gguf_is(key->text, kinds[i].type))
      return berth__fail(err, BERTH_UNSUPPORTED, "the file is no model, but %s", kinds[i].what);
  if (file->n_tensors > 0) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "the file has no tensors: it is a vocabulary without a model");
}

static berth_status arch_refuse(const berth__gguf *file, berth_error *err) {
  const berth__gguf_string name = file->architecture;
  if (name.size == 0) return berth__fail(err, BERTH_MALFORMED, "the file has no key general.architecture");
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "architecture '%.*s' is not supported; docs/generation.md lists the %zu that are, from %s to %s",
                     (int)(name.size < 64 ? name.size : 64), name.data, N_ARCHS, archs[0].name,
                     archs[N_ARCHS - 1].name);
}

berth_status berth__arch_of(const berth__gguf *file, const berth__arch **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(arch_check_kind(file, err));
  for (size_t i = 0; i < N_ARCHS; i++)
    if (berth__gguf_is(file->architecture, archs[i].name)) *out = &archs[i];
  return *out != NULL ? BERTH_OK : arch_refuse(file, err);
}

/* llama.cpp writes 0 where there is no pooling. */
bool berth__arch_embeds(const berth__arch *arch, const berth__gguf *file) {
  uint64_t pooling = 0;
  if (arch->embeds || !arch->may_embed) return arch->embeds;
  return berth__gguf_u64_or(file, ".pooling_type", 0, &pooling, NULL) == BERTH_OK && pooling != 0;
}

static berth_status arch_check_cache(const berth__arch_options *options, berth_error *err) {
  const berth_type type = options != NULL ? options->cache : BERTH_TYPE_NONE;
  if (type == BERTH_TYPE_NONE || type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16 || type == BERTH_Q8_0)
    return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "a cache may be f32, f16, bf16 or q8_0, not %s", berth_type_name(type));
}

berth_status berth__arch_graph(berth__gguf *file, const berth__arch_options *options, berth_graph **out,
                               berth_error *err) {
  const berth__arch *arch;
  berth_graph *graph;
  *out = NULL;
  BERTH__TRY(berth__arch_of(file, &arch, err));
  BERTH__TRY(arch_check_cache(options, err));
  BERTH__TRY(berth_graph_create(file->ctx, arch->name, &graph, err));
  const berth__keep keep = {
      .object = file, .retain = arch_retain, .release = arch_release, .rest = arch_rest, .check = arch_check};
  berth__net net = {.ctx = file->ctx,
                    .file = file,
                    .graph = graph,
                    .err = err,
                    .layer = -1,
                    .cache = BERTH__ARCH_CACHE,
                    .position = BERTH_VALUE_NONE,
                    .length = BERTH_VALUE_NONE,
                    .temperature = BERTH_VALUE_NONE};
  if (options != NULL && options->cache != BERTH_TYPE_NONE) net.cache = options->cache;
  net.embeds = berth__arch_embeds(arch, file);
  net.every_row = options != NULL && options->every_row;
  net.status = berth__graph_keep(graph, &keep, err);
  if (net.status == BERTH_OK) arch->build(&net);
  if (net.status != BERTH_OK) {
    berth_graph_destroy(graph);
    return net.status;
  }
  *out = graph;
  return BERTH_OK;
}

berth_status berth__gguf_load(const berth__load *in, berth_graph **out, berth_error *err) {
  berth__gguf *file;
  *out = NULL;
  berth_status status = berth__gguf_open(in->ctx, in->path, in->file, &file, err);
  if (status == BERTH_OK) {
    const berth__arch_options options = {.cache = in->kv};
    status = berth__arch_graph(file, &options, out, err);
    berth__gguf_destroy(file); /* the graph keeps it now */
  }
  return status != BERTH_OK && in->path != NULL ? berth__fail_within(err, status, "%s", in->path) : status;
}
