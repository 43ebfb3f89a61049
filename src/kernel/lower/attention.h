/* attention (ops/attention.h) in the kernel language: shared by its forms. */
#ifndef BERTH_KERNEL_LOWER_ATTENTION_H
#define BERTH_KERNEL_LOWER_ATTENTION_H

#include "kernel/lower.h"
#include "ops/attention.h"

/* The query of a thread or of a row of a tile. */
typedef struct berth__attention_row {
  berth__x batch, head, row;
  berth__x first, last; /* keys that it may see, before the mask: [first, last) */
  berth__x mask, bias;  /* offset of the query's mask and bias for key 0; BERTH__X_NONE: there is none */
} berth__attention_row;
berth__attention_row berth__attention_row_of(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x batch,
                                             berth__x head, berth__x row);
/* The number of keys of a batch entry in this run: a constant, or the run's length, clamped to 0 and k.length. A ring
 * may have had more. */
berth__x berth__attention_keys_of(const berth__lowering *l, berth__kernel *k, const berth__attention *a,
                                  berth__x batch);
void berth__attention_range_of(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x row,
                               berth__x *first, berth__x *last);
/* Given the number of keys: how many rows are in use, and which key a row holds. */
berth__x berth__attention_held(berth__kernel *k, const berth__attention *a, berth__x keys);
berth__x berth__attention_key_at(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x row);
/* The offset of a row of q, k, v or the result. */
berth__x berth__attention_at(berth__kernel *k, const berth__heads *h, berth__x batch, berth__x head, berth__x row);
/* Element `place` of keys or values, as f32, whatever their storage is. */
berth__x berth__attention_load(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place);
/* A dot product as a score, before the bias. */
berth__x berth__attention_scaled(berth__kernel *k, const berth__attention *a, berth__x sum);
/* The score of a key from a dot product, -infinity if it must not be seen. */
berth__x berth__attention_score(const berth__lowering *l, berth__kernel *k, const berth__attention *a,
                                const berth__attention_row *row, berth__x key, berth__x sum);
/* The maximum of the two, NaN if one is NaN. */
berth__x berth__attention_larger(berth__kernel *k, berth__x a, berth__x b);
/* x * factor, but 0 if the factor is 0, whatever x is. */
berth__x berth__attention_fade(berth__kernel *k, berth__x x, berth__x factor);
/* exp(score - largest), 0 as long as no key has been seen. */
berth__x berth__attention_weight(berth__kernel *k, berth__x score, berth__x largest);

/* The divisor of the sums: includes the head's sink if there are sinks, and is never 0. */
berth__x berth__attention_divisor(const berth__lowering *l, berth__kernel *k, const berth__attention *a, berth__x head,
                                  berth__x total, berth__x largest);

/* attention_form.c: the forms for real GPUs, in which a workgroup has a block of queries. */
#define BERTH__ATTENTION_LANES 32u /* threads along the columns of the result, or the keys of a block */
#define BERTH__ATTENTION_PARTS 8u  /* threads that share a row of scores */
#define BERTH__ATTENTION_SPANS 8u  /* most columns of the result per thread: head sizes up to 256 */
#define BERTH__ATTENTION_FEW 8u    /* most rows of attention_few.c */
#define BERTH__ATTENTION_WARPS 4u  /* and the subgroups of a workgroup */
/* How the threads of a subgroup share a row of keys or values: fetches of adjacent elements, threads per row, and
 * fetches per thread. */
typedef struct berth__few_side {
  uint32_t wide, lanes, fetches;
} berth__few_side;
typedef struct berth__attention_few_form {
  berth__few_side key, value;
  uint32_t keys, passes; /* keys of a subgroup, and rounds in which its threads load their values; 0: not this form */
} berth__attention_few_form;
typedef struct berth__attention_form {
  uint32_t queries, keys;       /* per block */
  uint32_t threads, row_groups; /* per workgroup; along the rows of a block */
  bool folds_heads;             /* the rows are those of all heads that share keys */
  int64_t rows, heads, blocks;  /* queries, the heads to distribute, and blocks of queries */
  int64_t chunks, chunk_keys;   /* workgroups that share the keys of a block of queries; keys per workgroup */
  berth_compute kind;           /* compute type of matrix units; f32: none */
  berth__attention_few_form few;
} berth__attention_form;
/* False if the limits leave no room for it, or one thread per query is faster. */
bool berth__attention_form_of(const berth__attention *a, const berth__kernel_limits *limits,
                              berth__attention_form *out);
/* The compute type in which matrix units multiply queries, keys and values; f32: there is none for it. */
berth_compute berth__attention_kind(const berth__attention *a, const berth__kernel_limits *limits);
/* With matrix units: a head's size, rounded up to whole steps of these; and the tiles of a workgroup. */
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

/* attention_block.c: the workgroup's block of queries, and the keys that it iterates over. */
typedef struct berth__attention_block {
  berth__lowering *l;
  const berth__attention *a;
  const berth__attention_form *f;
  berth__kernel *k;
  berth__x thread, batch, head, first_row, chunk;
  berth__x keys; /* number of keys in this run */
} berth__attention_block;
/* Opens the kernel; its k is NULL if memory ran out. */
berth__attention_block berth__attention_begin(berth__lowering *l, const berth__attention *a,
                                              const berth__attention_form *f, const char *what);
/* The query of a row of the block, and whether there is none; rows past the last query stand for the last one. */
berth__attention_row berth__attention_block_row(const berth__attention_block *b, berth__x in_block);
berth__x berth__attention_block_has(const berth__attention_block *b, berth__x in_block);
berth__x berth__attention_block_kv_head(const berth__attention_block *b);
/* The keys of the chunk that any query of the block sees, from a multiple of f->keys on. It depends only on the
 * workgroup's number and the run's length, so all threads of a workgroup agree. */
void berth__attention_block_range(const berth__attention_block *b, berth__x *first, berth__x *last);
/* The score of a key for a query of the block, -infinity if there is no such key. */
berth__x berth__attention_block_score(const berth__attention_block *b, berth__x in_block, berth__x key, berth__x sum);

/* attention_side.c: queries, keys or values, and the tile that holds a block of their rows. */
typedef struct berth__attention_side {
  uint32_t operand;
  const berth__heads *heads;
  berth__kernel_tile tile;
  berth__storage storage;
  bool is_values; /* the depth runs over rows in memory, and lines over elements */
} berth__attention_side;
/* Whether the device can copy its rows asynchronously, 16 bytes at a time, in the form's compute type. */
bool berth__attention_can_copy(const berth__attention_block *b, const berth__attention_side *side);
/* Fills a slot with the block's queries or, from `first` on, with keys; rows past the end are zeros. first:
 * BERTH__X_NONE for queries. */
void berth__attention_take(const berth__attention_block *b, const berth__attention_side *side, bool is_copied,
                           berth__x slot, berth__x first);
/* Streams blocks of `step` rows from `first` on: each is loaded into a slot and then processed. Asynchronous copies
 * have two slots: the next block goes into the slot of the previous one, which all threads have finished with. */
typedef void berth__attention_see(const void *user, berth__x slot, berth__x from);
typedef struct berth__attention_passing {
  const void *user;
  berth__attention_see *take, *see;
  bool is_copied; /* asynchronous copies, 16 bytes at a time */
  berth__x first, last;
  uint32_t step;
} berth__attention_passing;
void berth__attention_pass(berth__kernel *k, const berth__attention_passing *by);
/* Local arrays for the rows of scores that a thread has: the maximum of each so far, and the factor that rescales the
 * previous sums. */
void berth__attention_find_largest(berth__kernel *k, uint32_t scores, uint32_t lines, uint32_t largest, uint32_t fade,
                                   uint32_t folded);

/* attention_few.c: false if there are too many rows, or theirs are not made of whole fetches. */
bool berth__attention_few_of(const berth__attention *a, int64_t rows, berth__attention_few_form *out);
berth_status berth__attention_few(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                  berth_error *err);
/* attention_tiled.c, attention_matrix.c */
berth_status berth__attention_tiled(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                    berth_error *err);
berth_status berth__attention_matrix(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                     berth_error *err);
/* attention_merge.c: combines the results of the chunks. Each has a record in scratch: its maximum score, the total of
 * its weights, and the weighted sums. */
#define BERTH__ATTENTION_CHUNKS 32 /* most of them */
#define BERTH__ATTENTION_LARGEST 0
#define BERTH__ATTENTION_TOTAL 1
#define BERTH__ATTENTION_SUMS 2
berth__x berth__attention_record(berth__kernel *k, const berth__attention *a, const berth__attention_form *form,
                                 berth__x batch, berth__x head, berth__x row, berth__x chunk);
berth_status berth__attention_merge(berth__lowering *l, const berth__attention *a, const berth__attention_form *form,
                                    berth_error *err);

/* Columns of the result that make up a word of it; 1 if each has its own word, or rows share words. And of any result
 * whose heads are laid out like that. */
uint32_t berth__attention_word(const berth__lowering *l, const berth__attention *a);
uint32_t berth__attention_word_of(const berth__lowering *l, uint32_t out, const berth__heads *h);
/* attention_grad_tiled.c: the gradients in blocks of queries and keys. storage: of the operands; NULL: follows from
 * their types. Neither the kind nor scratch depends on it. False if there is no room, or one thread per row is
 * faster. */
bool berth__attention_grad_form(const berth__attention_grad *g, const berth__storage *storage,
                                const berth__kernel_limits *limits, berth__attention_form *out);
berth_status berth__attention_grad_tiled(berth__lowering *l, const berth__attention_grad *g,
                                         const berth__attention_form *form, berth_error *err);
/* attention_grad.c: the gradient of the score of a key with weight p, without the scale: p (dp - sum), times the
 * derivative of the cap. */
berth__x berth__attention_slope(berth__kernel *k, const berth__attention *a, berth__x p, berth__x dp, berth__x sum,
                                berth__x product);
void berth__attention_work(berth__lowering *l, const berth__attention *a, berth__kernel *k);

#endif
