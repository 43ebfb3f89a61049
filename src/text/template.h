/* Chat templates: the part of Jinja that models' templates use. White space is handled as in transformers: the line
 * feed after a tag and the spaces before one are dropped (trim_blocks, lstrip_blocks).
 *
 * A template comes with a model and is untrusted. It can read nothing but its variables, and its memory, steps, depth
 * and output are limited, so the worst it can do is fail. */
#ifndef BERTH_TEXT_TEMPLATE_H
#define BERTH_TEXT_TEMPLATE_H

#include <stdbool.h>

#include "base/context.h"

#define BERTH__TEMPLATE_MEMORY ((size_t)256 << 20) /* bytes for values and output */
#define BERTH__TEMPLATE_STEPS 20000000u            /* expressions, statements, and each 64 bytes of text */
#define BERTH__TEMPLATE_DEPTH 400u                 /* nesting of expressions, statements and macros */
#define BERTH__TEMPLATE_NESTING 100u               /* nesting of values, and of brackets and blocks in the text */

/* Renders with the members of a JSON object as variables. *out is terminated; the caller frees it with berth__free.
 * `now` is the time that strftime_now shows, in local seconds since 1970. MALFORMED: the template is wrong, or refuses
 * the conversation; the message contains the line. */
berth_status berth__template_render(berth_context *ctx, const char *text, size_t size, const char *json,
                                    size_t json_size, int64_t now, char **out, size_t *out_size, berth_error *err);

typedef struct berth__chat_message {
  const char *role;    /* "system", "user", "assistant"; terminated */
  const char *content; /* terminated */
} berth__chat_message;

typedef struct berth__chat {
  const berth__chat_message *messages;
  size_t n_messages;
  bool add_generation_prompt;        /* end with the prompt for the model's answer */
  const char *bos_token, *eos_token; /* NULL means "" */
  int64_t now;
  const char *variables; /* further variables as a JSON object: {"enable_thinking": false}; or NULL */
} berth__chat;

/* The text of a conversation. If a template refuses or ignores a system message, that is put at the beginning of the
 * user's first message. */
berth_status berth__chat_apply(berth_context *ctx, const char *text, size_t size, const berth__chat *chat, char **out,
                               size_t *out_size, berth_error *err);

#endif
