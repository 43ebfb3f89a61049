/* Any bytes as a chat template: text, or an error with a position. The part before a zero byte is the template, the
 * part after it are variables as JSON. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const berth__chat_message messages[] = {
      {"system", "be brief"}, {"user", "hi \"you\"\n"}, {"assistant", "yes"}};
  berth_context *ctx = fuzz_context();
  char *text = malloc(size + 1), *out;
  size_t out_size;
  berth_error err = {BERTH_OK, ""};
  FUZZ_CHECK(text != NULL);
  if (size != 0) memcpy(text, data, size);
  text[size] = '\0';
  const size_t length = strlen(text);
  const berth__chat chat = {messages, 3, true, "<s>", "</s>", 0, length < size ? text + length + 1 : NULL};
  const berth_status status = berth__chat_apply(ctx, text, length, &chat, &out, &out_size, &err);
  FUZZ_CHECK((status == BERTH_OK) == (out != NULL));
  FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED);
  FUZZ_CHECK(status == BERTH_OK || (err.status == status && err.message[0] != '\0'));
  FUZZ_CHECK(status != BERTH_OK || out[out_size] == '\0');
  berth__free(ctx, out);
  free(text);
  berth_context_destroy(ctx);
  return 0;
}
