/* What a sum loads in a twisted way, or under conditions, is laid out before it: a border becomes a
 * padded image. See default.h.
 */
#include "autoschedule/default_editor.h"
#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

enum {
  OFTEN = 3,     /* uses that may be worth a place of its own */
  MOST_TIMES = 4 /* the size of what is laid out, of what it is made of */
};

/* The load below, under selects of indices alone; -1. */
static int moved_load(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return n->sort == PX_VALUE ? expr : -1;
  if (n->op != PX_SELECT || !is_index_condition(p, n->arg[0])) return -1;
  int branch = p->nodes.data[n->arg[1]].op == PX_NUMBER ? n->arg[2] : n->arg[1];
  int other = branch == n->arg[1] ? n->arg[2] : n->arg[1];
  return p->nodes.data[other].op == PX_NUMBER ? moved_load(p, branch) : -1;
}

static const struct default_load *load_at(const struct default_facts *f, int node) {
  for (int i = 0; i < f->loads; i++)
    if (f->load[i].node == node) return &f->load[i];
  return NULL;
}

/* It is read often enough, and by lanes or rows that cannot take it as it is. */
static bool is_worth_laying_out(const struct default_facts *f, const struct default_load *l) {
  double elements = 1;
  uint32_t own = (1u << f->t->rank) - 1;
  if (f->p->tensors.data[l->tensor].dtype == PROGRAM_I32 || !(l->twisted | l->asked)) return false;
  if (!((l->twisted | l->asked) & own)) return false;
  for (int i = 0; i < f->t->rank + f->t->reductions; i++)
    if ((l->moves | l->asked) >> i & 1) elements *= (double)f->t->axes[i].size;
  double times = (double)f->points * (double)f->reduction / elements;
  return times >= OFTEN || f->reduction >= OFTEN;
}

/* The outermost part of the expression that only moves one load, after `skip` others; -1. */
static int find_move(const struct default_facts *f, int expr, int *skip) {
  const struct px_node *n = &f->p->nodes.data[expr];
  int load = n->sort == PX_VALUE ? moved_load(f->p, expr) : -1;
  const struct default_load *l = load >= 0 ? load_at(f, load) : NULL;
  if (l) return is_worth_laying_out(f, l) && (*skip)-- == 0 ? expr : -1;
  if (n->op == PX_LOAD || n->sort == PX_INDEX) return -1;
  for (int i = 0; i < 3; i++) {
    int found = n->arg[i] >= 0 ? find_move(f, n->arg[i], skip) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

/* The program with the move as a stage; NULL where that cannot be, or is too large. */
static struct program *laid_out(const struct editor *e, int stage, int node) {
  const struct program *p = program_of(e);
  char name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  int load = moved_load(p, node);
  editor_name(p, p->tensors.data[p->nodes.data[load].tensor].name, "_m", name);
  if (program_outline(&ctx, p, stage, node, name, &out) != CANVAS_OK) return NULL;
  int64_t elements = program_elements(out, program_find(out, name));
  if (elements <= MOST_TIMES * program_elements(p, p->nodes.data[load].tensor)) return out;
  program_free(out);
  return NULL;
}

/* The stage and the part of its expression that comes next; false where there is none. */
static bool next_move(struct editor *e, int *stage, int *node) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  int skip = e->refused;
  *node = -1;
  for (int i = 0; i < p->tensors.count && *node < 0; i++) {
    struct default_facts f;
    if (all->plan[i].kind == DEFAULT_UNUSED || !p->tensors.data[i].reductions) continue;
    default_facts(p, i, all->kept, &f);
    if (!f.bounds && !f.many) *node = find_move(&f, f.t->body, &skip);
    *stage = i;
  }
  return *node >= 0;
}

bool editor_lay_out(struct editor *e) {
  int stage, node;
  if (!next_move(e, &stage, &node)) return false;
  struct program *out = laid_out(e, stage, node);
  if (out && editor_cycles(e, out) < editor_cycles(e, program_of(e))) {
    editor_take(e, out);
  } else {
    program_free(out);
    e->refused++;
  }
  return true;
}

/* ---- the order in which a map is kept ---- */

/* What the tile of a stage loads of a map lane by lane; -1. */
static int gathered_map(const struct default_plans *all, int stage) {
  const struct default_plan *plan = &all->plan[stage];
  int v = plan->tile.vec;
  struct default_facts f;
  if (plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_DEFERRED) return -1;
  if (!all->p->tensors.data[stage].reductions || v < 0) return -1;
  default_facts(all->p, stage, all->kept, &f);
  for (int i = 0; i < f.loads; i++) {
    const struct default_load *l = &f.load[i];
    const struct program_tensor *t = &all->p->tensors.data[l->tensor];
    bool map = !t->is_input && !t->reductions && !is_output(all->p, l->tensor);
    if (map && l->moves >> v & 1 && (l->twisted >> v & 1 || l->stride[v] != 1)) return l->tensor;
  }
  return -1;
}

/* The map with an axis of it last; NULL where that cannot be. */
static struct program *turned(const struct program *p, int map, int last) {
  char name[PROGRAM_NAME];
  editor_name(p, p->tensors.data[map].name, "_t", name);
  return program_transposed(p, map, last, name);
}

/* The best order of a map, if one is better than its own: none where that is no program. */
static struct program *best_turned(struct editor *e, int map) {
  const struct program *p = program_of(e);
  const struct program_tensor *t = &p->tensors.data[map];
  double least = editor_cycles(e, p);
  struct program *best = NULL;
  for (int i = t->rank - 2; i >= 0; i--) { /* of two that take as long the one that moves less */
    struct program *out = t->axes[i].size > 3 ? turned(p, map, i) : NULL;
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

bool editor_turn(struct editor *e) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  struct program *out = NULL;
  for (int i = 0; i < p->tensors.count && !out; i++) {
    int map = all->plan[i].kind == DEFAULT_UNUSED ? -1 : gathered_map(all, i);
    if (map >= 0) out = best_turned(e, map);
  }
  if (out) editor_take(e, out);
  return out != NULL;
}
