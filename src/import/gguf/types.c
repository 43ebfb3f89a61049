#include "import/gguf/types.h"

#include <stdio.h>

#include "import/gguf/gguf.h"

/* By number. Berth's types have the same names in lower case. */
static const struct {
  const char *name, *berth;
  uint32_t elements, bytes;
} ggml_types[] = {
    [0] = {"f32", "f32", 1, 4},
    [1] = {"f16", "f16", 1, 2},
    [2] = {"q4_0", "q4_0", 32, 18},
    [3] = {"q4_1", "q4_1", 32, 20},
    [6] = {"q5_0", "q5_0", 32, 22},
    [7] = {"q5_1", "q5_1", 32, 24},
    [8] = {"q8_0", "q8_0", 32, 34},
    [9] = {"q8_1", "q8_1", 32, 36},
    [10] = {"q2_K", "q2_k", 256, 84},
    [11] = {"q3_K", "q3_k", 256, 110},
    [12] = {"q4_K", "q4_k", 256, 144},
    [13] = {"q5_K", "q5_k", 256, 176},
    [14] = {"q6_K", "q6_k", 256, 210},
    [15] = {"q8_K", "q8_k", 256, 292},
    [16] = {"iq2_xxs", "iq2_xxs", 256, 66},
    [17] = {"iq2_xs", "iq2_xs", 256, 74},
    [18] = {"iq3_xxs", "iq3_xxs", 256, 98},
    [19] = {"iq1_s", "iq1_s", 256, 50},
    [20] = {"iq4_nl", "iq4_nl", 32, 18},
    [21] = {"iq3_s", "iq3_s", 256, 110},
    [22] = {"iq2_s", "iq2_s", 256, 82},
    [23] = {"iq4_xs", "iq4_xs", 256, 136},
    [24] = {"i8", "i8", 1, 1},
    [25] = {"i16", "i16", 1, 2},
    [26] = {"i32", "i32", 1, 4},
    [27] = {"i64", "i64", 1, 8},
    [28] = {"f64", "f64", 1, 8},
    [29] = {"iq1_m", "iq1_m", 256, 56},
    [30] = {"bf16", "bf16", 1, 2},
    [31] = {"q4_0_4_4", "q4_0_4_4", 32, 18}, /* rows interleaved for certain processors; no longer written */
    [32] = {"q4_0_4_8", "q4_0_4_8", 32, 18},
    [33] = {"q4_0_8_8", "q4_0_8_8", 32, 18},
    [34] = {"tq1_0", "tq1_0", 256, 54},
    [35] = {"tq2_0", "tq2_0", 256, 66},
    [36] = {"iq4_nl_4_4", "iq4_nl_4_4", 32, 18}, /* likewise */
    [37] = {"iq4_nl_4_8", "iq4_nl_4_8", 32, 18},
    [38] = {"iq4_nl_8_8", "iq4_nl_8_8", 32, 18},
    [39] = {"mxfp4", "mxfp4", 32, 17},
    [40] = {"nvfp4", "nvfp4", 64, 36},
    [41] = {"q1_0", "q1_0", 128, 18},
    [42] = {"q2_0", "q2_0", 64, 18},
};
#define N_GGML_TYPES (sizeof ggml_types / sizeof ggml_types[0])

berth__ggml_type berth__ggml_type_at(uint32_t number) {
  berth__ggml_type out = {0};
  if (number >= N_GGML_TYPES || ggml_types[number].name == NULL) return out;
  out.name = ggml_types[number].name;
  out.elements = ggml_types[number].elements;
  out.bytes = ggml_types[number].bytes;
  const berth_type type = berth_type_from_name(ggml_types[number].berth);
  const berth_storage storage = berth_type_storage(type);
  if (storage.elements == out.elements && storage.bytes == out.bytes) out.type = type;
  return out;
}

const char *berth__gguf_type_name(uint32_t ggml_type, char text[32]) {
  const berth__ggml_type type = berth__ggml_type_at(ggml_type);
  if (type.name != NULL)
    snprintf(text, 32, "%s", type.name);
  else
    snprintf(text, 32, "type %u", ggml_type);
  return text;
}
