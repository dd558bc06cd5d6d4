/* The edits of a program that come before its default schedule. See default.h.
 *
 * Each keeps what is computed; one that does not go through leaves the program as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/affine.h"
#include "program/program_edit.h"
#include "program/program_rebuild.h"
#include "transform/default.h"

enum {
  ROUNDS = 24,   /* edits of a kind */
  OFTEN = 8,     /* uses that are worth a place of its own */
  CHEAP = 2,     /* operations that may be done twice */
  MOST_TIMES = 4 /* the size of what is laid out, of what it is made of */
};

struct editor {
  struct program *p; /* the program so far, owned; NULL: still the given one */
  const struct program *given;
  const struct machine *machine;
};

static const struct program *program_of(const struct editor *e) {
  return e->p ? e->p : e->given;
}

static void take(struct editor *e, struct program *p) {
  program_free(e->p);
  e->p = p;
}

static bool edit(struct editor *e, const char *text) {
  canvas_context ctx;
  struct program *out;
  if (program_edit(&ctx, program_of(e), text, strlen(text), &out) != CANVAS_OK) return false;
  take(e, out);
  return true;
}

/* The name and an ending, and one that no tensor has. */
static void new_name(const struct program *p, const char *name, const char *ending,
                     char text[PROGRAM_NAME]) {
  snprintf(text, PROGRAM_NAME, "%.100s%s", name, ending);
  for (int i = 2; program_find(p, text) >= 0; i++)
    snprintf(text, PROGRAM_NAME, "%.100s%s%d", name, ending, i);
}

/* ---- maps that are read once: no stage of their own ------------------------------------------- */

struct uses {
  double points; /* evaluations of loads of it */
  int loads;     /* nodes */
};

/* It takes part in a tile: then it is computed there, and not in what reads it. */
static bool reads_sum(const struct program *p, int stage) {
  for (int i = 0; i < stage; i++)
    if (p->tensors.data[i].reductions && stage_loads(p, stage, i)) return true;
  return false;
}

static struct uses uses_of(const struct program *p, int stage) {
  struct uses u = {0, 0};
  for (int i = stage + 1; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    int loads = stage_loads(p, i, stage);
    double points = loads;
    for (int j = 0; j < t->rank + t->reductions; j++) points *= (double)t->axes[j].size;
    u.points += points;
    u.loads += loads;
  }
  return u;
}

static bool is_worth_inlining(const struct program *p, const struct default_plans *all, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  struct default_facts f;
  if (t->is_input || t->reductions || not_inlined(p, stage)) return false;
  struct uses u = uses_of(p, stage);
  if (!u.loads) return false;
  default_facts(p, stage, all->kept, &f);
  if (u.loads > 1 && (f.operations > CHEAP || u.loads > 3)) return false;
  if (u.loads > 1 && reads_sum(p, stage)) return false;
  return u.points <= 1.01 * (double)u.loads * (double)f.points;
}

static void inline_maps(struct editor *e) {
  const struct program *p = program_of(e);
  struct default_plans all;
  struct program *out;
  canvas_context ctx;
  int count = 0;
  struct change c = change_open(CHANGE_INLINE, p);
  all.kept = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *all.kept);
  for (int i = 0; i < p->tensors.count; i++) default_keep_plain(&p->tensors.data[i], &all.kept[i]);
  for (int i = 0; i < p->tensors.count; i++) count += c.inlined[i] = is_worth_inlining(p, &all, i);
  free(all.kept);
  if (!count) {
    change_close(&c);
    program_free(c.to);
  } else if (change_finish(&ctx, &c, &out) == CANVAS_OK) {
    take(e, out);
  }
}

/* ---- what a sum loads in a twisted way, or under conditions: laid out before it ---------------- */

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

/* The outermost part of the expression that only moves one load; -1. */
static int find_move(const struct default_facts *f, int expr) {
  const struct px_node *n = &f->p->nodes.data[expr];
  int load = n->sort == PX_VALUE ? moved_load(f->p, expr) : -1;
  const struct default_load *l = load >= 0 ? load_at(f, load) : NULL;
  if (l) return is_worth_laying_out(f, l) ? expr : -1;
  if (n->op == PX_LOAD || n->sort == PX_INDEX) return -1;
  for (int i = 0; i < 3; i++) {
    int found = n->arg[i] >= 0 ? find_move(f, n->arg[i]) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

static bool lay_out(struct editor *e, int stage, int node) {
  const struct program *p = program_of(e);
  char name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  int load = moved_load(p, node);
  new_name(p, p->tensors.data[p->nodes.data[load].tensor].name, "_m", name);
  if (program_outline(&ctx, p, stage, node, name, &out) != CANVAS_OK) return false;
  int64_t elements = program_elements(out, program_find(out, name));
  if (elements > MOST_TIMES * program_elements(p, p->nodes.data[load].tensor)) {
    program_free(out);
    return false;
  }
  take(e, out);
  return true;
}

/* One more; false where there is none. */
static bool lay_out_one(struct editor *e) {
  struct default_plans all;
  const struct program *p = program_of(e);
  int stage = -1, node = -1;
  default_plan_all(&all, p, e->machine, true);
  for (int i = 0; i < p->tensors.count && node < 0; i++) {
    struct default_facts f;
    if (all.plan[i].kind == DEFAULT_UNUSED || !p->tensors.data[i].reductions) continue;
    default_facts(p, i, all.kept, &f);
    if (f.bounds || f.many) continue;
    node = find_move(&f, f.t->body);
    stage = i;
  }
  default_plan_free(&all);
  return node >= 0 && lay_out(e, stage, node);
}

/* ---- operands in panels ---------------------------------------------------------------------- */

/* The axis of the tensor that is this axis of the stage, in a plain load; -1. */
static int tensor_axis(const struct default_facts *f, const struct default_load *l, int axis) {
  const struct px_node *n = &f->p->nodes.data[l->node];
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++)
    if (px_mentions(f->p, f->p->indices.data[n->first + i], axis)) return i;
  return -1;
}

static void put_tensor_axis(const struct default_facts *f, const struct default_load *l, int at,
                            const char *ending, struct buf *text) {
  const char *name = f->p->tensors.data[l->tensor].axes[at].name;
  buf_printf(text, "%s%s%s", text->text[text->length - 1] == '[' ? "" : ", ", name, ending);
}

static void put_axis(const struct default_facts *f, const struct default_load *l, int axis,
                     const char *ending, struct buf *text) {
  int at = tensor_axis(f, l, axis);
  if (at >= 0) put_tensor_axis(f, l, at, ending, text);
}

/* Axes at which the stage reads one place only. */
static void put_still_axes(const struct default_facts *f, const struct default_load *l,
                           struct buf *text) {
  const struct px_node *n = &f->p->nodes.data[l->node];
  for (int i = 0; i < f->p->tensors.data[l->tensor].rank; i++)
    if (!px_range(f->p, f->p->indices.data[n->first + i]).axes) put_tensor_axis(f, l, i, "", text);
}

/* pack W as W_p [co/32, ci, kh, kw, co%32] */
static void pack_text(const struct default_facts *f, const struct default_load *l,
                      const struct default_tile *tile, struct buf *text) {
  char name[PROGRAM_NAME], ending[32];
  const struct program_tensor *w = &f->p->tensors.data[l->tensor];
  bool panels = tile->steps < f->t->axes[tile->vec].size;
  new_name(f->p, w->name, "_p", name);
  buf_printf(text, "pack %s as %s [", w->name, name);
  put_still_axes(f, l, text);
  for (int i = 0; i < f->t->rank; i++)
    if (i != tile->vec) put_axis(f, l, i, "", text);
  snprintf(ending, sizeof ending, "/%lld", (long long)tile->steps);
  if (panels) put_axis(f, l, tile->vec, ending, text);
  for (int i = 0; i < f->t->reductions; i++) put_axis(f, l, tile->order[f->t->rank + i], "", text);
  snprintf(ending, sizeof ending, "%%%lld", (long long)tile->steps);
  put_axis(f, l, tile->vec, panels ? ending : "", text);
  buf_puts(text, "]");
}

/* Packs one operand; false where none is left. */
static bool pack_one(struct editor *e) {
  struct default_plans all;
  const struct program *p = program_of(e);
  struct buf text = {0};
  default_plan_all(&all, p, e->machine, true);
  for (int i = 0; i < p->tensors.count && !text.length; i++) {
    const struct default_plan *plan = &all.plan[i];
    struct default_facts f;
    if ((plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_DEFERRED) || !plan->tile.packed)
      continue;
    default_facts(p, i, all.kept, &f);
    for (int j = 0; j < f.loads && !text.length; j++)
      if (plan->tile.packed >> j & 1) pack_text(&f, &f.load[j], &plan->tile, &text);
  }
  default_plan_free(&all);
  bool packed = text.length && edit(e, text.text);
  buf_free(&text);
  return packed;
}

/* ---- reductions along the lanes: partial sums -------------------------------------------------- */

/* Every load is contiguous along the axis, or stands still. */
static bool runs_along(const struct default_facts *f, int axis) {
  bool moves = false;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (!(l->moves >> axis & 1)) continue;
    if (l->twisted >> axis & 1 || l->block[axis] || l->stride[axis] != 1) return false;
    moves = true;
  }
  return moves && !f->many && !(f->asked >> axis & 1) && f->t->axes[axis].low < 0;
}

/* So many partial sums: whole vectors, some of them where the axis is long; 0: none fit. */
static int64_t partial_sums(const struct default_facts *f, const struct machine *machine,
                            int axis) {
  int64_t size = f->t->axes[axis].size;
  int lanes = machine->vector_bytes / (f->t->dtype == PROGRAM_F64 ? 8 : 4);
  for (int64_t sums = 4 * lanes; sums >= 4; sums /= 2)
    if (size % sums == 0 && size >= sums) return sums;
  return 0;
}

/* Cycles of a stage with partial sums along the axis, about: each vector once, and then the lanes. */
static double partial_cycles(const struct default_facts *f, int64_t sums, int lanes) {
  double vectors = (double)f->reduction / (double)(sums < lanes ? sums : lanes);
  double work = f->loads > f->operations ? f->loads : f->operations;
  return (double)f->points * (vectors * work / 2 + 20);
}

static bool rfactor_one(struct editor *e, int *after) {
  struct default_plans all;
  const struct program *p = program_of(e);
  char text[4 * PROGRAM_NAME], name[PROGRAM_NAME];
  int lanes = e->machine->vector_bytes / 4;
  bool found = false;
  default_plan_all(&all, p, e->machine, true);
  for (int i = *after + 1; i < p->tensors.count && !found; i++) {
    const struct default_plan *plan = &all.plan[i];
    struct default_facts f;
    if (plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_DEFERRED) continue;
    if (!p->tensors.data[i].reductions) continue;
    default_facts(p, i, all.kept, &f);
    for (int r = f.t->rank; r < f.t->rank + f.t->reductions && !found; r++) {
      int64_t sums = runs_along(&f, r) ? partial_sums(&f, e->machine, r) : 0;
      found = sums && partial_cycles(&f, sums, lanes) < 0.7 * plan->tile.cycles;
      if (!found) continue;
      new_name(p, f.t->name, "_r", name);
      snprintf(text, sizeof text, "rfactor %s %s %lld as %s", f.t->name, f.t->axes[r].name,
               (long long)sums, name);
      *after = i + 1; /* the sum of what comes before it */
    }
  }
  default_plan_free(&all);
  return found && edit(e, text);
}

/* ---- outputs across the lanes ----------------------------------------------------------------- */

static bool cache_one(struct editor *e) {
  struct default_plans all;
  const struct program *p = program_of(e);
  char text[3 * PROGRAM_NAME], name[PROGRAM_NAME];
  bool found = false;
  default_plan_all(&all, p, e->machine, true);
  for (int i = 0; i < p->outputs.count && !found; i++) {
    int stage = p->outputs.data[i];
    const struct default_plan *plan = &all.plan[stage];
    struct default_facts f;
    if (plan->kind != DEFAULT_TILED || !p->tensors.data[stage].reductions) continue;
    default_facts(p, stage, all.kept, &f);
    found = plan->tile.vec >= 0 && f.out[plan->tile.vec] != 1;
    new_name(p, f.t->name, "_c", name);
    snprintf(text, sizeof text, "cache %s as %s", f.t->name, name);
  }
  default_plan_free(&all);
  return found && edit(e, text);
}

struct program *default_program(const struct program *p, const struct machine *machine) {
  struct editor e = {.given = p, .machine = machine};
  inline_maps(&e);
  for (int i = 0; i < ROUNDS && lay_out_one(&e); i++) {
  }
  for (int i = 0, after = -1; i < ROUNDS && rfactor_one(&e, &after); i++) {
  }
  for (int i = 0; i < ROUNDS && cache_one(&e); i++) {
  }
  for (int i = 0; i < ROUNDS && pack_one(&e); i++) {
  }
  return e.p;
}
