/* Finds special tokens in a text. Longer ones are found first, in the whole text, and shorter ones only in what
 * remains. One pass tells which lengths occur at all, and each of those takes another pass, so that the time does not
 * depend on how many special tokens a model has. */
#include <string.h>

#include "text/vocab.h"

typedef struct special_scan {
  const berth__tokenizer *t;
  const char *text;
  size_t size;
  bool parse;
  uint8_t *taken; /* per byte: it belongs to a token, or was stripped */
  berth__fragment *found;
  size_t n_found, capacity;
} special_scan;

/* Visits every special token at a position, from the shortest on, until the walk ends or the length is reached. */
static int32_t special_at(const special_scan *s, size_t at, size_t length) {
  berth__walk walk = BERTH__WALK_BEGIN;
  while (walk.depth < length) {
    if (at + walk.depth == s->size || !berth__walk_step(s->t, &s->t->special, &walk, s->text[at + walk.depth]))
      return BERTH__NO_TOKEN;
  }
  const int32_t id = berth__walk_token(s->t, &s->t->special, &walk);
  const uint32_t hidden = s->parse ? 0 : BERTH__TOKEN_CONTROL | BERTH__TOKEN_UNKNOWN;
  return id >= 0 && (s->t->attributes[id] & hidden) == 0 ? id : BERTH__NO_TOKEN;
}

/* Marks the lengths of all special tokens that occur. */
static void special_lengths(const special_scan *s, uint8_t *occurs) {
  for (size_t at = 0; at < s->size; at++) {
    berth__walk walk = BERTH__WALK_BEGIN;
    while (at + walk.depth < s->size && berth__walk_step(s->t, &s->t->special, &walk, s->text[at + walk.depth])) {
      if (berth__walk_token(s->t, &s->t->special, &walk) >= 0) occurs[walk.depth] = 1;
    }
  }
}

static bool special_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static berth_status special_take(special_scan *s, size_t at, size_t length, int32_t id, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->t->ctx, s->found, s->capacity, s->n_found + 1, err));
  s->found[s->n_found++] = (berth__fragment){at, at + length, id};
  memset(s->taken + at, 1, length);
  const uint16_t attributes = s->t->attributes[id];
  for (size_t i = at; (attributes & BERTH__TOKEN_LSTRIP) != 0 && i > 0; i--) {
    if (s->taken[i - 1] || !special_is_space(s->text[i - 1])) break;
    s->taken[i - 1] = 1;
  }
  for (size_t i = at + length; (attributes & BERTH__TOKEN_RSTRIP) != 0 && i < s->size; i++) {
    if (s->taken[i] || !special_is_space(s->text[i])) break;
    s->taken[i] = 1;
  }
  return BERTH_OK;
}

static berth_status special_scan_length(special_scan *s, size_t length, berth_error *err) {
  for (size_t at = 0; at + length <= s->size;) {
    if (s->taken[at] != 0) {
      at++;
      continue;
    }
    const int32_t id = special_at(s, at, length);
    if (id < 0 || memchr(s->taken + at, 1, length) != NULL) {
      at++;
      continue;
    }
    BERTH__TRY(special_take(s, at, length, id, err));
    at += length;
  }
  return BERTH_OK;
}

static berth_status special_add(special_scan *s, berth__fragment fragment, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->t->ctx, s->found, s->capacity, s->n_found + 1, err));
  s->found[s->n_found++] = fragment;
  return BERTH_OK;
}

/* Puts the tokens, which were found length by length, into text order, with the text between them. */
static berth_status special_arrange(special_scan *s, berth_error *err) {
  berth__fragment *tokens = s->found;
  const size_t n = s->n_found;
  uint32_t *at_byte = berth__alloc_array_zero(s->t->ctx, n != 0 ? s->size : 0, sizeof *at_byte);
  berth_status status = BERTH_OK;
  s->found = NULL;
  s->n_found = s->capacity = 0;
  if (at_byte == NULL) status = berth__fail_nomem(err, "the text's special tokens");
  for (size_t i = 0; i < n && status == BERTH_OK; i++) at_byte[tokens[i].begin] = (uint32_t)i + 1;
  for (size_t at = 0; at < s->size && status == BERTH_OK;) {
    if (n != 0 && at_byte[at] != 0) {
      const berth__fragment *token = &tokens[at_byte[at] - 1];
      status = special_add(s, *token, err);
      at = token->end;
    } else if (s->taken[at] != 0) {
      at++; /* stripped */
    } else {
      const uint8_t *end = memchr(s->taken + at, 1, s->size - at);
      const size_t next = end != NULL ? (size_t)(end - s->taken) : s->size;
      status = special_add(s, (berth__fragment){at, next, BERTH__NO_TOKEN}, err);
      at = next;
    }
  }
  berth__free(s->t->ctx, tokens);
  berth__free(s->t->ctx, at_byte);
  return status;
}

berth_status berth__special_split(const berth__tokenizer *t, const char *text, size_t size, bool parse,
                                  berth__fragment **out, size_t *count, berth_error *err) {
  special_scan s = {.t = t, .text = text, .size = size, .parse = parse};
  uint8_t *occurs = berth__alloc_zero(t->ctx, t->longest + 1);
  s.taken = berth__alloc_zero(t->ctx, size);
  berth_status status = BERTH_OK;
  *out = NULL;
  *count = 0;
  if (occurs == NULL || s.taken == NULL) {
    status = berth__fail_nomem(err, "the text's special tokens");
  } else {
    special_lengths(&s, occurs);
    for (size_t length = t->longest; length > 0 && status == BERTH_OK; length--) {
      if (occurs[length] != 0) status = special_scan_length(&s, length, err);
    }
    if (status == BERTH_OK) status = special_arrange(&s, err);
  }
  berth__free(t->ctx, occurs);
  berth__free(t->ctx, s.taken);
  if (status != BERTH_OK) {
    berth__free(t->ctx, s.found);
    return status;
  }
  *out = s.found;
  *count = s.n_found;
  return BERTH_OK;
}
