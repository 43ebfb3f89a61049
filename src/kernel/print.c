/* Prints a kernel as readable text: results with a single use are printed inline. */
#include <math.h>

#include "base/text.h"
#include "kernel/lanes.h"

#define MOST_INLINE 16u /* instructions per expression, so that lines stay readable */

/* One per instruction. */
typedef struct note {
  uint32_t n_uses;
  uint32_t n_acts;    /* side effects before it: reads must not be moved over these */
  berth__x statement; /* the statement that contains it */
  uint32_t size;      /* instructions of its expression */
  uint32_t name;      /* number in the names of results, variables and loops */
} note;

typedef struct printer {
  const berth__kernel *k;
  note *notes;
  berth__text text;
} printer;

static const char *const type_names[] = {"f32", "i32", "u32", "bool"};

static berth__inst_kind kernel_print_kind_of(const berth__inst *inst) {
  return berth__inst_kind_of((berth__inst_code)inst->code);
}

static uint32_t kernel_print_operands_of(const berth__inst *inst) {
  return berth__inst_operands((berth__inst_code)inst->code);
}

static bool stands_alone(const berth__inst *inst) {
  berth__inst_kind kind = kernel_print_kind_of(inst);
  return kind == BERTH__INST_ACT || kind == BERTH__INST_BLOCK || inst->code == BERTH__INST_variable;
}

static void kernel_print_count_uses(printer *p) {
  uint32_t acts = 0;
  for (berth__x x = 0; x < p->k->n_insts; ++x) {
    const berth__inst *inst = &p->k->insts[x];
    p->notes[x] = (note){.n_acts = acts, .statement = x};
    if (kernel_print_kind_of(inst) == BERTH__INST_ACT || kernel_print_kind_of(inst) == BERTH__INST_BLOCK) acts += 1;
    for (uint32_t i = 0; i < kernel_print_operands_of(inst); ++i) p->notes[inst->in[i]].n_uses += 1;
  }
}

/* The statement that uses a result comes after it, so the list is walked backwards. */
static void find_statements(printer *p) {
  for (berth__x user = (berth__x)p->k->n_insts; user-- > 0;) {
    const berth__inst *inst = &p->k->insts[user];
    for (uint32_t i = 0; i < kernel_print_operands_of(inst); ++i) {
      berth__x x = inst->in[i], statement = p->notes[user].statement;
      const berth__inst *operand = &p->k->insts[x];
      if (p->notes[x].n_uses != 1 || stands_alone(operand)) continue;
      bool moves_over_acts = p->notes[statement].n_acts != p->notes[x].n_acts;
      if (kernel_print_kind_of(operand) == BERTH__INST_PURE || !moves_over_acts) p->notes[x].statement = statement;
    }
  }
}

static bool is_simple(const berth__inst *inst) {
  return inst->code == BERTH__INST_constant || inst->code == BERTH__INST_group || inst->code == BERTH__INST_thread;
}

static bool is_inline(const printer *p, berth__x x) { return p->notes[x].statement != x || is_simple(&p->k->insts[x]); }

static void cut_long_ones(printer *p) {
  for (berth__x x = 0; x < p->k->n_insts; ++x) {
    const berth__inst *inst = &p->k->insts[x];
    p->notes[x].size = 1;
    for (uint32_t i = 0; i < kernel_print_operands_of(inst); ++i) {
      if (is_inline(p, inst->in[i])) p->notes[x].size += p->notes[inst->in[i]].size;
    }
    if (p->notes[x].size > MOST_INLINE) p->notes[x].statement = x;
  }
}

static void kernel_print_name_results(printer *p) {
  uint32_t n_loops = 0, n_variables = 0, n_results = 0;
  for (berth__x x = 0; x < p->k->n_insts; ++x) {
    const berth__inst *inst = &p->k->insts[x];
    bool has_result = kernel_print_kind_of(inst) == BERTH__INST_PURE || kernel_print_kind_of(inst) == BERTH__INST_READ;
    if (inst->code == BERTH__INST_loop || inst->code == BERTH__INST_each) {
      p->notes[x].name = n_loops++;
    } else if (inst->code == BERTH__INST_variable) {
      p->notes[x].name = n_variables++;
    } else if (has_result && !is_inline(p, x)) {
      p->notes[x].name = n_results++;
    }
  }
}

/* ---- Expressions ---- */

typedef struct op_sign {
  const char *sign;
  int rank; /* precedence; 0: always in brackets next to another operator */
} op_sign;

static op_sign operator_of(berth__inst_code code) {
  switch (code) {
    case BERTH__INST_mul: return (op_sign){"*", 4};
    case BERTH__INST_div: return (op_sign){"/", 4};
    case BERTH__INST_rem: return (op_sign){"%", 4};
    case BERTH__INST_add: return (op_sign){"+", 3};
    case BERTH__INST_sub: return (op_sign){"-", 3};
    case BERTH__INST_lt: return (op_sign){"<", 2};
    case BERTH__INST_le: return (op_sign){"<=", 2};
    case BERTH__INST_eq: return (op_sign){"==", 2};
    case BERTH__INST_ne: return (op_sign){"!=", 2};
    case BERTH__INST_and: return (op_sign){"&", 0};
    case BERTH__INST_or: return (op_sign){"|", 0};
    case BERTH__INST_xor: return (op_sign){"^", 0};
    case BERTH__INST_shl: return (op_sign){"<<", 0};
    case BERTH__INST_shr: return (op_sign){">>", 0};
    case BERTH__INST_select: return (op_sign){"?", 0};
    default: return (op_sign){NULL, 5};
  }
}

static void print_constant(printer *p, const berth__inst *inst) {
  const berth__lane value = {.u = inst->bits};
  switch (inst->type) {
    case BERTH__NUM_F32:
      berth__text_printf(&p->text,
                         isfinite(value.f) && value.f == truncf(value.f) && fabsf(value.f) < 1e7f ? "%.1f" : "%.9g",
                         (double)value.f);
      return;
    case BERTH__NUM_I32: berth__text_printf(&p->text, "%d", (int)value.i); return;
    case BERTH__NUM_U32: berth__text_printf(&p->text, "%uu", (unsigned)value.u); return;
    default: berth__text_printf(&p->text, "%s", value.u != 0 ? "true" : "false"); return;
  }
}

static void kernel_print_value(printer *p, berth__x x);

/* An operand of an operator with precedence `rank`. */
static void print_operand(printer *p, berth__x x, int rank, bool is_right) {
  op_sign inner = operator_of((berth__inst_code)p->k->insts[x].code);
  bool is_bare = inner.sign == NULL || !is_inline(p, x);
  bool has_brackets =
      !is_bare && (rank == 0 || inner.rank == 0 || inner.rank < rank || (inner.rank == rank && is_right));
  if (has_brackets) berth__text_printf(&p->text, "(");
  kernel_print_value(p, x);
  if (has_brackets) berth__text_printf(&p->text, ")");
}

static void print_call(printer *p, const char *name, const berth__inst *inst) {
  berth__text_printf(&p->text, "%s(", name);
  for (uint32_t i = 0; i < kernel_print_operands_of(inst); ++i) {
    if (i > 0) berth__text_printf(&p->text, ", ");
    kernel_print_value(p, inst->in[i]);
  }
  berth__text_printf(&p->text, ")");
}

static void print_element(printer *p, char array, const berth__inst *inst) {
  berth__text_printf(&p->text, "%c%u[", array, (unsigned)inst->bits);
  kernel_print_value(p, inst->in[0]);
  berth__text_printf(&p->text, "]");
}

static void print_operator(printer *p, const berth__inst *inst, op_sign op) {
  print_operand(p, inst->in[0], op.rank, false);
  berth__text_printf(&p->text, " %s ", op.sign);
  print_operand(p, inst->in[1], op.rank, true);
  if (inst->code != BERTH__INST_select) return;
  berth__text_printf(&p->text, " : ");
  print_operand(p, inst->in[2], op.rank, true);
}

static void print_expression(printer *p, berth__x x) {
  const berth__inst *inst = &p->k->insts[x];
  op_sign op = operator_of((berth__inst_code)inst->code);
  switch (inst->code) {
    case BERTH__INST_constant: print_constant(p, inst); return;
    case BERTH__INST_load: print_element(p, 'b', inst); return;
    case BERTH__INST_quad: print_element(p, 'q', inst); return;
    case BERTH__INST_part:
      kernel_print_value(p, inst->in[0]);
      berth__text_printf(&p->text, ".%c", "xyzw"[p->k->insts[inst->in[1]].bits & 3u]);
      return;
    case BERTH__INST_shared_load: print_element(p, 's', inst); return;
    case BERTH__INST_sum:
    case BERTH__INST_sum_row:
    case BERTH__INST_sum_line:
    case BERTH__INST_sum_column: print_call(p, berth__inst_name((berth__inst_code)inst->code), inst); return;
    case BERTH__INST_local_load: print_element(p, 'l', inst); return;
    case BERTH__INST_get: berth__text_printf(&p->text, "v%u", (unsigned)p->notes[inst->in[0]].name); return;
    case BERTH__INST_group:
    case BERTH__INST_thread: berth__text_printf(&p->text, "%s", berth__inst_name((berth__inst_code)inst->code)); return;
    case BERTH__INST_convert: print_call(p, type_names[inst->type], inst); return;
    case BERTH__INST_bits:
      berth__text_printf(&p->text, "%s_", type_names[inst->type]);
      print_call(p, "bits", inst);
      return;
    default: break;
  }
  if (op.sign != NULL) {
    print_operator(p, inst, op);
  } else {
    print_call(p, berth__inst_name((berth__inst_code)inst->code), inst);
  }
}

static void print_loop_name(printer *p, berth__x x) {
  const uint32_t name = p->notes[x].name;
  berth__text_printf(&p->text, "%c", (int)('i' + name % 8));
  if (name >= 8) berth__text_printf(&p->text, "%u", (unsigned)(name / 8));
}

static void kernel_print_value(printer *p, berth__x x) {
  if (p->k->insts[x].code == BERTH__INST_loop || p->k->insts[x].code == BERTH__INST_each) {
    print_loop_name(p, x);
  } else if (is_inline(p, x)) {
    print_expression(p, x);
  } else {
    berth__text_printf(&p->text, "x%u", (unsigned)p->notes[x].name);
  }
}

/* ---- Statements ---- */

/* v0 += e for v0 = v0 + e. */
static void print_set(printer *p, const berth__inst *inst) {
  const berth__inst *value = &p->k->insts[inst->in[1]];
  berth__text_printf(&p->text, "v%u ", (unsigned)p->notes[inst->in[0]].name);
  bool adds = value->code == BERTH__INST_add && is_inline(p, inst->in[1]);
  for (int i = 0; adds && i < 2; ++i) {
    const berth__inst *old = &p->k->insts[value->in[i]];
    if (old->code != BERTH__INST_get || old->in[0] != inst->in[0] || !is_inline(p, value->in[i])) continue;
    berth__text_printf(&p->text, "+= ");
    kernel_print_value(p, value->in[1 - i]);
    return;
  }
  berth__text_printf(&p->text, "= ");
  kernel_print_value(p, inst->in[1]);
}

static void print_store(printer *p, char array, const berth__inst *inst) {
  print_element(p, array, inst);
  berth__text_printf(&p->text, " = ");
  kernel_print_value(p, inst->in[1]);
}

static void print_store_max(printer *p, const berth__inst *inst) {
  print_element(p, 'b', inst);
  berth__text_printf(&p->text, " max= ");
  kernel_print_value(p, inst->in[1]);
}

static void print_quad_store(printer *p, const berth__inst *inst) {
  berth__text_printf(&p->text, "q%u[", (unsigned)(inst->bits & 255u));
  kernel_print_value(p, inst->in[0]);
  berth__text_printf(&p->text, "] = l%u", (unsigned)(inst->bits >> 8));
}

static void print_loop(printer *p, berth__x x) {
  const berth__inst *inst = &p->k->insts[x];
  berth__text_printf(&p->text, "for ");
  print_loop_name(p, x);
  berth__text_printf(&p->text, " in ");
  print_operand(p, inst->in[0], 5, false);
  berth__text_printf(&p->text, "..");
  print_operand(p, inst->in[1], 5, false);
  if (p->k->insts[inst->in[2]].bits != 1) {
    berth__text_printf(&p->text, " by ");
    kernel_print_value(p, inst->in[2]);
  }
  berth__text_printf(&p->text, inst->bits != 0 ? " unrolled {" : " {");
}

static void print_sum_set(printer *p, const berth__inst *inst) {
  berth__text_printf(&p->text, "sum(");
  kernel_print_value(p, inst->in[0]);
  berth__text_printf(&p->text, ", ");
  kernel_print_value(p, inst->in[1]);
  berth__text_printf(&p->text, ") = ");
  kernel_print_value(p, inst->in[2]);
}

static void print_copy(printer *p, const berth__inst *inst) {
  berth__text_printf(&p->text, "s%u[", (unsigned)(inst->bits & 255u));
  kernel_print_value(p, inst->in[0]);
  berth__text_printf(&p->text, "] <- b%u[", (unsigned)(inst->bits >> 8));
  kernel_print_value(p, inst->in[1]);
  berth__text_printf(&p->text, "] if ");
  kernel_print_value(p, inst->in[2]);
}

static void print_each(printer *p, berth__x x) {
  berth__text_printf(&p->text, "for each ");
  print_loop_name(p, x);
  berth__text_printf(&p->text, " of sums %u {", (unsigned)p->k->insts[x].bits);
}

static void print_statement(printer *p, berth__x x) {
  const berth__inst *inst = &p->k->insts[x];
  switch (inst->code) {
    case BERTH__INST_loop: print_loop(p, x); return;
    case BERTH__INST_each: print_each(p, x); return;
    case BERTH__INST_if:
      berth__text_printf(&p->text, "if ");
      kernel_print_value(p, inst->in[0]);
      berth__text_printf(&p->text, " {");
      return;
    case BERTH__INST_else: berth__text_printf(&p->text, "} else {"); return;
    case BERTH__INST_end: berth__text_printf(&p->text, "}"); return;
    case BERTH__INST_store: print_store(p, 'b', inst); break;
    case BERTH__INST_quad_store: print_quad_store(p, inst); break;
    case BERTH__INST_store_max: print_store_max(p, inst); break;
    case BERTH__INST_shared_store: print_store(p, 's', inst); break;
    case BERTH__INST_local_store: print_store(p, 'l', inst); break;
    case BERTH__INST_set: print_set(p, inst); break;
    case BERTH__INST_shared_copy: print_copy(p, inst); break;
    case BERTH__INST_sum_set: print_sum_set(p, inst); break;
    case BERTH__INST_row_largest:
    case BERTH__INST_row_total:
      berth__text_printf(&p->text, "l%u = %s of sums %u", (unsigned)(inst->bits >> 8),
                         berth__inst_name((berth__inst_code)inst->code), (unsigned)(inst->bits & 255u));
      break;
    case BERTH__INST_wait: berth__text_printf(&p->text, "wait %u", (unsigned)inst->bits); break;
    case BERTH__INST_ahead:
    case BERTH__INST_multiply:
      berth__text_printf(&p->text, "%s %u of slot ", berth__inst_name((berth__inst_code)inst->code),
                         (unsigned)inst->bits);
      kernel_print_value(p, inst->in[0]);
      break;
    case BERTH__INST_settle:
    case BERTH__INST_join:
      berth__text_printf(&p->text, "%s sums %u", berth__inst_name((berth__inst_code)inst->code), (unsigned)inst->bits);
      break;
    case BERTH__INST_commit:
    case BERTH__INST_break:
    case BERTH__INST_await:
    case BERTH__INST_release:
    case BERTH__INST_barrier: berth__text_printf(&p->text, "%s", berth__inst_name((berth__inst_code)inst->code)); break;
    case BERTH__INST_variable:
      berth__text_printf(&p->text, "var v%u = ", (unsigned)p->notes[x].name);
      kernel_print_value(p, inst->in[0]);
      break;
    default:
      berth__text_printf(&p->text, "x%u = ", (unsigned)p->notes[x].name);
      print_expression(p, x);
      break;
  }
  berth__text_printf(&p->text, ";");
}

static void kernel_print_head(printer *p) {
  const berth__kernel *k = p->k;
  berth__text_printf(&p->text, "kernel %s: %llu x %u threads\n", k->name, (unsigned long long)k->n_groups,
                     (unsigned)k->group_size);
  for (uint32_t i = 0; i < k->n_buffers; ++i) {
    const berth__kernel_buffer *buffer = &k->buffers[i];
    berth__text_printf(&p->text, "  b%u: %s%s%s\n", (unsigned)i, berth_type_name(buffer->storage),
                       buffer->is_read ? " read" : "", buffer->is_written ? " written" : "");
  }
  for (uint32_t i = 0; i < k->n_shared; ++i) {
    const bool is_narrow = berth__storage_per_word(k->shared[i].storage) != 1;
    berth__text_printf(&p->text, "  s%u: %s[%u] shared", (unsigned)i,
                       is_narrow ? berth_type_name(k->shared[i].storage) : type_names[k->shared[i].type],
                       (unsigned)k->shared[i].count);
    if (k->shared[i].over != 0) berth__text_printf(&p->text, " over s%u", (unsigned)(k->shared[i].over - 1));
    berth__text_printf(&p->text, "\n");
  }
  for (uint32_t i = 0; i < k->n_sums; ++i) {
    static const char *const kinds[] = {"f32", "tf32x3", "tf32", "bf16", "f16"};
    const berth__kernel_sums *sums = &k->sums[i];
    berth__text_printf(&p->text, "  sums %u: %u x %u of s%u and s%u, %s, %u slots of %u", (unsigned)i,
                       (unsigned)sums->left.lines, (unsigned)sums->right.lines, (unsigned)sums->left.array,
                       (unsigned)sums->right.array, kinds[sums->kind], (unsigned)sums->left.slots,
                       (unsigned)sums->left.depth);
    if (sums->is_late) berth__text_printf(&p->text, " for a warpgroup");
    if (sums->by_fours) berth__text_printf(&p->text, " by fours");
    if (sums->parts > 1) berth__text_printf(&p->text, " in %u parts", (unsigned)sums->parts);
    berth__text_printf(&p->text, "\n");
  }
  for (uint32_t i = 0; i < k->n_local; ++i) {
    berth__text_printf(&p->text, "  l%u: %s[%u] of a thread\n", (unsigned)i, type_names[k->local[i].type],
                       (unsigned)k->local[i].count);
  }
}

berth_status berth__kernel_print(const berth__kernel *kernel, berth_write_fn write, void *user, berth_error *err) {
  printer p = {.k = kernel};
  p.notes = berth__alloc_array(kernel->ctx, kernel->n_insts, sizeof *p.notes);
  if (p.notes == NULL) return berth__fail_nomem(err, "the form of a kernel");
  berth__text_init(&p.text, kernel->ctx, write, user);
  kernel_print_count_uses(&p);
  find_statements(&p);
  cut_long_ones(&p);
  kernel_print_name_results(&p);
  kernel_print_head(&p);
  for (berth__x x = 0; x < kernel->n_insts; ++x) {
    if (is_inline(&p, x)) continue;
    berth__text_printf(&p.text, "%*s", 2 * kernel->insts[x].depth, "");
    print_statement(&p, x);
    berth__text_printf(&p.text, "\n");
  }
  berth__free(kernel->ctx, p.notes);
  return berth__text_finish(&p.text, err);
}
