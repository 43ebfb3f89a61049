/* Renders a kernel as source, using a dialect. A result with one use becomes part of the expression that uses it;
 * others get a name. */
#include <string.h>

#include "kernel/dialect.h"

#define LONGEST 10u  /* instructions per expression */
#define DEEPEST 256u /* nested blocks; kernels have fewer */

typedef struct note {
  uint32_t uses;
  berth__x user;  /* the last user */
  uint32_t block; /* the block that contains it */
  berth__x at;    /* the instruction on whose line it is written: itself if it has a name */
  uint32_t size;  /* instructions of its expression */
} note;

typedef struct render {
  const berth__kernel *k;
  const berth__dialect *d;
  const berth__render_desc *desc;
  berth__text *out;
  note *notes;
} render;

/* ---- Which results get a name ---- */

static berth__inst_kind kernel_render_kind_of(const berth__inst *inst) {
  return berth__inst_kind_of((berth__inst_code)inst->code);
}

static uint32_t n_operands(const berth__inst *inst) { return berth__inst_operands((berth__inst_code)inst->code); }

/* Written at each use, however many there are. */
static bool is_word(const berth__inst *inst) {
  return inst->code == BERTH__INST_constant || inst->code == BERTH__INST_group || inst->code == BERTH__INST_thread;
}

static void kernel_render_count_uses(render *r) {
  uint32_t n_blocks = 1, open[DEEPEST + 1u] = {0};
  for (berth__x x = 0; x < r->k->n_insts; x++) {
    const berth__inst *inst = &r->k->insts[x];
    for (uint32_t i = 0; i < n_operands(inst); i++) {
      r->notes[inst->in[i]].uses++;
      r->notes[inst->in[i]].user = x;
    }
    r->notes[x].block = open[inst->depth];
    r->notes[x].at = x;
    if (kernel_render_kind_of(inst) == BERTH__INST_BLOCK) open[inst->depth + 1u] = n_blocks++;
  }
}

static bool is_arithmetic(const berth__inst *inst) {
  return inst->type == BERTH__NUM_F32 && kernel_render_kind_of(inst) == BERTH__INST_PURE &&
         inst->code != BERTH__INST_select && inst->code != BERTH__INST_bits && inst->code != BERTH__INST_unpack_half;
}

/* The position of an element within a word is written several times, so it gets a name. */
static bool repeats(const render *r, const berth__inst *reader, berth__x x) {
  return (reader->code == BERTH__INST_load || reader->code == BERTH__INST_store) && reader->in[0] == x &&
         berth__storage_per_word(r->k->buffers[reader->bits].storage) > 1;
}

/* Whether x may be written inline in `user`. A loop would evaluate it in every round, and both sides of a select may
 * become branches. Sums of f32 end in a name of type f32, since that is where dialects forbid reassociation. */
static bool takes_expression(const render *r, berth__x x, berth__x user) {
  const berth__inst *inst = &r->k->insts[x], *reader = &r->k->insts[user];
  if (repeats(r, reader, x)) return false;
  if (reader->code == BERTH__INST_loop || (reader->code == BERTH__INST_select && reader->in[0] != x)) return false;
  if (!is_arithmetic(inst) || reader->code == BERTH__INST_set) return true;
  return reader->type == BERTH__NUM_F32 && kernel_render_kind_of(reader) == BERTH__INST_PURE;
}

/* Whether nothing between the two can change what is read. */
static bool kernel_render_is_settled(const render *r, berth__x from, berth__x to) {
  for (berth__x x = from + 1; x < to; x++) {
    const berth__inst_kind kind = kernel_render_kind_of(&r->k->insts[x]);
    if (kind == BERTH__INST_ACT || kind == BERTH__INST_BLOCK) return false;
  }
  return true;
}

static bool may_join(const render *r, berth__x x) {
  const berth__inst *inst = &r->k->insts[x];
  const note *n = &r->notes[x];
  if (n->uses != 1 || r->notes[n->user].block != n->block) return false;
  if (inst->code == BERTH__INST_variable || inst->code == BERTH__INST_loop || inst->code == BERTH__INST_exchange ||
      !takes_expression(r, x, n->user))
    return false;
  return kernel_render_kind_of(inst) == BERTH__INST_PURE ||
         (kernel_render_kind_of(inst) == BERTH__INST_READ && kernel_render_is_settled(r, x, r->notes[n->user].at));
}

static void choose_names(render *r) {
  for (size_t i = r->k->n_insts; i-- > 0;)
    if (may_join(r, (berth__x)i)) r->notes[i].at = r->notes[r->notes[i].user].at;
  /* An expression that has become too long ends here. Its inlined parts are then written at its own position, which is
   * earlier. */
  for (berth__x x = 0; x < r->k->n_insts; x++) {
    const berth__inst *inst = &r->k->insts[x];
    r->notes[x].size = 1;
    for (uint32_t i = 0; i < n_operands(inst); i++) {
      const berth__x in = inst->in[i];
      if (r->notes[in].at != in) r->notes[x].size += r->notes[in].size;
    }
    if (r->notes[x].size >= LONGEST) r->notes[x].at = x;
  }
}

static bool has_name(const render *r, berth__x x) { return r->notes[x].at == x && !is_word(&r->k->insts[x]); }

/* ---- Rules ---- */

static bool kernel_render_is_comparison(uint8_t code) {
  return code == BERTH__INST_eq || code == BERTH__INST_ne || code == BERTH__INST_lt || code == BERTH__INST_le;
}

static bool is_positive(const render *r, berth__x x) { return r->k->insts[x].low > 0; }

static const char *division_rule(const render *r, const berth__inst *inst) {
  const bool is_rem = inst->code == BERTH__INST_rem;
  const char *plain = r->d->rule[inst->code][inst->type];
  if (inst->type == BERTH__NUM_F32) return plain;
  if (inst->type == BERTH__NUM_U32) {
    if (is_positive(r, inst->in[1])) return plain;
    return is_rem ? "berth_rem_u32(#a, #b)" : "berth_div_u32(#a, #b)";
  }
  if (is_positive(r, inst->in[1]) && (!is_rem || r->k->insts[inst->in[0]].low >= 0)) return plain;
  return is_rem ? "berth_rem_i32(#a, #b)" : "berth_div_i32(#a, #b)";
}

/* A negative number that can be negated. */
static bool is_negative(const berth__inst *inst) {
  if (inst->code != BERTH__INST_constant || (inst->bits & 0x80000000u) == 0) return false;
  return inst->type == BERTH__NUM_F32 ? (inst->bits & 0x7f800000u) != 0x7f800000u
                                      : inst->type == BERTH__NUM_I32 && inst->bits != 0x80000000u;
}

/* ---- Conditions that must be uniform in a workgroup ---- */

static bool reads_memory(const render *r, const berth__inst *inst) {
  if (inst->code == BERTH__INST_load || inst->code == BERTH__INST_part || inst->code == BERTH__INST_shared_load)
    return true;
  if (kernel_render_kind_of(inst) != BERTH__INST_PURE) return false;
  for (uint32_t i = 0; i < n_operands(inst); i++)
    if (reads_memory(r, &r->k->insts[inst->in[i]])) return true;
  return false;
}

static bool holds_barrier(const render *r, const berth__inst *block) {
  for (const berth__inst *inst = block + 1; inst < r->k->insts + r->k->n_insts; inst++) {
    if (inst->code == BERTH__INST_barrier || inst->code == BERTH__INST_exchange) return true;
    if (inst->code == BERTH__INST_end && inst->depth == block->depth) return false;
  }
  return false;
}

static bool is_together(const render *r, const berth__inst *inst) {
  return r->d->together != NULL && holds_barrier(r, inst) && reads_memory(r, &r->k->insts[inst->in[0]]);
}

/* Whether the words of the buffer's array are accessed as atomics. */
static bool is_atomic(const render *r, const berth__inst *inst) {
  return r->d->atomic_open != NULL &&
         berth__dialect_is_atomic(r->k, r->desc, berth__dialect_binding(r->desc, inst->bits));
}

static const char *store_rule(const render *r, const berth__inst *inst) {
  const berth__storage storage = r->k->buffers[inst->bits].storage;
  return is_atomic(r, inst) && r->d->atomic_store[storage] != NULL ? r->d->atomic_store[storage] : r->d->store[storage];
}

static const char *loop_rule(const render *r, const berth__inst *inst) {
  const char *plain = r->d->rule[BERTH__INST_loop][0];
  if (r->d->loop_together == NULL || !holds_barrier(r, inst)) return plain;
  if (reads_memory(r, &r->k->insts[inst->in[0]])) return r->d->both_together;
  return reads_memory(r, &r->k->insts[inst->in[1]]) ? r->d->loop_together : plain;
}

/* An i32 that may overflow: it has the full range (range.c). */
static bool may_wrap(const berth__inst *inst) {
  return inst->type == BERTH__NUM_I32 && inst->low == INT32_MIN && inst->high == INT32_MAX;
}

static const char *rule_of(const render *r, const berth__inst *inst) {
  if (r->d->wrap[inst->code] != NULL && may_wrap(inst)) return r->d->wrap[inst->code];
  switch ((berth__inst_code)inst->code) {
    case BERTH__INST_if:
      if (is_together(r, inst)) return r->d->together;
      break;
    case BERTH__INST_loop: return loop_rule(r, inst);
    case BERTH__INST_add:
      if (is_negative(&r->k->insts[inst->in[1]])) return r->d->minus;
      break;
    case BERTH__INST_div:
    case BERTH__INST_rem: return division_rule(r, inst);
    case BERTH__INST_convert: return r->d->convert[r->k->insts[inst->in[0]].type][inst->type];
    case BERTH__INST_bits: return r->d->bits[r->k->insts[inst->in[0]].type][inst->type];
    case BERTH__INST_byte:
      return r->d->byte[r->k->insts[inst->in[0]].type == BERTH__NUM_I32][r->k->insts[inst->in[1]].bits & 3u];
    case BERTH__INST_load: return r->d->load[r->k->buffers[inst->bits].storage];
    case BERTH__INST_quad: return r->d->quad != NULL ? r->d->quad : "$p";
    case BERTH__INST_part:
      return r->d->quad != NULL ? r->d->part[inst->type] : r->d->load[r->k->buffers[inst->bits].storage];
    case BERTH__INST_store: return store_rule(r, inst);
    case BERTH__INST_shared_store:
      if (berth__storage_per_word(r->k->shared[inst->bits].storage) != 1)
        return r->d->shared_store[r->k->shared[inst->bits].storage];
      break;
    default: break;
  }
  const uint8_t type = kernel_render_is_comparison(inst->code) ? r->k->insts[inst->in[0]].type : inst->type;
  return r->d
      ->rule[inst->code]
            [kernel_render_kind_of(inst) == BERTH__INST_PURE || kernel_render_kind_of(inst) == BERTH__INST_READ ? type
                                                                                                                : 0];
}

static void kernel_render_expand(render *r, const char *rule, berth__x x);

static void kernel_render_add(render *r, const char *text) { berth__text_add(r->out, text, strlen(text)); }

static void add_name(render *r, berth__x x) {
  const uint8_t code = r->k->insts[x].code;
  const bool counts = code == BERTH__INST_loop || code == BERTH__INST_each;
  const char *letter = counts ? r->d->counter : code == BERTH__INST_variable ? "x" : "v";
  berth__text_printf(r->out, "%s%u", letter, x);
}

/* Whether there is an operator or a space outside all brackets. */
static bool is_many_words(const char *rule) {
  uint32_t depth = 0;
  if (strchr("-!~", rule[0]) != NULL) return true;
  for (const char *c = rule; *c != '\0'; c++) {
    if (*c == '(' || *c == '[') depth++;
    if (*c == ')' || *c == ']') depth--;
    if (*c == ' ' && depth == 0) return true;
  }
  return false;
}

static void kernel_render_add_operand(render *r, berth__x x, bool alone) {
  const berth__inst *inst = &r->k->insts[x];
  if (has_name(r, x)) {
    add_name(r, x);
    return;
  }
  const bool is_constant = inst->code == BERTH__INST_constant;
  /* A sign is never written next to another. */
  const bool wrapped = !alone && (is_constant ? is_negative(inst) : is_many_words(rule_of(r, inst)));
  if (wrapped) kernel_render_add(r, "(");
  if (is_constant) {
    r->d->literal(r->out, (berth__number)inst->type, inst->bits);
  } else {
    kernel_render_expand(r, rule_of(r, inst), x);
  }
  if (wrapped) kernel_render_add(r, ")");
}

static void add_opposite(render *r, berth__x x) {
  const berth__inst *inst = &r->k->insts[x];
  const uint32_t bits = inst->type == BERTH__NUM_F32 ? inst->bits ^ 0x80000000u : 0u - inst->bits;
  r->d->literal(r->out, (berth__number)inst->type, bits);
}

static void add_index(render *r, berth__x x) {
  const berth__x index = r->k->insts[x].in[0];
  uint32_t bits;
  if (berth__x_is_constant(r->k, index, &bits)) {
    r->d->literal(r->out, BERTH__NUM_U32, bits);
  } else {
    kernel_render_expand(r, r->d->convert[BERTH__NUM_I32][BERTH__NUM_U32], x);
  }
}

/* In languages without quad loads, a quad is the position of its first word. */
static void add_part_place(render *r, berth__x x) {
  const uint32_t which = r->k->insts[r->k->insts[x].in[1]].bits;
  kernel_render_add_operand(r, r->k->insts[x].in[0], true);
  if (which == 0) return;
  kernel_render_add(r, " + ");
  r->d->literal(r->out, BERTH__NUM_U32, which);
}

static void add_place(render *r, berth__x x) {
  uint32_t bits;
  if (r->k->insts[x].code == BERTH__INST_part) {
    add_part_place(r, x);
    return;
  }
  kernel_render_expand(r, r->d->begin, x);
  if (berth__x_is_constant(r->k, r->k->insts[x].in[0], &bits) && bits == 0) return;
  kernel_render_add(r, " + ");
  add_index(r, x);
  if (r->k->insts[x].code != BERTH__INST_quad) return;
  kernel_render_add(r, " * ");
  r->d->literal(r->out, BERTH__NUM_U32, 4);
}

/* Opens the access to the word at the position that follows. */
static void open_word(render *r, berth__x x) {
  if (is_atomic(r, &r->k->insts[x])) kernel_render_add(r, r->d->atomic_open);
  kernel_render_expand(r, r->desc->windows ? r->d->window : r->d->arena, x);
  kernel_render_add(r, "[");
}

static void kernel_render_add_part(render *r, char part, bool alone, berth__x x) {
  const berth__inst *inst = &r->k->insts[x];
  switch (part) {
    case 'a': kernel_render_add_operand(r, inst->in[0], alone); break;
    case 'b': kernel_render_add_operand(r, inst->in[1], alone); break;
    case 'c': kernel_render_add_operand(r, inst->in[2], alone); break;
    case 'm': add_opposite(r, inst->in[1]); break;
    case 'i': add_index(r, x); break;
    case 'p': add_place(r, x); break;
    case 'w': kernel_render_expand(r, r->desc->windows ? r->d->window : r->d->arena, x); break;
    case 'q': kernel_render_expand(r, r->desc->windows ? r->d->quad_window : r->d->quad_arena, x); break;
    case 'k': berth__text_printf(r->out, "%c", "xyzw"[r->k->insts[inst->in[1]].bits & 3u]); break;
    case '[': open_word(r, x); break;
    case ']': kernel_render_add(r, is_atomic(r, inst) ? r->d->atomic_close : "]"); break;
    case 'o': berth__text_printf(r->out, "%u", berth__dialect_binding(r->desc, inst->bits)); break;
    case 'n': berth__text_printf(r->out, "%u", inst->bits); break;
    case 'l': berth__text_printf(r->out, "%u", inst->bits & 255u); break;
    case 'h': berth__text_printf(r->out, "%u", inst->bits >> 8); break;
    case 'v': add_name(r, x); break;
    case 't': kernel_render_add(r, r->d->type[inst->type]); break;
    default: kernel_render_expand(r, rule_of(r, inst), x); break; /* e */
  }
}

static void kernel_render_expand(render *r, const char *rule, berth__x x) {
  while (*rule != '\0') {
    const size_t plain = strcspn(rule, "$#");
    berth__text_add(r->out, rule, plain);
    rule += plain;
    if (*rule == '\0') return;
    kernel_render_add_part(r, rule[1], rule[0] == '#', x);
    rule += 2;
  }
}

/* ---- Functions ---- */

static const char *word(const berth__dialect *d, const char *name, size_t size) {
  const struct {
    const char *name, *word;
  } words[] = {
      {"f", d->words.f32},        {"i", d->words.i32},         {"u", d->words.u32},       {"asf", d->words.f32_bits},
      {"asu", d->words.u32_bits}, {"select", d->words.select}, {"round", d->words.round}, {"tou", d->words.to_u32},
  };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strlen(words[i].name) == size && memcmp(words[i].name, name, size) == 0) return words[i].word;
  return "";
}

static void kernel_render_add_function(render *r, const berth__function *function) {
  const char *open = r->d->words.open[function->shape], *name = strstr(open, "$v"), *rest = function->body;
  berth__text_printf(r->out, "%.*s%s%s\n", (int)(name - open), open, function->name, name + 2);
  while (*rest != '\0') {
    const size_t plain = strcspn(rest, "@");
    berth__text_add(r->out, rest, plain);
    rest += plain;
    if (*rest == '\0') break;
    const size_t size = strspn(++rest, "abcdefghijklmnopqrstuvwxyz");
    kernel_render_add(r, word(r->d, rest, size));
    rest += size;
  }
  kernel_render_add(r, "}\n");
}

static void add_functions(render *r) {
  for (size_t i = 0; i < berth__n_functions; i++) {
    const char *name = berth__functions[i].name;
    for (berth__x x = 0; x < r->k->n_insts; x++) {
      const berth__inst *inst = &r->k->insts[x];
      const char *rule = inst->code == BERTH__INST_constant ? NULL : rule_of(r, inst);
      if (rule == NULL || strstr(rule, name) == NULL) continue;
      kernel_render_add_function(r, &berth__functions[i]);
      break;
    }
  }
}

/* ---- Lines ---- */

static void add_line(render *r, berth__x x) {
  const berth__inst *inst = &r->k->insts[x];
  const berth__inst_kind kind = kernel_render_kind_of(inst);
  if (is_word(inst) || r->notes[x].at != x) return;
  for (uint32_t i = 0; i <= inst->depth; i++) kernel_render_add(r, "  ");
  if (inst->code == BERTH__INST_loop && (inst->bits & 1u) != 0) kernel_render_add(r, r->d->unrolled);
  const bool is_value = (kind == BERTH__INST_PURE || kind == BERTH__INST_READ) && inst->code != BERTH__INST_variable;
  const bool is_quad = inst->code == BERTH__INST_quad && r->d->quad != NULL;
  kernel_render_expand(r, is_quad ? r->d->quad_value : is_value ? r->d->value : rule_of(r, inst), x);
  kernel_render_add(r, "\n");
}

/* Checks that everything the kernel uses has a rule: a dialect may lack some. */
static berth_status check_rules(const render *r, berth_error *err) {
  for (berth__x x = 0; x < r->k->n_insts; x++) {
    const berth__inst *inst = &r->k->insts[x];
    if (inst->depth >= DEEPEST || (inst->code != BERTH__INST_constant && rule_of(r, inst) == NULL))
      return berth__fail(err, BERTH_INTERNAL, "kernel '%s': instruction %u, %s, has no form in this language",
                         r->k->name, x, berth__inst_name((berth__inst_code)inst->code));
  }
  return BERTH_OK;
}

berth_status berth__render(const berth__kernel *kernel, const berth__dialect *dialect, const berth__render_desc *desc,
                           berth__text *out, berth_error *err) {
  render r = {.k = kernel, .d = dialect, .desc = desc, .out = out};
  BERTH__TRY(check_rules(&r, err));
  r.notes = berth__alloc_array_zero(kernel->ctx, kernel->n_insts, sizeof *r.notes);
  if (r.notes == NULL) return berth__fail_nomem(err, "the source of a kernel");
  kernel_render_count_uses(&r);
  choose_names(&r);
  dialect->head(kernel, desc, out);
  add_functions(&r);
  dialect->open(kernel, desc, out);
  for (berth__x x = 0; x < kernel->n_insts; x++) add_line(&r, x);
  kernel_render_add(&r, dialect->close);
  berth__free(kernel->ctx, r.notes);
  return out->status == BERTH_OK ? BERTH_OK : berth__fail_nomem(err, "the source of a kernel");
}
