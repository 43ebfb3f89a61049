/* Chat templates: the part of Jinja that models' templates use. Whitespace is handled as transformers does: the line
 * feed after a tag and the spaces before one are dropped (trim_blocks, lstrip_blocks).
 *
 * A template comes with a model, from anywhere. It can read nothing but what it is given, and its memory, steps, depth
 * and output are limited, so that the worst it can do is to fail. */
#ifndef BERTH_TEXT_TEMPLATE_H
#define BERTH_TEXT_TEMPLATE_H

#include <stdbool.h>

#include "base/context.h"

#define BERTH__TEMPLATE_MEMORY ((size_t)256 << 20) /* bytes for values and output */
#define BERTH__TEMPLATE_STEPS 20000000u            /* expressions, statements, and each 64 bytes of text handled */
#define BERTH__TEMPLATE_DEPTH 400u                 /* of expressions, statements and macros inside each other */
#define BERTH__TEMPLATE_NESTING 100u               /* of values, and of brackets and blocks in the text */

/* Renders with the members of a JSON object as variables. *out is terminated, and the caller's to free with
 * berth__free. `now` is the time that strftime_now shows, in seconds since 1970 where the user is. MALFORMED: the
 * template is wrong, or refuses the conversation; the message has the line. */
berth_status berth__template_render(berth_context *ctx, const char *text, size_t size, const char *json,
                                    size_t json_size, int64_t now, char **out, size_t *out_size, berth_error *err);

typedef struct berth__chat_message {
  const char *role;    /* "system", "user", "assistant"; terminated */
  const char *content; /* terminated */
} berth__chat_message;

typedef struct berth__chat {
  const berth__chat_message *messages;
  size_t n_messages;
  bool add_generation_prompt;        /* end with what makes the model answer */
  const char *bos_token, *eos_token; /* NULL is "" */
  int64_t now;
  const char *variables; /* more of them, as a JSON object: {"enable_thinking": false}; or NULL */
} berth__chat;

/* The text of a conversation. A template that has no place for a system message, because it refuses or drops it, gets
 * it at the beginning of the first message of the user. */
berth_status berth__chat_apply(berth_context *ctx, const char *text, size_t size, const berth__chat *chat, char **out,
                               size_t *out_size, berth_error *err);

#endif
