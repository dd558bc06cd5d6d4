/* Rows that stages share: one loop over them around all of these stages, at the root, so that what lies
 * between stays in the first cache. See default.h.
 *
 *     r:para =>
 *         k, v:vec =>
 *             @L = r, v // k
 *         v:vec => @M = r // v
 *         c:vec => @E = r, c
 *
 * A group begins with a stage and some of its axes. Each later stage that reads one of the group belongs
 * to it with those axes along which it reads it as it is, row by row; where there is none left, the group
 * ends. What stands between and reads none of them is computed before. What is made of constants alone begins
 * none: it is prepared once, and not row by row at each call.
 */
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default.h"
#include "cost/policy.h"
#include "program/program_cost.h"
#include "program/program_facts.h"

struct group {
  const struct default_plans *all;
  struct default_shared *shared; /* by tensor */
  int first, last, members;
  int count; /* shared axes */
  int64_t rows;
};

static bool is_computed(const struct default_plans *all, int tensor) {
  return all->plan[tensor].kind != DEFAULT_UNUSED;
}

/* ---- which axis of a stage is the row of what it reads ---- */

struct reading {
  const struct group *g;
  int member, row; /* of which axis this is asked; -1: of every member */
  int axis;        /* of the stage; -1: not yet, -2: it is otherwise */
  int loads;
};

static void read_rows(struct reading *r, int expr) {
  const struct program *p = r->g->all->p;
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) read_rows(r, n->arg[i]);
  if (n->op != PX_LOAD) return;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    read_rows(r, p->indices.data[n->first + i]);
  if (!r->g->shared[n->tensor].group) return;
  r->loads++;
  if (r->row < 0) return;
  int index = p->indices.data[n->first + r->g->shared[n->tensor].axis[r->row]];
  const struct px_node *at = &p->nodes.data[index];
  bool same = at->op == PX_AXIS && (r->axis == -1 || r->axis == at->integer);
  r->axis = same ? (int)at->integer : -2;
}

static bool reads_group(const struct group *g, int stage) {
  struct reading r = {.g = g, .row = -1, .axis = -1};
  read_rows(&r, g->all->p->tensors.data[stage].body);
  return r.loads > 0;
}

/* Its loop may stand around everything that the stage does. */
static bool may_share(const struct default_facts *f, int axis) {
  if (axis < 0 || axis >= f->t->rank || f->truncated || f->t->axes[axis].size < 2) return false;
  if (f->period[axis] || f->t->axes[axis].low >= 0) return false;
  return !((f->guarded | f->non_monotone | f->bounds_reduction) >> axis & 1);
}

/* Elements stand side by side along it that are not all of a row: lanes go along it. */
static bool is_for_lanes(const struct default_facts *f, int axis, uint32_t rows) {
  uint32_t more = 0, all = (1u << f->t->rank) - 1;
  for (int i = 0; i < f->t->rank + f->t->reductions; i++)
    if (f->t->axes[i].size > 1 && !(rows >> i & 1)) more |= 1u << i;
  if (f->out_stride[axis] == 1 && more & all) return true;
  for (int i = 0; i < f->loads; i++)
    if (f->load[i].stride[axis] == 1 && f->load[i].depends_on & more) return true;
  return false;
}

/* Those axes become -1; so many are left. */
static int leave_lanes(const struct default_facts *f, int *axis, int count) {
  uint32_t rows = 0;
  int left = 0;
  for (int i = 0; i < count; i++)
    if (axis[i] >= 0) rows |= 1u << axis[i];
  for (int i = 0; i < count; i++) {
    if (axis[i] >= 0 && is_for_lanes(f, axis[i], rows)) axis[i] = -1;
    left += axis[i] >= 0;
  }
  return left;
}

/* Of the group's axes those that the stage has, too. */
static int axes_of(const struct group *g, int stage, struct default_shared *out) {
  const struct program_tensor *t = &g->all->p->tensors.data[stage];
  struct default_facts f;
  default_facts(g->all->p, stage, g->all->layout, &f);
  for (int i = 0; i < g->count; i++) {
    struct reading r = {.g = g, .row = i, .axis = -1};
    const struct program_tensor *first = &g->all->p->tensors.data[g->first];
    read_rows(&r, t->body);
    int64_t size = first->axes[g->shared[g->first].axis[i]].size;
    bool fits = may_share(&f, r.axis) && t->axes[r.axis].size == size;
    out->axis[i] = fits ? r.axis : -1;
  }
  return leave_lanes(&f, out->axis, g->count);
}

/* ---- what it saves ---- */

/* What the group touches of a tensor: in all, and while its innermost loop stands still. */
struct touched {
  double bytes, row_bytes;
  int loads; /* stages of the group that load it */
};

/* Axes that loads of the tensor depend on. */
static uint32_t axes_that_move(const struct program *p, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t axes = 0;
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) axes |= axes_that_move(p, n->arg[i], tensor);
  return n->op == PX_LOAD && n->tensor == tensor ? px_axes(p, expr) : axes;
}

static uint32_t rows_moved(const struct group *g, int stage, int tensor) {
  const struct program *p = g->all->p;
  uint32_t rows = 0, axes = axes_that_move(p, p->tensors.data[stage].body, tensor);
  for (int j = 0; j < g->count; j++)
    if (axes >> g->shared[stage].axis[j] & 1) rows |= 1u << j;
  return rows;
}

static double bytes_of(const struct program *p, int tensor) {
  return (double)program_elements(p, tensor) * program_dtype_bytes(p->tensors.data[tensor].dtype);
}

static int64_t row_count(const struct group *g, uint32_t rows) {
  const struct program_tensor *t = &g->all->p->tensors.data[g->first];
  int64_t count = 1;
  for (int i = 0; i < g->count; i++)
    if (rows >> i & 1) count *= t->axes[g->shared[g->first].axis[i]].size;
  return count;
}

static struct touched touched_by(const struct group *g, int tensor) {
  struct touched t = {.bytes = bytes_of(g->all->p, tensor)};
  bool made = g->shared[tensor].group > 0;
  uint32_t rows = made ? (1u << g->count) - 1 : 0;
  for (int i = tensor + 1; i <= g->last; i++) {
    if (!g->shared[i].group || !stage_loads(g->all->p, i, tensor)) continue;
    if (!made) rows |= rows_moved(g, i, tensor);
    t.loads++;
  }
  t.row_bytes = t.bytes / (double)row_count(g, rows);
  return t;
}

/* It never leaves the registers. */
static bool in_registers(const struct default_plans *planned, int tensor) {
  return planned->plan[tensor].kind == DEFAULT_FUSED_PRODUCER;
}

/* Cycles that the group saves; less than 0: what a row touches does not stay in the caches, or all of it
 * does so anyway. */
static double saved(const struct group *g, const struct default_plans *planned) {
  double row = 0, whole = 0, bytes = 0;
  for (int i = 0; i <= g->last; i++) {
    struct touched t = touched_by(g, i);
    bool made = g->shared[i].group > 0, inside = made && !g->shared[i].seen;
    if (in_registers(planned, i) || !(made || t.loads)) continue;
    row += t.row_bytes;
    whole += t.bytes;
    bytes += t.bytes * (inside ? t.loads + 1 : made ? t.loads : t.loads - 1);
  }
  const struct machine *m = planned->machine;
  double far = m->l3 > 0 ? (double)m->l3 : 2 * (double)machine_l3_share(m);
  double room = whole > far ? (double)m->l2 / 2 : DEFAULT_ROW_CACHES * (double)m->l1;
  if (row > room || whole <= DEFAULT_ROW_CACHES * (double)m->l1) return -1;
  return DEFAULT_SAVED_BYTE * bytes;
}

static double late(const struct group *g, const struct default_plans *planned) {
  int sums = 0;
  for (int i = g->first; i <= g->last; i++)
    sums += g->shared[i].group && g->all->p->tensors.data[i].reductions &&
            planned->plan[i].kind == DEFAULT_FUSED_CONSUMER;
  return (double)(DEFAULT_FLAT_SUM_CYCLES * sums) * (double)g->rows;
}

/* ---- trying ---- */

static void see_readers(struct group *g) {
  const struct program *p = g->all->p;
  for (int i = g->first; i <= g->last; i++) {
    if (!g->shared[i].group) continue;
    g->shared[i].seen = is_output(p, i);
    for (int j = i + 1; j < p->tensors.count && !g->shared[i].seen; j++)
      g->shared[i].seen = !g->shared[j].group && is_computed(g->all, j) && stage_loads(p, j, i);
  }
}

struct search {
  struct default_plans *all; /* the best so far */
  double before;             /* what other groups save */
  int tried;
};

/* The plans with the group, if they take less. */
static void consider(struct search *s, struct group *g) {
  struct default_plans planned;
  if (g->members < 2 || s->tried++ >= DEFAULT_GROUPS_TRIED) return;
  g->rows = row_count(g, ~0u);
  see_readers(g);
  if (saved(g, s->all) <= 0) return;
  default_plan_shared(&planned, s->all, g->shared);
  double gain = saved(g, &planned) - late(g, &planned);
  planned.saved = s->before + gain;
  if (gain > 0 && default_plan_cycles(&planned) < DEFAULT_ROWS_LESS * default_plan_cycles(s->all)) {
    struct default_plans other = *s->all;
    *s->all = planned;
    planned = other;
  }
  default_plan_free(&planned);
}

static void drop_axes(struct group *g, const struct default_shared *kept) {
  for (int i = g->count - 1; i >= 0; i--) {
    if (kept->axis[i] >= 0) continue;
    g->count--;
    for (int t = g->first; t < g->all->p->tensors.count; t++) {
      int *axis = g->shared[t].axis;
      memmove(axis + i, axis + i + 1, sizeof *axis * (size_t)(DEFAULT_ROWS - 1 - i));
    }
  }
}

static void add_member(struct group *g, int stage, const struct default_shared *axes) {
  int number = g->shared[g->first].group, count = 0, all = g->count;
  drop_axes(g, axes);
  for (int i = 0; i < all; i++)
    if (axes->axis[i] >= 0) g->shared[stage].axis[count++] = axes->axis[i];
  g->shared[stage].group = number;
  for (int i = g->first; i <= stage; i++)
    if (g->shared[i].group == number) g->shared[i].count = g->count;
  g->last = stage;
  g->members++;
}

static void grow(struct search *s, struct group *g) {
  const struct program *p = g->all->p;
  for (int i = g->first + 1; i < p->tensors.count && !g->shared[i].group; i++) {
    struct default_shared axes;
    if (!is_computed(g->all, i) || !reads_group(g, i)) continue;
    int left = axes_of(g, i, &axes);
    if (left < g->count) consider(s, g);
    if (!left) return;
    add_member(g, i, &axes);
  }
  consider(s, g);
}

static void begin(struct group *g, int number) {
  struct default_facts f;
  struct default_shared *s = &g->shared[g->first];
  default_facts(g->all->p, g->first, g->all->layout, &f);
  g->last = g->first;
  g->members = 1;
  int axis[PROGRAM_AXES];
  for (int i = 0; i < f.t->rank; i++) axis[i] = may_share(&f, i) ? i : -1;
  leave_lanes(&f, axis, f.t->rank);
  for (int i = 0; i < f.t->rank && g->count < DEFAULT_ROWS; i++)
    if (axis[i] >= 0) s->axis[g->count++] = i;
  s->group = number;
  s->count = g->count;
}

void default_share_rows(struct default_plans *all) {
  struct search s = {all, 0, 0};
  size_t size = ((size_t)all->p->tensors.count + 1) * sizeof *all->shared;
  for (int i = 0, number = 1; i < all->p->tensors.count; i++) {
    if (!is_computed(all, i) || all->constant[i] || all->shared[i].group) continue;
    struct group g = {.all = all, .shared = mem_alloc(size), .first = i};
    memcpy(g.shared, all->shared, size);
    s.before = all->saved;
    begin(&g, number);
    if (g.count) grow(&s, &g);
    mem_free(g.shared);
    if (all->shared[i].group) number++;
  }
}
