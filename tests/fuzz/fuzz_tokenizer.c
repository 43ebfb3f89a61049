/* Any bytes as a GGUF file with a vocabulary, and the same bytes as a text: refused, or ids that are tokens and a
 * stream that is well-formed UTF-8. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

static void fuzz_decode(const berth__tokenizer *t, const berth__tokens *ids) {
  char *out = malloc(berth__stream_capacity(t));
  FUZZ_CHECK(out != NULL);
  berth__stream stream = berth__stream_begin(t, true, true);
  for (size_t i = 0; i <= ids->count; i++) {
    const size_t n = i < ids->count ? berth__stream_next(&stream, ids->ids[i], out) : berth__stream_end(&stream, out);
    FUZZ_CHECK(n <= berth__stream_capacity(t));
    for (size_t at = 0; at < n;) {
      const size_t size = berth__utf8_valid(out + at, n - at);
      FUZZ_CHECK(size != 0);
      at += size;
    }
  }
  free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_context *ctx = fuzz_context();
  berth_error err = {BERTH_OK, ""};
  berth__mapping file = {.data = size != 0 ? data : (const uint8_t *)"", .size = size, .fd = -1};
  berth__gguf *model;
  berth__tokenizer *t = NULL;
  if (berth__gguf_open(ctx, NULL, &file, &model, &err) == BERTH_OK) {
    const berth_status status = berth__tokenizer_create(ctx, model, &t, &err);
    FUZZ_CHECK((status == BERTH_OK) == (t != NULL));
    FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED);
    berth__gguf_destroy(model);
  }
  if (t != NULL) {
    berth__tokens ids = {NULL, 0, 0};
    FUZZ_CHECK(berth__tokenizer_encode(t, (const char *)data, size,
                                       BERTH__ENCODE_ADD_SPECIAL | BERTH__ENCODE_PARSE_SPECIAL, &ids,
                                       &err) == BERTH_OK);
    for (size_t i = 0; i < ids.count; i++) FUZZ_CHECK(ids.ids[i] < berth__tokenizer_count(t));
    fuzz_decode(t, &ids);
    berth__free(ctx, ids.ids);
    berth__tokenizer_destroy(t);
  }
  berth_context_destroy(ctx);
  return 0;
}
