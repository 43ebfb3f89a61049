/* One row for each way to split. The patterns are those of the models' own tokenizers, as implemented in llama.cpp. */
#include <string.h>

#include "text/pretoken.h"

#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define MARKED_WORD "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+"
#define REST " ?[^\\s\\p{L}\\p{N}]+"
#define LINES "\\l"
#define SPACES "\\s+\\>|\\s+"
#define ASCII_SIGN "[!-/:-@\\[-`{-~]"

#define GPT2 "\\C| ?\\p{L}+| ?\\p{N}+|" REST "|" SPACES
#define LLAMA3 "\\c|" WORD "|\\p{N}{1,3}|" REST "[\\r\\n]*|" LINES "|" SPACES
#define QWEN2 "\\c|" WORD "|\\p{N}|" REST "[\\r\\n]*|" LINES "|" SPACES
#define QWEN35 "\\c|" MARKED_WORD "|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES "|" SPACES
#define JAIS2                                         \
  "\\c|" WORD "|\\p{N}{1,3}|" REST "[\\r\\n]*|" LINES \
  "|\\s{512}\\>|\\s{256}\\>|\\s{128}\\>|\\s{64}\\>|\\s{32}\\>|\\s{16}\\>|\\s{8}\\>|\\s{4}\\>|\\s{1,2}\\>|\\s"

/* Words that change case inside are split there: capitals and then small letters. Letters that are not ASCII count as
 * both. L is what else belongs to a word. */
#define CASED_WORD(L, END)                                                                              \
  "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}" L "--a-z]*[\\p{L}" L "--A-Z]+" END "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}" L \
  "--a-z]+[\\p{L}" L "--A-Z]*" END
#define TEKKEN CASED_WORD("", "") "|\\p{N}|" REST "[\\r\\n/]*|" LINES "|" SPACES
#define GPT4O CASED_WORD("", "\\c?") "|\\p{N}{1,3}|" REST "[\\r\\n/]*|" LINES "|" SPACES
#define GRANITE_EMBED CASED_WORD("\\p{M}", "\\c?") "|\\p{N}{1,3}|" REST "[\\r\\n/]*|" LINES "|" SPACES
#define TINY_AYA MARKED_WORD "\\c?|\\p{N}{1,3}|" REST "[\\r\\n/]*|" LINES "|" SPACES
#define YOUTU MARKED_WORD "\\c?|\\p{N}|" REST "[\\r\\n/]*|" LINES "|" SPACES
#define KIMI "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}--\\p{Han}]+\\c?|\\p{N}{1,3}|" REST "[\\r\\n]*|" LINES "|" SPACES
#define SIGNS \
  ASCII_SIGN "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES "|" SPACES
#define BLOOM " ?[^(\\s|.,!?\\u{2026}\\u{3002}\\u{ff0c}\\u{3001}\\u{964}\\u{6d4}\\u{60c})]+"
#define IDEOGRAPHS "[\\u{4e00}-\\u{9fa5}\\u{800}-\\u{4e00}\\u{ac00}-\\u{d7ff}]+"
#define IDEOGRAPHS_KANA "[\\u{4e00}-\\u{9fa5}\\u{3040}-\\u{30ff}]+"
#define YOUTU_SCRIPTS                                                                            \
  "[\\u{ac00}-\\u{d7a3}\\u{3131}-\\u{318e}]+"                                                    \
  "|[\\u{ff01}\\u{2026}\\u{201c}\\u{201d}\\u{2018}\\u{2019}\\u{2014}\\u{ff1a}\\u{ff1b}\\u{ff0c}" \
  "\\u{3001}-\\u{303f}\\u{fe30}-\\u{fe4f}]+|[\\u{3105}-\\u{312f}]+|" IDEOGRAPHS_KANA
#define ASIAN_SCRIPTS                                                                               \
  "["                                                                                               \
  "\\u{4e00}-\\u{9fff}\\u{3400}-\\u{4dbf}\\u{8c48}-\\u{faff}\\u{3040}-\\u{309f}\\u{30a0}-\\u{30ff}" \
  "\\u{ff65}-\\u{ff9f}\\u{2f00}-\\u{2fdf}\\u{e40}-\\u{e7f}\\u{e80}-\\u{eff}\\u{1780}-\\u{17ff}"     \
  "\\u{1000}-\\u{109f}\\u{aa60}-\\u{aa7f}\\u{a9e0}-\\u{a9ff}\\u{ac00}-\\u{d7af}\\u{1100}-\\u{11ff}" \
  "]+"
#define CASED_LETTERS                                                                                        \
  "A-Za-z\\u{b5}\\u{c0}-\\u{d6}\\u{d8}-\\u{f6}\\u{f8}-\\u{1ba}\\u{1bc}-\\u{1bf}\\u{1c4}-\\u{293}"            \
  "\\u{295}-\\u{2af}\\u{370}-\\u{373}\\u{376}\\u{377}\\u{37b}-\\u{37d}\\u{37f}\\u{386}\\u{388}-\\u{38a}"     \
  "\\u{38c}\\u{38e}-\\u{3a1}\\u{3a3}-\\u{3f5}\\u{3f7}-\\u{481}\\u{48a}-\\u{52f}\\u{531}-\\u{556}"            \
  "\\u{10a0}-\\u{10c5}\\u{13a0}-\\u{13f5}\\u{13f8}-\\u{13fd}\\u{1c90}-\\u{1cba}\\u{1cbd}-\\u{1cbf}"          \
  "\\u{1d00}-\\u{1d2b}\\u{1d6b}-\\u{1d77}\\u{1d79}-\\u{1d9a}\\u{1e00}-\\u{1f15}\\u{1f18}-\\u{1f1d}"          \
  "\\u{1f20}-\\u{1f45}\\u{1f48}-\\u{1f4d}\\u{1f50}-\\u{1f57}\\u{1f59}\\u{1f5b}\\u{1f5d}\\u{1f5f}-\\u{1f7d}"  \
  "\\u{1f80}-\\u{1fb4}\\u{1fb6}-\\u{1fbc}\\u{1fbe}\\u{1fc2}-\\u{1fc4}\\u{1fc6}-\\u{1fcc}\\u{1fd0}-\\u{1fd3}" \
  "\\u{1fd6}-\\u{1fdb}\\u{1fe0}-\\u{1fec}\\u{1ff2}-\\u{1ff4}\\u{1ff6}-\\u{1ffc}\\u{2102}\\u{2107}"           \
  "\\u{210a}-\\u{2113}\\u{2115}\\u{2119}-\\u{211d}\\u{2124}\\u{2126}\\u{2128}\\u{212a}-\\u{212d}"            \
  "\\u{212f}-\\u{2134}\\u{2139}\\u{213c}-\\u{213f}\\u{2145}-\\u{2149}\\u{214e}\\u{2183}\\u{2184}"            \
  "\\u{2c00}-\\u{2c7b}\\u{2c7e}-\\u{2ce4}\\u{2ceb}-\\u{2cee}\\u{2cf2}\\u{2cf3}\\u{a640}-\\u{a66d}"           \
  "\\u{a680}-\\u{a69b}\\u{a722}-\\u{a76f}\\u{a771}-\\u{a787}\\u{a78b}-\\u{a78e}\\u{ab70}-\\u{abbf}"          \
  "\\u{fb00}-\\u{fb06}\\u{fb13}-\\u{fb17}\\u{ff21}-\\u{ff3a}\\u{ff41}-\\u{ff5a}\\u{10400}-\\u{1044f}"        \
  "\\u{104b0}-\\u{104d3}\\u{104d8}-\\u{104fb}\\u{10c80}-\\u{10cb2}\\u{10cc0}-\\u{10cf2}"                     \
  "\\u{118a0}-\\u{118df}\\u{1e900}-\\u{1e943}"

static const berth__pre_row pre_rows[] = {
    {"default", 0, {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     BERTH__PRE_IGNORE_MERGES | BERTH__PRE_ADD_BOS,
     {LLAMA3}},
    {"dbrx smaug-bpe", 0, {LLAMA3}},
    {"glm4 chatglm-bpe", BERTH__PRE_NO_BOS, {LLAMA3}},
    {"jais-2", 0, {JAIS2}},
    {"minicpm5", BERTH__PRE_IGNORE_MERGES, {"\\p{N}{1,3}", "\\c|" WORD "|\\p{N}+|" REST "[\\r\\n]*|" LINES "|" SPACES}},
    {"deepseek-llm",
     0,
     {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+",
      "\\s?[!-/:-~\\u{ff01}-\\u{ff0f}\\u{ff1a}-\\u{ff5e}\\u{2018}-\\u{201f}\\u{3000}-\\u{3002}]+", "\\s+$", IDEOGRAPHS,
      "\\p{N}+"}},
    {"deepseek-v3 hunyuan-dense joyai-llm", 0, {"\\p{N}{1,3}", IDEOGRAPHS_KANA, SIGNS}},
    {"deepseek-coder", 0, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", IDEOGRAPHS, "\\p{N}"}},
    {"afmoe", 0, {"\\3", ASIAN_SCRIPTS, SIGNS}},
    {"youtu", BERTH__PRE_IGNORE_MERGES, {YOUTU_SCRIPTS, YOUTU}},
    {"falcon", 0, {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", 0, {"\\p{N}", GPT2}},
    {"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 mpt olmo jais "
     "trillion granite-docling jina-v1-en jina-v2-code roberta-bpe",
     0,
     {GPT2}},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2 bailingmoe "
     "bailingmoe2 llada-moe",
     0,
     {QWEN2}},
    {"qwen35", 0, {QWEN35}},
    {"poro-chat bloom gpt3-finnish", 0, {BLOOM}},
    {"viking", 0, {BLOOM, "\\p{N}"}},
    {"tekken", BERTH__PRE_IGNORE_MERGES | BERTH__PRE_ADD_BOS, {TEKKEN}},
    {"chameleon",
     BERTH__PRE_ADD_BOS,
     {"<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", "[\\t\\n]|    |  ", "\\p{N}", "[\\p{P}!-/:-@\\[-`{-~]", GPT2}},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", 0, {GPT4O}},
    {"granite-embed-multi-97m", BERTH__PRE_IGNORE_MERGES, {GRANITE_EMBED}},
    {"tiny_aya cohere2moe", 0, {"\\3", TINY_AYA}},
    {"kimi-k2", 0, {KIMI}},
    {"superbpe", 0, {"\\p{N}+", "\\4"}},
    {"seed-coder", 0, {"\\c|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES "|" SPACES}},
    {"exaone-moe", 0, {"\\c|[^\\r\\n\\p{L}\\p{N}]?\\e|\\p{N}|" REST "[\\r\\n/]?|" LINES "|" SPACES}},
    {"gemma4 granite-embed-multi-311m", BERTH__PRE_RAW | BERTH__PRE_LINES | BERTH__PRE_FORCE_BOS, {"[^\\n]+|[\\n]+"}},
    {"sarvam-moe", BERTH__PRE_RAW, {"[^\\n]+|[\\n]+"}},
};

const berth__pre_row *berth__pre_rows(size_t *count) {
  *count = sizeof pre_rows / sizeof pre_rows[0];
  return pre_rows;
}

const berth__pre_row *berth__pre_find(const char *name, size_t size) {
  for (size_t i = 0; i < sizeof pre_rows / sizeof pre_rows[0]; i++) {
    for (const char *at = pre_rows[i].names; *at != '\0';) {
      const size_t length = strcspn(at, " ");
      if (length == size && memcmp(at, name, size) == 0) return &pre_rows[i];
      at += length + (at[length] == ' ');
    }
  }
  return NULL;
}
