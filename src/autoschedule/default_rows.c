/* Loops that stages share: one loop over rows encloses several stages, so that a row's
 * intermediates stay in L1. See default.h.
 *
 *     r:para =>
 *         k, v:vec =>
 *             @L = r, v // k
 *         v:vec => @M = r // v
 *         c:vec => @E = r, c
 *
 * A group starts with a stage and some of its axes. A later stage that reads a member joins with
 * the axes along which it reads the members row by row; the group keeps only these. Where none is
 * left, the group ends. Stages in between that read no member stay outside and are computed before.
 * A constant-folded stage starts no group: it is computed at load time, not row by row at each
 * call.
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
  int first, last;               /* stages */
  int members;                   /* number of stages */
  int count;                     /* shared axes */
  int64_t rows;                  /* iterations of the shared loops */
};

static bool is_computed(const struct default_plans *all, int tensor) {
  return all->plan[tensor].kind != DEFAULT_UNUSED;
}

/* ---- which axis of a stage is the row of the members that it reads ---- */

enum { AXIS_OPEN = -1, AXIS_MIXED = -2 };

/* A walk over the loads of a stage from members. */
struct reading {
  const struct group *g;
  int row;  /* the shared axis whose index is looked at */
  int axis; /* the index in all loads; AXIS_OPEN: no load yet, AXIS_MIXED: no such axis */
};

static void find_row_axis(struct reading *r, int expr) {
  const struct program *p = r->g->all->p;
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) find_row_axis(r, n->arg[i]);
  if (n->op != PX_LOAD) return;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    find_row_axis(r, p->indices.data[n->first + i]);
  if (!r->g->shared[n->tensor].group) return;
  int index = p->indices.data[n->first + r->g->shared[n->tensor].axis[r->row]];
  const struct px_node *at = &p->nodes.data[index];
  bool same = at->op == PX_AXIS && (r->axis == AXIS_OPEN || r->axis == at->integer);
  r->axis = same ? (int)at->integer : AXIS_MIXED;
}

static bool reads_group(const struct group *g, int stage) {
  const struct program_use_list *operands = &g->all->uses.operands;
  for (int i = operands->first[stage]; i < operands->first[stage + 1]; i++)
    if (g->shared[operands->use[i].tensor].group) return true;
  return false;
}

/* A loop over the axis may enclose the whole stage. */
static bool may_share(const struct default_facts *f, int axis) {
  if (axis < 0 || axis >= f->t->rank || f->truncated || f->t->axes[axis].size < 2) return false;
  if (f->period[axis] || f->t->axes[axis].low >= 0) return false;
  return !((f->guarded | f->non_monotone | f->bounds_reduction) >> axis & 1);
}

/* The store or a load is contiguous along the axis, and has axes that are no rows: vectors run
 * along this axis. */
static bool is_vector_axis(const struct default_facts *f, int axis, uint32_t rows) {
  uint32_t more = 0, all = (1u << f->t->rank) - 1;
  for (int i = 0; i < f->t->rank + f->t->reductions; i++)
    if (f->t->axes[i].size > 1 && !(rows >> i & 1)) more |= 1u << i;
  if (f->out_stride[axis] == 1 && more & all) return true;
  for (int i = 0; i < f->loads; i++)
    if (f->load[i].stride[axis] == 1 && f->load[i].depends_on & more) return true;
  return false;
}

/* Sets vector axes to -1 in `axis`. Returns how many axes are left. */
static int drop_vector_axes(const struct default_facts *f, int *axis, int count) {
  uint32_t rows = 0;
  int left = 0;
  for (int i = 0; i < count; i++)
    if (axis[i] >= 0) rows |= 1u << axis[i];
  for (int i = 0; i < count; i++) {
    if (axis[i] >= 0 && is_vector_axis(f, axis[i], rows)) axis[i] = -1;
    left += axis[i] >= 0;
  }
  return left;
}

/* The stage's own axis for each shared axis; -1: none. Returns how many it has. */
static int shared_axes(const struct group *g, int stage, struct default_shared *out) {
  const struct program_tensor *t = &g->all->p->tensors.data[stage];
  struct default_facts f;
  default_facts(g->all->p, stage, g->all->layout, &f);
  for (int i = 0; i < g->count; i++) {
    struct reading r = {.g = g, .row = i, .axis = AXIS_OPEN};
    const struct program_tensor *first = &g->all->p->tensors.data[g->first];
    find_row_axis(&r, t->body);
    int64_t size = first->axes[g->shared[g->first].axis[i]].size;
    bool fits = may_share(&f, r.axis) && t->axes[r.axis].size == size;
    out->axis[i] = fits ? r.axis : -1;
  }
  return drop_vector_axes(&f, out->axis, g->count);
}

/* ---- what a group saves ---- */

/* The group's use of a tensor. */
struct traffic {
  double bytes;     /* of the tensor */
  double row_bytes; /* used in one iteration of the shared loops */
  int loads;        /* members that load it */
};

/* Axes that loads of the tensor depend on. */
static uint32_t load_axes(const struct program *p, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  uint32_t axes = 0;
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0) axes |= load_axes(p, n->arg[i], tensor);
  return n->op == PX_LOAD && n->tensor == tensor ? px_axes(p, expr) : axes;
}

/* The shared axes, as bits, that the stage's loads of the tensor depend on. */
static uint32_t row_axes(const struct group *g, int stage, int tensor) {
  const struct program *p = g->all->p;
  uint32_t rows = 0, axes = load_axes(p, p->tensors.data[stage].body, tensor);
  for (int j = 0; j < g->count; j++)
    if (axes >> g->shared[stage].axis[j] & 1) rows |= 1u << j;
  return rows;
}

static double tensor_bytes(const struct program *p, int tensor) {
  return (double)program_elements(p, tensor) * program_dtype_bytes(p->tensors.data[tensor].dtype);
}

/* Iterations of the shared loops that `rows` has. */
static int64_t row_count(const struct group *g, uint32_t rows) {
  const struct program_tensor *t = &g->all->p->tensors.data[g->first];
  int64_t count = 1;
  for (int i = 0; i < g->count; i++)
    if (rows >> i & 1) count *= t->axes[g->shared[g->first].axis[i]].size;
  return count;
}

static struct traffic traffic_of(const struct group *g, int tensor) {
  struct traffic t = {.bytes = tensor_bytes(g->all->p, tensor)};
  bool member = g->shared[tensor].group > 0;
  uint32_t rows = member ? (1u << g->count) - 1 : 0;
  const struct program_use_list *consumers = &g->all->uses.consumers;
  for (int c = consumers->first[tensor]; c < consumers->first[tensor + 1]; c++) {
    int i = consumers->use[c].tensor;
    if (i > g->last) break;
    if (!g->shared[i].group) continue;
    if (!member) rows |= row_axes(g, i, tensor);
    t.loads++;
  }
  t.row_bytes = t.bytes / (double)row_count(g, rows);
  return t;
}

/* Its elements stay in registers. */
static bool in_registers(const struct default_plans *planned, int tensor) {
  return planned->plan[tensor].kind == DEFAULT_FUSED_PRODUCER;
}

/* Cycles that the group saves by less traffic. Below 0: a row's data does not fit into the cache,
 * or all data does even without shared loops. */
static double saved_cycles(const struct group *g, const struct default_plans *planned) {
  double row = 0, whole = 0, bytes = 0;
  for (int i = 0; i <= g->last; i++) {
    struct traffic t = traffic_of(g, i);
    bool member = g->shared[i].group > 0, private = member && !g->shared[i].seen;
    if (in_registers(planned, i) || !(member || t.loads)) continue;
    row += t.row_bytes;
    whole += t.bytes;
    bytes += t.bytes * (private ? t.loads + 1 : member ? t.loads : t.loads - 1);
  }
  const struct machine *m = planned->machine;
  double l3 = m->l3 > 0 ? (double)m->l3 : 2 * (double)machine_l3_share(m);
  double room = whole > l3 ? (double)m->l2 / 2 : DEFAULT_ROW_CACHES * (double)m->l1;
  if (row > room || whole <= DEFAULT_ROW_CACHES * (double)m->l1) return -1;
  return DEFAULT_SAVED_BYTE * bytes;
}

/* Cycles that the group adds: a fused consumer that reduces waits in each row for its sum across
 * the lanes. */
static double flat_sum_cycles(const struct group *g, const struct default_plans *planned) {
  int sums = 0;
  for (int i = g->first; i <= g->last; i++)
    sums += g->shared[i].group && g->all->p->tensors.data[i].reductions &&
            planned->plan[i].kind == DEFAULT_FUSED_CONSUMER;
  return (double)(DEFAULT_FLAT_SUM_CYCLES * sums) * (double)g->rows;
}

/* ---- groups are tried ---- */

/* Marks members that are outputs, or that a stage outside of the group reads. */
static void find_outside_consumers(struct group *g) {
  const struct program *p = g->all->p;
  const struct program_use_list *consumers = &g->all->uses.consumers;
  for (int i = g->first; i <= g->last; i++) {
    if (!g->shared[i].group) continue;
    g->shared[i].seen = is_output(p, i);
    for (int c = consumers->first[i]; c < consumers->first[i + 1] && !g->shared[i].seen; c++) {
      int j = consumers->use[c].tensor;
      g->shared[i].seen = !g->shared[j].group && is_computed(g->all, j);
    }
  }
}

struct search {
  struct default_plans *all; /* the best so far */
  double before;             /* what other groups save */
  int tried;
};

/* Once so many groups were tried, none is taken any more. */
static bool may_try(const struct search *s) {
  return s->tried < DEFAULT_GROUPS_TRIED;
}

/* Takes the plans with the group if they are cheaper. */
static void try_group(struct search *s, struct group *g) {
  struct default_plans planned;
  if (g->members < 2 || s->tried++ >= DEFAULT_GROUPS_TRIED) return;
  g->rows = row_count(g, ~0u);
  find_outside_consumers(g);
  if (saved_cycles(g, s->all) <= 0) return;
  default_plan_shared(&planned, s->all, g->shared);
  double gain = saved_cycles(g, &planned) - flat_sum_cycles(g, &planned);
  planned.saved = s->before + gain;
  if (gain > 0 && default_plan_cycles(&planned) < DEFAULT_ROWS_LESS * default_plan_cycles(s->all)) {
    struct default_plans other = *s->all;
    *s->all = planned;
    planned = other;
  }
  default_plan_free(&planned);
}

/* Removes the shared axes that `common` has not, from all members. */
static void drop_other_axes(struct group *g, const struct default_shared *common) {
  for (int i = g->count - 1; i >= 0; i--) {
    if (common->axis[i] >= 0) continue;
    g->count--;
    for (int t = g->first; t < g->all->p->tensors.count; t++) {
      int *axis = g->shared[t].axis;
      memmove(axis + i, axis + i + 1, sizeof *axis * (size_t)(DEFAULT_ROWS - 1 - i));
    }
  }
}

static void add_member(struct group *g, int stage, const struct default_shared *axes) {
  int number = g->shared[g->first].group, count = 0, all = g->count;
  drop_other_axes(g, axes);
  for (int i = 0; i < all; i++)
    if (axes->axis[i] >= 0) g->shared[stage].axis[count++] = axes->axis[i];
  g->shared[stage].group = number;
  g->shared[stage].count = g->count;
  for (int i = g->first; i < stage && g->count < all; i++)
    if (g->shared[i].group == number) g->shared[i].count = g->count;
  g->last = stage;
  g->members++;
}

/* Adds member after member. The group is tried before it loses an axis, and at its end. */
static void grow(struct search *s, struct group *g) {
  const struct program *p = g->all->p;
  for (int i = g->first + 1; i < p->tensors.count && !g->shared[i].group && may_try(s); i++) {
    struct default_shared axes;
    if (!is_computed(g->all, i) || !reads_group(g, i)) continue;
    int left = shared_axes(g, i, &axes);
    if (left < g->count) try_group(s, g);
    if (!left) return;
    add_member(g, i, &axes);
  }
  try_group(s, g);
}

/* A group of its first stage alone, with the first DEFAULT_ROWS axes that are not vector axes. */
static void begin(struct group *g, int number) {
  struct default_facts f;
  struct default_shared *s = &g->shared[g->first];
  default_facts(g->all->p, g->first, g->all->layout, &f);
  g->last = g->first;
  g->members = 1;
  int axis[PROGRAM_AXES];
  for (int i = 0; i < f.t->rank; i++) axis[i] = may_share(&f, i) ? i : -1;
  drop_vector_axes(&f, axis, f.t->rank);
  for (int i = 0; i < f.t->rank && g->count < DEFAULT_ROWS; i++)
    if (axis[i] >= 0) s->axis[g->count++] = i;
  s->group = number;
  s->count = g->count;
}

void default_share_rows(struct default_plans *all) {
  struct search s = {all, 0, 0};
  size_t size = ((size_t)all->p->tensors.count + 1) * sizeof *all->shared;
  for (int i = 0, number = 1; i < all->p->tensors.count && may_try(&s); i++) {
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
