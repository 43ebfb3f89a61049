#include <string.h>

#include "text/unicode.h"
#include "text/vocab.h"

typedef struct piece_writer {
  char *out;
  size_t capacity, size; /* size grows beyond the capacity, to report what is needed */
} piece_writer;

static void piece_add(piece_writer *w, const char *bytes, size_t size) {
  if (w->size + size <= w->capacity) memcpy(w->out + w->size, bytes, size);
  w->size += size;
}

/* U+2581 stands for a space. */
static void piece_spaced(piece_writer *w, berth__span text) {
  for (size_t at = 0; at < text.size;) {
    const bool is_space = text.size - at >= 3 && memcmp(text.data + at, "\xE2\x96\x81", 3) == 0;
    piece_add(w, is_space ? " " : text.data + at, 1);
    at += is_space ? 3 : 1;
  }
}

/* Every letter stands for a byte. Letters that do not, in tokens that were added by hand, stand for themselves. */
static void piece_bytes(piece_writer *w, berth__span text) {
  for (size_t at = 0; at < text.size;) {
    uint32_t c;
    const size_t n = berth__utf8_read(text.data + at, text.size - at, &c);
    const int byte = berth__bpe_byte(c);
    const char one = (char)byte;
    piece_add(w, byte >= 0 ? &one : text.data + at, byte >= 0 ? 1 : n);
    at += n;
  }
}

static int piece_hex(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

size_t berth__tokenizer_piece(const berth__tokenizer *t, uint32_t id, bool special, char *out, size_t capacity) {
  piece_writer w = {out, capacity, 0};
  if (id >= t->count) return 0;
  const uint16_t attributes = t->attributes[id];
  const berth__span text = berth__vocab_text(t, id);
  if ((attributes & (BERTH__TOKEN_CONTROL | BERTH__TOKEN_UNKNOWN)) != 0) {
    if (special) piece_add(&w, text.data, text.size);
  } else if ((attributes & BERTH__TOKEN_USER) != 0) {
    piece_add(&w, text.data, text.size);
  } else if ((attributes & BERTH__TOKEN_NORMAL) != 0) {
    if (t->kind == BERTH__VOCAB_BPE && !t->escape_spaces) {
      piece_bytes(&w, text);
    } else {
      piece_spaced(&w, text);
    }
  } else if ((attributes & BERTH__TOKEN_BYTE) != 0 && text.size >= 5) { /* <0xE2> */
    const char byte = (char)(piece_hex(text.data[3]) * 16 + piece_hex(text.data[4]));
    piece_add(&w, &byte, 1);
  }
  return w.size;
}

/* ---- Streams ---- */

berth__stream berth__stream_begin(const berth__tokenizer *tokenizer, bool special, bool at_start) {
  return (berth__stream){.tokenizer = tokenizer, .special = special, .at_start = at_start};
}

size_t berth__stream_capacity(
    const berth__tokenizer *t) { /* pending bytes and a token, each of which may become U+FFFD */
  return 4 * (t->longest + sizeof((berth__stream *)NULL)->held);
}

/* Writes text with U+FFFD for every byte that is not part of a character. */
static size_t stream_clean(const char *text, size_t size, char *out) {
  size_t n = 0;
  for (size_t at = 0; at < size;) {
    const size_t valid = berth__utf8_valid(text + at, size - at);
    memmove(out + n, valid != 0 ? text + at : "\xEF\xBF\xBD", valid != 0 ? valid : 3);
    n += valid != 0 ? valid : 3;
    at += valid != 0 ? valid : 1;
  }
  return n;
}

size_t berth__stream_next(berth__stream *stream, uint32_t id, char *out) {
  const berth__tokenizer *t = stream->tokenizer;
  /* The raw bytes are in the last quarter while the clean ones are written from the front: at most three for one. */
  const size_t quarter = berth__stream_capacity(t) / 4;
  char *raw = out + 3 * quarter;
  memcpy(raw, stream->held, stream->n_held);
  size_t size = stream->n_held + berth__tokenizer_piece(t, id, stream->special, raw + stream->n_held, t->longest);
  if (stream->at_start && size > 0) {
    stream->at_start = false;
    if (t->add_space_prefix && raw[0] == ' ') {
      raw++;
      size--;
    }
  }
  const size_t whole = berth__utf8_whole(raw, size);
  stream->n_held = (uint8_t)(size - whole);
  memcpy(stream->held, raw + whole, stream->n_held);
  return stream_clean(raw, whole, out);
}

size_t berth__stream_end(berth__stream *stream, char *out) {
  const size_t n = stream_clean(stream->held, stream->n_held, out);
  stream->n_held = 0;
  return n;
}
