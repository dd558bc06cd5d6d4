/* Limits of the machine: registers and memory.
 *
 * An unrolled tile needs one register per vector of accumulators, one row of operands and one more.
 * If they exceed the vector registers, compilers spill some to memory: a warning.
 */
#include "base/saturating.h"
#include "program/program_cost.h"
#include "bind/bind.h"

int lanes_of(const struct machine *machine, enum program_dtype dtype) {
  return machine->vector_bytes / (dtype == PROGRAM_F64 ? 8 : 4); /* bf16 is computed in fp32 */
}

static const struct program_tensor *tensor_of(const struct loop_tree *tree,
                                              const struct bound_stage *stage) {
  return &tree->program->tensors.data[stage->tensor];
}

/* The vectors of a vec loop (for a group, all count for its first member), or the iterations of
 * another loop. */
static int64_t copies(const struct loop_tree *tree, const struct bound_stage *stage,
                      const struct step *step) {
  int lanes = lanes_of(&tree->machine, tensor_of(tree, stage)->dtype);
  if (!(loop_marks(tree, step->node) & LOOP_VEC)) return step->extent;
  return step->member ? 1 : (tree->loops[step->node].extent - 1) / lanes + 1;
}

/* The outermost step from which on all loops are vector loops, inside one, or unrolled. */
static int first_unrolled(const struct loop_tree *tree, const struct bound_stage *stage) {
  int first = stage->steps, vec = stage->steps;
  for (int i = 0; i < stage->steps; i++)
    if (vec == stage->steps && (loop_marks(tree, stage->path[i].node) & LOOP_VEC)) vec = i;
  while (first > 0 && (first > vec ||
                       (loop_marks(tree, stage->path[first - 1].node) & (LOOP_VEC | LOOP_UNROLL))))
    first--;
  return first;
}

static int first_of_node(const struct bound_stage *stage, int node) {
  int i = 0;
  while (stage->path[i].node != node) i++;
  return i;
}

int64_t stage_registers(const struct loop_tree *tree, const struct bound_stage *stage) {
  int64_t accumulators = 1, row = 1;
  if (stage->start < 0) return 0;
  int first = first_unrolled(tree, stage), start = first_of_node(stage, stage->start);
  for (int i = first > start ? first : start; i < stage->steps; i++) {
    const struct step *step = &stage->path[i];
    if (step->axis >= tensor_of(tree, stage)->rank) continue;
    accumulators = saturating_mul(accumulators, copies(tree, stage, step));
    if (loop_marks(tree, step->node) & LOOP_VEC && !step->member) row = copies(tree, stage, step);
  }
  return accumulators + row + 1;
}

static void check_registers(const struct binder *b, const struct bound_stage *stage) {
  int64_t registers = stage_registers(b->tree, stage);
  if (registers <= b->tree->machine.registers) return;
  warn(b, stage_place(b, stage), "the tile of '%s' fills %lld registers, the machine has %d",
       stage_name(b, stage), (long long)registers, b->tree->machine.registers);
}

static int64_t bytes_of(const struct binder *b, const struct bound_stage *stage) {
  return saturating_mul(stage->elements, program_dtype_bytes(stage_tensor(b, stage)->dtype));
}

static canvas_status check_buffers(const struct binder *b) {
  const struct machine *m = &b->tree->machine;
  int64_t l1 = 0, memory = 0;
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *stage = &b->tree->stages[i];
    const struct schedule_leaf *leaf = &b->s->nodes.data[stage->node].leaf;
    int64_t bytes = bytes_of(b, stage);
    if (stage->is_output) continue;
    if (leaf->scope == SCOPE_L1 && bytes > m->l1 - l1)
      return reject(b, stage_place(b, stage),
                    "':l1' buffer '%s' takes %lld bytes, of %lld in L1 %lld are left",
                    stage_name(b, stage), (long long)bytes, (long long)m->l1,
                    (long long)(m->l1 - l1));
    if (leaf->scope == SCOPE_L1) l1 += bytes;
    if (bytes > m->memory - memory)
      return reject(b, stage_place(b, stage),
                    "buffer '%s' takes %lld bytes, of %lld for buffers %lld are left",
                    stage_name(b, stage), (long long)bytes, (long long)m->memory,
                    (long long)(m->memory - memory));
    memory += bytes;
  }
  return CANVAS_OK;
}

canvas_status check_limits(const struct binder *b) {
  for (int i = 0; i < b->tree->count; i++) check_registers(b, &b->tree->stages[i]);
  return check_buffers(b);
}
