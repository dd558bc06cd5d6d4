/* Materialise non-affine or guarded operands of a reduction in a buffer, and values that adjacent elements share;
 * transpose element-wise stages that a tile would gather from. Each edit is kept only where the formula predicts fewer
 * cycles.
 *
 *     Y[h] = (if 1 <= h+k && h+k < 9 then X[h+k-1] else 0) * W[k] // sum k:3
 *
 *     X_m[h:10] = if 1 <= h && h < 9 then X[h-1] else 0
 *     Y[h] = X_m[h+k] * W[k] // sum k:3
 *
 *     Y[h, c] = X[h, c] - M[c/3]
 *
 *     M_m[c:96] = M[c/3]
 *     Y[h, c] = X[h, c] - M_m[c]
 */
#include "autoschedule/default_editor.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

/* The only load of the expression, if around it are index conditions alone; -1. */
static int guarded_load(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return n->sort == PX_VALUE ? expr : -1;
  if (n->op != PX_SELECT || !is_index_condition(p, n->arg[0])) return -1;
  int branch = p->nodes.data[n->arg[1]].op == PX_NUMBER ? n->arg[2] : n->arg[1];
  int other = branch == n->arg[1] ? n->arg[2] : n->arg[1];
  return p->nodes.data[other].op == PX_NUMBER ? guarded_load(p, branch) : -1;
}

static const struct default_load *load_at(const struct default_facts *f, int node) {
  for (int i = 0; i < f->loads; i++)
    if (f->load[i].node == node) return &f->load[i];
  return NULL;
}

/* Times that the stage uses each element of the load. */
static double uses_per_element(const struct default_facts *f, const struct default_load *l) {
  double elements = 1;
  for (int i = 0; i < f->t->rank + f->t->reductions; i++)
    if ((l->depends_on | l->guarded) >> i & 1) elements *= (double)f->t->axes[i].size;
  return (double)f->points * (double)f->reduction / elements;
}

/* Each element is that of some adjacent steps of an own axis, no multiple of a vector, as the mean of a group is that of
 * its channels, and is used often: with an element for each step, vectors can run along the axis. */
static bool is_worth_repeating(const struct default_facts *f, const struct default_load *l,
                               int lanes) {
  bool repeats = false;
  for (int i = 0; i < f->t->rank; i++) repeats = repeats || (l->block[i] % lanes && !l->stride[i]);
  return repeats && !l->guarded && uses_per_element(f, l) >= DEFAULT_HOIST_USES;
}

/* The load is non-affine or guarded along an own axis, and its elements are used several times. */
static bool is_worth_buffer(const struct default_facts *f, const struct default_load *l,
                            int lanes) {
  uint32_t own = (1u << f->t->rank) - 1;
  if (f->p->tensors.data[l->tensor].dtype == PROGRAM_I32) return false;
  if (is_worth_repeating(f, l, lanes)) return true;
  if (!f->t->reductions || !((l->non_affine | l->guarded) & own)) return false;
  return uses_per_element(f, l) >= DEFAULT_BUFFER_USES || f->reduction >= DEFAULT_BUFFER_USES;
}

/* The outermost expression with one load and index conditions alone that is worth a buffer, after `skip` others; -1. */
static int find_operand(const struct default_facts *f, int expr, int lanes, int *skip) {
  const struct px_node *n = &f->p->nodes.data[expr];
  int load = n->sort == PX_VALUE ? guarded_load(f->p, expr) : -1;
  const struct default_load *l = load >= 0 ? load_at(f, load) : NULL;
  if (l) return is_worth_buffer(f, l, lanes) && (*skip)-- == 0 ? expr : -1;
  if (n->op == PX_LOAD || n->sort == PX_INDEX) return -1;
  for (int i = 0; i < PX_ARGS; i++) {
    int found = n->arg[i] >= 0 ? find_operand(f, n->arg[i], lanes, skip) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

/* The buffer is not worth its memory traffic. */
static bool is_too_large(struct editor *e, int stage, int load, int64_t elements) {
  const struct program *p = program_of(e);
  struct default_facts f;
  if (elements <= DEFAULT_BUFFER_GROWTH * program_elements(p, p->nodes.data[load].tensor))
    return false;
  default_facts(p, stage, editor_plans(e)->layout, &f);
  const struct default_load *l = load_at(&f, load);
  return !l || !is_worth_repeating(&f, l, default_lanes(f.t, e->machine));
}

/* The program with the operand in a stage of its own; NULL if that is illegal or too large. */
static struct program *materialized(struct editor *e, int stage, int node) {
  const struct program *p = program_of(e);
  char name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  int load = guarded_load(p, node);
  editor_name(p, p->tensors.data[p->nodes.data[load].tensor].name, "_m", name);
  if (program_outline(&ctx, p, stage, node, name, &out) != CANVAS_OK) return NULL;
  if (!is_too_large(e, stage, load, program_elements(out, program_find(out, name)))) return out;
  program_free(out);
  return NULL;
}

/* The next stage and operand to try; false if there are none left. */
static bool next_operand(struct editor *e, int *stage, int *node) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  int skip = e->refused;
  *node = -1;
  for (int i = 0; i < p->tensors.count && *node < 0; i++) {
    struct default_facts f;
    if (all->plan[i].kind == DEFAULT_UNUSED) continue;
    default_facts(p, i, all->layout, &f);
    int lanes = default_lanes(f.t, e->machine);
    if (!f.bounds_reduction && !f.truncated) *node = find_operand(&f, f.t->body, lanes, &skip);
    *stage = i;
  }
  return *node >= 0;
}

bool editor_materialize(struct editor *e) {
  int stage, node;
  if (!next_operand(e, &stage, &node)) return false;
  struct program *out = materialized(e, stage, node);
  if (out && editor_cycles(e, out) < editor_cycles(e, program_of(e))) {
    editor_take(e, out);
  } else {
    program_free(out);
    e->refused++;
  }
  return true;
}

/* ---- layouts of element-wise stages ---- */

/* The tile gathers the load, or has no vectors because it would. */
static bool is_gathered(const struct default_load *l, int vector_axis) {
  if (vector_axis < 0) return l->depends_on;
  return l->depends_on >> vector_axis & 1 &&
         (l->non_affine >> vector_axis & 1 || l->stride[vector_axis] != 1);
}

/* An element-wise stage from which the tile gathers, as it is not contiguous along the vector axis; -1. */
static int gathered_stage(const struct default_plans *all, int stage) {
  const struct default_plan *plan = &all->plan[stage];
  struct default_facts f;
  if (plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_FUSED_PRODUCER) return -1;
  if (!all->p->tensors.data[stage].reductions) return -1;
  default_facts(all->p, stage, all->layout, &f);
  for (int i = 0; i < f.loads; i++) {
    const struct default_load *l = &f.load[i];
    const struct program_tensor *t = &all->p->tensors.data[l->tensor];
    bool element_wise = !t->is_input && !t->reductions && !is_output(all->p, l->tensor);
    if (element_wise && is_gathered(l, plan->tile.vector_axis)) return l->tensor;
  }
  return -1;
}

/* The program with axis `last` of the stage innermost; NULL if that is illegal. */
static struct program *transposed(const struct program *p, int stage, int last) {
  char name[PROGRAM_NAME];
  editor_name(p, p->tensors.data[stage].name, "_t", name);
  return program_transposed(p, stage, last, name);
}

/* The program with the fastest layout of the stage; NULL if its own is the fastest. */
static struct program *best_transposed(struct editor *e, int stage) {
  const struct program *p = program_of(e);
  const struct program_tensor *t = &p->tensors.data[stage];
  double least = editor_cycles(e, p);
  struct program *best = NULL;
  for (int i = t->rank - 2; i >= 0; i--) { /* on a tie the axis closer to the end wins */
    struct program *out =
        t->axes[i].size >= DEFAULT_TRANSPOSED_AXIS ? transposed(p, stage, i) : NULL;
    double cycles = out ? editor_cycles(e, out) : least;
    struct program *worse = cycles < least ? best : out;
    if (cycles < least) best = out, least = cycles;
    program_free(worse);
  }
  canvas_context ctx;
  if (!best || program_verify(&ctx, best) == CANVAS_OK) return best;
  program_free(best);
  return NULL;
}

bool editor_transpose(struct editor *e) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  struct program *out = NULL;
  for (int i = 0; i < p->tensors.count && !out; i++) {
    int from = all->plan[i].kind == DEFAULT_UNUSED ? -1 : gathered_stage(all, i);
    if (from >= 0) out = best_transposed(e, from);
  }
  if (out) editor_take(e, out);
  return out != NULL;
}
