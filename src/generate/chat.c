/* Chats: the model's own template makes one text of the messages. */
#include "generate/generator.h"

berth_status berth_generator_chat(berth_generator *g, const berth_message *messages, size_t n_messages,
                                  berth_error *err) {
  if (g == NULL || (messages == NULL && n_messages != 0))
    return berth__fail(err, BERTH_INVALID, "berth_generator_chat needs a generator and messages");
  return berth__fail(err, BERTH_UNSUPPORTED, "chat templates are not there yet");
}
