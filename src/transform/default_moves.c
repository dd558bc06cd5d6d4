/* What a sum loads in a twisted way, or under conditions, is laid out before it: a border becomes a
 * padded image. See default.h.
 */
#include "program/affine.h"
#include "program/program_edit.h"
#include "transform/default_editor.h"

enum {
  OFTEN = 8,     /* uses that are worth a place of its own */
  MOST_TIMES = 4 /* the size of what is laid out, of what it is made of */
};

/* The load below, under selects of indices alone; -1. */
static int moved_load(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return n->sort == PX_VALUE ? expr : -1;
  if (n->op != PX_SELECT || !asks_indices(p, n->arg[0])) return -1;
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
static bool next_move(const struct editor *e, int *stage, int *node) {
  struct default_plans all;
  const struct program *p = program_of(e);
  int skip = e->refused;
  default_plan_all(&all, p, e->machine, e->mode);
  *node = -1;
  for (int i = 0; i < p->tensors.count && *node < 0; i++) {
    struct default_facts f;
    if (all.plan[i].kind == DEFAULT_UNUSED || !p->tensors.data[i].reductions) continue;
    default_facts(p, i, all.kept, &f);
    if (!f.bounds && !f.many) *node = find_move(&f, f.t->body, &skip);
    *stage = i;
  }
  default_plan_free(&all);
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
