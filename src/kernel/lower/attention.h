/* attention (ops/attention.h) in the kernel language: what its two forms have in common. */
#ifndef BERTH_KERNEL_LOWER_ATTENTION_H
#define BERTH_KERNEL_LOWER_ATTENTION_H

#include "kernel/lower.h"
#include "ops/attention.h"

/* The query that a thread or a row of a tile is at. */
typedef struct berth__attention_row {
  berth__x batch, head, row;
  berth__x first, last; /* keys that it may see, whatever the mask says: [first, last) */
  berth__x mask, bias;  /* where theirs for key 0 is; BERTH__X_NONE: there is none */
} berth__attention_row;
berth__attention_row berth__attention_row_of(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x batch,
                                             berth__x head, berth__x row);
/* The keys of a batch entry that there are in this run: a number, or the run's length, brought to 0 and k.length. Those
 * of a ring may be more. */
berth__x berth__attention_keys_of(const berth__lowering *l, berth__kernel *k, const berth__attention *a,
                                  berth__x batch);
void berth__attention_range_of(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x row,
                               berth__x *first, berth__x *last);
/* Of so many keys: how many rows are in use, and the key that lies in one of them. */
berth__x berth__attention_held(berth__kernel *k, const berth__attention *a, berth__x keys);
berth__x berth__attention_key_at(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x row);
/* Where a row of q, k, v or the result begins. */
berth__x berth__attention_at(berth__kernel *k, const berth__heads *h, berth__x batch, berth__x head, berth__x row);
/* Element `place` of keys or values, as f32, whatever they lie as. */
berth__x berth__attention_load(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place);
/* A sum of products as a score, before a bias. */
berth__x berth__attention_scaled(berth__kernel *k, const berth__attention *a, berth__x sum);
/* The score of a key from a sum of products, -infinity where it may not be seen. */
berth__x berth__attention_score(const berth__lowering *l, berth__kernel *k, const berth__attention *a,
                                const berth__attention_row *row, berth__x key, berth__x sum);
/* The larger of the two, or a NaN where there is one. */
berth__x berth__attention_larger(berth__kernel *k, berth__x a, berth__x b);
/* x * factor, but 0 where the factor is, whatever x is. */
berth__x berth__attention_fade(berth__kernel *k, berth__x x, berth__x factor);
/* exp(score - largest), 0 while nothing was seen. */
berth__x berth__attention_weight(berth__kernel *k, berth__x score, berth__x largest);

/* The total that the sums are divided by: with the head's sink where there are sinks, and never 0. */
berth__x berth__attention_divisor(const berth__lowering *l, berth__kernel *k, const berth__attention *a, berth__x head,
                                  berth__x total, berth__x largest);

/* attention_form.c: the forms for real GPUs, where a workgroup has a block of queries. */
#define BERTH__ATTENTION_LANES 32u /* threads along the columns of the result, or the keys of a block */
#define BERTH__ATTENTION_PARTS 8u  /* threads that share a row of scores */
#define BERTH__ATTENTION_SPANS 8u  /* columns of the result a thread has, at most: head sizes up to 256 */
typedef struct berth__attention_form {
  uint32_t queries, keys;       /* of a block */
  uint32_t threads, row_groups; /* of a workgroup; along the rows of a block */
  bool folds_heads;             /* rows are those of all heads that share keys */
  int64_t rows, heads, blocks;  /* of queries, what they stand in, and blocks of them */
  int64_t chunks, chunk_keys;   /* workgroups that share the keys of a block of queries; keys of each */
  berth_compute kind;           /* what matrix units multiply; f32: there are none */
} berth__attention_form;
/* False where the limits have no room for it, or threads do better alone. */
bool berth__attention_form_of(const berth__attention *a, const berth__kernel_limits *limits,
                              berth__attention_form *out);
/* What matrix units multiply queries, keys and values as; f32: there are none for it. */
berth_compute berth__attention_kind(const berth__attention *a, const berth__kernel_limits *limits);
/* With matrix units: a head's size in whole steps of these; and the tiles that a workgroup has. */
static inline uint32_t berth__attention_padded(int64_t size) { return ((uint32_t)size + 15) / 16 * 16; }
typedef enum berth__attention_tile {
  BERTH__ATTENTION_QUERIES,
  BERTH__ATTENTION_KEYS,
  BERTH__ATTENTION_VALUES,
  BERTH__ATTENTION_WEIGHTS,
  BERTH__ATTENTION_TILES
} berth__attention_tile;
berth__tile_desc berth__attention_tile_desc(const berth__attention *a, const berth__attention_form *f,
                                            berth__attention_tile which, berth__storage storage, uint32_t slots);

/* attention_block.c: the workgroup's block of queries, and the keys that it goes over. */
typedef struct berth__attention_block {
  berth__lowering *l;
  const berth__attention *a;
  const berth__attention_form *f;
  berth__kernel *k;
  berth__x thread, batch, head, first_row, chunk;
  berth__x keys; /* that there are in this run */
} berth__attention_block;
/* Opens the kernel; its k is NULL where memory ran out. */
berth__attention_block berth__attention_begin(berth__lowering *l, const berth__attention *a,
                                              const berth__attention_form *f, const char *what);
/* The query of a row of the block; rows past the last one stand for that. And whether it is no such. */
berth__attention_row berth__attention_block_row(const berth__attention_block *b, berth__x in_block);
berth__x berth__attention_block_has(const berth__attention_block *b, berth__x in_block);
berth__x berth__attention_block_kv_head(const berth__attention_block *b);
/* The keys of the chunk that any query of the block sees, from a multiple of f->keys on: of the workgroup's number and
 * the run's length alone, so that all its threads agree. */
void berth__attention_block_range(const berth__attention_block *b, berth__x *first, berth__x *last);
/* The score of a key of a query of the block, -infinity where there is no such key. */
berth__x berth__attention_block_score(const berth__attention_block *b, berth__x in_block, berth__x key, berth__x sum);

/* attention_side.c: queries, keys or values, and the tile that a block of their rows is held in. */
typedef struct berth__attention_side {
  uint32_t operand;
  const berth__heads *heads;
  berth__kernel_tile tile;
  berth__storage storage;
  bool is_values; /* rows of memory are the depth there, and elements the lines */
} berth__attention_side;
/* Whether the device copies its rows, 16 bytes at a time, for what the form multiplies. */
bool berth__attention_can_copy(const berth__attention_block *b, const berth__attention_side *side);
/* Fills a slot with the block's queries or, from `first` on, with keys; with zeros where there are no more. first:
 * BERTH__X_NONE for queries. */
void berth__attention_take(const berth__attention_block *b, const berth__attention_side *side, bool is_copied,
                           berth__x slot, berth__x first);
/* Blocks that pass by, `step` rows each, from `first` on: each is taken into a slot and then seen. What is copied has
 * two slots: the next block goes where the one before was, which all are done with. */
typedef void berth__attention_see(const void *user, berth__x slot, berth__x from);
typedef struct berth__attention_passing {
  const void *user;
  berth__attention_see *take, *see;
  bool is_copied; /* 16 bytes at a time, by the device */
  berth__x first, last;
  uint32_t step;
} berth__attention_passing;
void berth__attention_pass(berth__kernel *k, const berth__attention_passing *by);
/* Local arrays of the rows that a thread has of scores: the largest of each so far, and what the sums before fade by.
 */
void berth__attention_find_largest(berth__kernel *k, uint32_t scores, uint32_t lines, uint32_t largest, uint32_t fade,
                                   uint32_t folded);

/* attention_tiled.c, attention_matrix.c */
berth_status berth__attention_tiled(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                    berth_error *err);
berth_status berth__attention_matrix(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                     berth_error *err);
/* attention_merge.c: one result from those of the chunks. Each has a record in scratch: its largest score, the total of
 * its weights, and the sums that these gave. */
#define BERTH__ATTENTION_LARGEST 0
#define BERTH__ATTENTION_TOTAL 1
#define BERTH__ATTENTION_SUMS 2
berth__x berth__attention_record(berth__kernel *k, const berth__attention *a, const berth__attention_form *form,
                                 berth__x batch, berth__x head, berth__x row, berth__x chunk);
berth_status berth__attention_merge(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                    berth_error *err);

/* Columns of the result that make a word of it; 1 where it has a word for each, or rows share words. And of any result
 * whose heads lie so. */
uint32_t berth__attention_word(const berth__lowering *l, const berth__attention *a);
uint32_t berth__attention_word_of(const berth__lowering *l, uint32_t out, const berth__heads *h);
/* attention_grad_tiled.c: the gradients in blocks of queries and keys. storage: how operands lie, NULL: by their types;
 * the kind does not depend on it, nor does scratch. False where there is no room, or threads do better alone. */
bool berth__attention_grad_form(const berth__attention_grad *g, const berth__storage *storage,
                                const berth__kernel_limits *limits, berth__attention_form *out);
berth_status berth__attention_grad_tiled(berth__lowering *l, const berth__attention_grad *g,
                                         const berth__attention_form *form, berth_error *err);
/* attention_grad.c: what the score of a key with weight p gives, without the scale: p (dp - sum), with what the cap
 * leaves of it. */
berth__x berth__attention_slope(berth__kernel *k, const berth__attention *a, berth__x p, berth__x dp, berth__x sum,
                                berth__x product);
void berth__attention_work(berth__lowering *l, const berth__attention *a, berth__kernel *k);

#endif
