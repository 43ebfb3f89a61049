#include "text/template.h"

#include <string.h>

#include "base/text.h"
#include "text/jinja.h"

/* The members of a JSON object become variables. */
static berth_status template_variables(berth__jinja *j, berth__jinja_string json) {
  berth__jinja_value all;
  j->line = 0;
  BERTH__TRY(berth__jinja_from_json(j, json, &all));
  if (all.kind != BERTH__JINJA_DICT) return berth__jinja_fail(j, "the variables are not a JSON object");
  for (size_t i = 0; i < all.as.dict->count; i++)
    BERTH__TRY(berth__jinja_set(j, j->global, all.as.dict->members[i].key.as.string, all.as.dict->members[i].value));
  return BERTH_OK;
}

static berth_status template_run(berth__jinja *j, berth__jinja_string text, const berth__jinja_string json[2]) {
  berth__jinja_node *body;
  BERTH__TRY(berth__jinja_lex(j, text.data, text.size));
  BERTH__TRY(berth__jinja_parse(j, &body));
  j->depth = 0;
  for (int i = 0; i < 2; i++) {
    if (json[i].data != NULL) BERTH__TRY(template_variables(j, json[i]));
  }
  return berth__jinja_run(j, body);
}

/* Variables of the second object override those of the first. */
static berth_status template_render(berth_context *ctx, berth__jinja_string text, const berth__jinja_string json[2],
                                    int64_t now, char **out, size_t *out_size, berth_error *err) {
  berth_error local = {BERTH_OK, ""};
  berth__jinja_scope global = {NULL, NULL};
  berth__jinja_buffer buffer = {NULL, 0, 0};
  berth__jinja j = {.ctx = ctx, .err = &local, .now = now, .scope = &global, .global = &global, .out = &buffer};
  *out = NULL;
  *out_size = 0;
  berth_status status = template_run(&j, text, json);
  if (status == BERTH_OK) {
    *out = berth__strndup(ctx, buffer.data != NULL ? buffer.data : "", buffer.size);
    if (*out == NULL) status = berth__fail_nomem(&local, "the text of the conversation");
    if (*out != NULL) *out_size = buffer.size;
  }
  berth__jinja_free(&j);
  if (status != BERTH_OK && err != NULL) *err = local;
  return status;
}

berth_status berth__template_render(berth_context *ctx, const char *text, size_t size, const char *json,
                                    size_t json_size, int64_t now, char **out, size_t *out_size, berth_error *err) {
  const berth__jinja_string variables[2] = {{json, json_size}, {NULL, 0}};
  return template_render(ctx, (berth__jinja_string){text, size}, variables, now, out, out_size, err);
}

/* ---- Conversations ---- */

/* The contents of a JSON string. */
static void chat_escape(berth__text *json, const char *text) {
  for (size_t plain; *text != '\0'; text += plain + 1) {
    plain = 0;
    while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' && text[plain] != '\\') plain++;
    berth__text_add(json, text, plain);
    if (text[plain] == '\0') return;
    berth__text_printf(json, "\\u%04x", (unsigned char)text[plain]);
  }
}

static void chat_string(berth__text *json, const char *name, const char *before, const char *text) {
  berth__text_printf(json, "\"%s\": \"", name);
  if (before != NULL) {
    chat_escape(json, before);
    berth__text_printf(json, "\\n");
  }
  chat_escape(json, text != NULL ? text : "");
  berth__text_printf(json, "\"");
}

/* The variables of a template. `merged`: the system message is put at the beginning of the user's first message. */
static void chat_variables(berth__text *json, const berth__chat *chat, bool merged) {
  const char *system = merged ? chat->messages[0].content : NULL;
  berth__text_printf(json, "{\"messages\": [");
  for (size_t i = merged; i < chat->n_messages; i++) {
    const berth__chat_message *message = &chat->messages[i];
    const bool takes = system != NULL && strcmp(message->role, "user") == 0;
    berth__text_printf(json, i == merged ? "{" : ", {");
    chat_string(json, "role", NULL, message->role);
    berth__text_printf(json, ", ");
    chat_string(json, "content", takes ? system : NULL, message->content);
    berth__text_printf(json, "}");
    if (takes) system = NULL;
  }
  berth__text_printf(json, "], \"add_generation_prompt\": %s, ", chat->add_generation_prompt ? "true" : "false");
  chat_string(json, "bos_token", NULL, chat->bos_token);
  berth__text_printf(json, ", ");
  chat_string(json, "eos_token", NULL, chat->eos_token);
  berth__text_printf(json, "}");
}

static berth_status chat_render(berth_context *ctx, berth__jinja_string text, const berth__chat *chat, bool merged,
                                char **out, size_t *out_size, berth_error *err) {
  berth__text json;
  *out = NULL;
  *out_size = 0;
  berth__text_init(&json, ctx, NULL, NULL);
  chat_variables(&json, chat, merged);
  berth_status status = berth__text_finish(&json, err);
  if (status == BERTH_OK) {
    const size_t more = chat->variables != NULL ? strlen(chat->variables) : 0;
    const berth__jinja_string variables[2] = {{json.data, json.size}, {chat->variables, more}};
    status = template_render(ctx, text, variables, chat->now, out, out_size, err);
  }
  berth__text_free(&json);
  return status;
}

/* Whether the text contains the system message, ignoring the white space around it. */
static bool chat_has(const char *text, size_t size, const char *system) {
  size_t at;
  berth__jinja_string part = {system, strlen(system)};
  while (part.size != 0 && (unsigned char)part.data[0] <= ' ')
    part = (berth__jinja_string){part.data + 1, part.size - 1};
  while (part.size != 0 && (unsigned char)part.data[part.size - 1] <= ' ') part.size--;
  return berth__jinja_find((berth__jinja_string){text, size}, part, 0, &at);
}

berth_status berth__chat_apply(berth_context *ctx, const char *text, size_t size, const berth__chat *chat, char **out,
                               size_t *out_size, berth_error *err) {
  const berth__jinja_string template = {text, size};
  char *merged;
  size_t merged_size;
  const berth_status status = chat_render(ctx, template, chat, false, out, out_size, err);
  if (status != BERTH_OK && status != BERTH_MALFORMED) return status;
  if (chat->n_messages < 2 || strcmp(chat->messages[0].role, "system") != 0) return status;
  const char *system = chat->messages[0].content;
  if (status == BERTH_OK && chat_has(*out, *out_size, system)) return BERTH_OK;
  berth_error second = {BERTH_OK, ""};
  const berth_status again = chat_render(ctx, template, chat, true, &merged, &merged_size, &second);
  if (again == BERTH_OK && chat_has(merged, merged_size, system)) {
    berth__free(ctx, *out);
    *out = merged;
    *out_size = merged_size;
    return BERTH_OK;
  }
  berth__free(ctx, merged);
  if (again != BERTH_OK && again != BERTH_MALFORMED) { /* not about the template: out of memory */
    berth__free(ctx, *out);
    *out = NULL;
    *out_size = 0;
    if (err != NULL) *err = second;
    return again;
  }
  return status;
}
