/* Finishes a kernel: removes what never runs or is never needed, and renumbers the rest. */
#include "kernel/maker.h"

/* One per instruction. */
typedef struct mark {
  berth__x parent; /* the loop or if that contains it */
  berth__x number; /* after renumbering */
  bool is_gone;    /* never runs, or bounds a block that is removed */
  bool is_needed;
  bool is_seen; /* its operands have been marked */
} mark;

typedef struct open {
  berth__x opener;
  bool goes;     /* the bounds of this block are removed */
  bool is_gone;  /* the contents are removed */
  bool is_outer; /* the code around it is kept */
  bool is_known, condition;
} open;

static void enter_block(const berth__kernel *k, berth__x x, const open *outer, open *block) {
  const berth__inst *inst = &k->insts[x];
  uint32_t condition = 0;
  *block = (open){.opener = x, .is_gone = outer->is_gone, .is_outer = outer->is_gone};
  if (inst->code == BERTH__INST_each) return;
  if (inst->code == BERTH__INST_loop) {
    block->goes = (inst->bits & BERTH__LOOP_ONCE) != 0;
  } else if (berth__x_is_constant(k, inst->in[0], &condition)) {
    block->goes = true;
    block->is_known = true;
    block->condition = condition != 0;
    block->is_gone = outer->is_gone || !block->condition;
  }
}

/* Which block contains each instruction, and whether it can ever run. */
static void mark_blocks(const berth__kernel *k, mark *marks) {
  open blocks[BERTH__MAKER_BLOCKS] = {{.opener = BERTH__X_NONE}};
  uint32_t depth = 0;
  for (berth__x x = 0; x < k->n_insts; ++x) {
    open *block = &blocks[depth];
    marks[x] = (mark){.parent = block->opener, .is_gone = block->is_gone};
    switch (k->insts[x].code) {
      case BERTH__INST_loop:
      case BERTH__INST_each:
      case BERTH__INST_if:
        enter_block(k, x, block, &blocks[depth + 1]);
        marks[x].is_gone = block->is_gone || blocks[depth + 1].goes;
        depth += 1;
        break;
      case BERTH__INST_else:
        marks[x].is_gone = block->is_outer || block->goes;
        if (block->is_known) block->is_gone = block->is_outer || block->condition;
        break;
      case BERTH__INST_end:
        marks[x].is_gone = block->is_outer || block->goes;
        depth -= 1;
        break;
      default: break;
    }
  }
}

static bool is_root(berth__inst_code code) {
  return code == BERTH__INST_store || code == BERTH__INST_quad_store || code == BERTH__INST_store_max ||
         code == BERTH__INST_shared_store || code == BERTH__INST_local_store || code == BERTH__INST_barrier ||
         code == BERTH__INST_await || code == BERTH__INST_release || code == BERTH__INST_shared_copy ||
         code == BERTH__INST_commit || code == BERTH__INST_wait || code == BERTH__INST_multiply ||
         code == BERTH__INST_ahead || code == BERTH__INST_sum_set || code == BERTH__INST_row_largest ||
         code == BERTH__INST_row_total || code == BERTH__INST_join || code == BERTH__INST_settle;
}

/* The loop that a break leaves. */
static berth__x loop_around(const berth__kernel *k, const mark *marks, berth__x x) {
  berth__x parent = marks[x].parent;
  while (parent != BERTH__X_NONE && (k->insts[parent].code != BERTH__INST_loop || marks[parent].is_gone)) {
    parent = marks[parent].parent;
  }
  return parent;
}

static bool is_called_for(const berth__kernel *k, const mark *marks, berth__x x) {
  const berth__inst *inst = &k->insts[x];
  switch (inst->code) {
    case BERTH__INST_set: return marks[inst->in[0]].is_needed;
    case BERTH__INST_break: return marks[loop_around(k, marks, x)].is_needed;
    case BERTH__INST_else:
    case BERTH__INST_end: return marks[marks[x].parent].is_needed;
    default: return is_root((berth__inst_code)inst->code);
  }
}

static void mark_what_it_needs(const berth__kernel *k, mark *marks, berth__x x) {
  berth__x parent = marks[x].parent;
  while (parent != BERTH__X_NONE && marks[parent].is_gone) parent = marks[parent].parent;
  if (parent != BERTH__X_NONE) marks[parent].is_needed = true;
  for (int i = 0; i < 3; ++i) {
    if (k->insts[x].in[i] != BERTH__X_NONE) marks[k->insts[x].in[i]].is_needed = true;
  }
}

/* Marks backwards, repeated until nothing changes: a variable that is set in a loop may be needed earlier in it. */
static void mark_needed(const berth__kernel *k, mark *marks) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (berth__x x = (berth__x)k->n_insts; x-- > 0;) {
      if (marks[x].is_gone || marks[x].is_seen) continue;
      if (!marks[x].is_needed && !is_called_for(k, marks, x)) continue;
      marks[x].is_needed = marks[x].is_seen = goes_on = true;
      mark_what_it_needs(k, marks, x);
    }
  }
}

static void note_access(berth__kernel *k, const berth__inst *inst) {
  const bool is_max = inst->code == BERTH__INST_store_max;
  if (inst->code == BERTH__INST_load || inst->code == BERTH__INST_quad || is_max) k->buffers[inst->bits].is_read = true;
  if (inst->code == BERTH__INST_store || is_max) k->buffers[inst->bits].is_written = true;
  if (inst->code == BERTH__INST_quad_store) k->buffers[inst->bits & 255u].is_written = true;
  if (is_max) k->buffers[inst->bits].is_contended = true;
  for (uint32_t i = 0; inst->code == BERTH__INST_await && i < k->n_buffers; ++i)
    k->buffers[i].is_early = k->buffers[i].is_read;
  if (inst->code == BERTH__INST_shared_copy) k->buffers[inst->bits >> 8].is_read = true;
}

static void count_anew(berth__kernel *k, mark *marks) {
  size_t n = 0;
  uint16_t depth = 0;
  for (uint32_t i = 0; i < k->n_buffers; ++i) {
    k->buffers[i].is_read = k->buffers[i].is_written = k->buffers[i].is_contended = k->buffers[i].is_early = false;
  }
  for (berth__x x = 0; x < k->n_insts; ++x) {
    if (marks[x].is_gone || !marks[x].is_needed) continue;
    berth__inst inst = k->insts[x];
    for (int i = 0; i < 3; ++i) {
      if (inst.in[i] != BERTH__X_NONE) inst.in[i] = marks[inst.in[i]].number;
    }
    if (inst.code == BERTH__INST_end || inst.code == BERTH__INST_else) depth -= 1;
    inst.depth = depth;
    if (inst.code == BERTH__INST_loop || inst.code == BERTH__INST_if || inst.code == BERTH__INST_else ||
        inst.code == BERTH__INST_each)
      depth += 1;
    note_access(k, &inst);
    marks[x].number = (berth__x)n;
    k->insts[n++] = inst;
  }
  k->n_insts = n;
}

static berth_status why(const berth__kernel *k, berth_error *err) {
  if (k->status == BERTH_NOMEM) return berth__fail_nomem(err, "a kernel");
  if (k->status == BERTH_UNSUPPORTED) {
    return berth__fail(err, k->status, "The kernel %s cannot be made: %s.", k->name, k->maker->mistake);
  }
  return berth__fail(err, k->status, "The kernel %s is not well-formed (at `%s`): %s.", k->name,
                     berth__inst_name(k->maker->mistaken), k->maker->mistake);
}

berth_status berth__kernel_finish(berth__kernel *kernel, berth_error *err) {
  berth__kernel *k = kernel;
  if (k == NULL) return berth__fail_nomem(err, "a kernel");
  if (k->maker == NULL) return berth__fail(err, BERTH_INTERNAL, "The kernel %s was finished before.", k->name);
  if (k->depth > 0) berth__maker_mistake(k, BERTH__INST_end, "a block is open at its end");
  if (k->status != BERTH_OK) return why(k, err);
  mark *marks = berth__alloc_array(k->ctx, k->n_insts, sizeof *marks);
  if (marks == NULL) {
    k->status = BERTH_NOMEM;
    return why(k, err);
  }
  mark_blocks(k, marks);
  mark_needed(k, marks);
  count_anew(k, marks);
  berth__free(k->ctx, marks);
  berth__maker_free(k);
  if (k->flops <= 0) k->flops = berth__kernel_flops(k);
  return BERTH_OK;
}
