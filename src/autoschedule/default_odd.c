/* Programs over odd rows, whose length is no multiple of a vector: a norm, softmax, a mean. One
 * loop over rows encloses all stages. Each stage is a vector loop along the row with a remainder
 * loop.
 *
 *     row0 =>
 *         mean_o, mean_v:64:peel:vec =>
 *             @mean = {row0}/r // {mean_o, mean_v}/c
 *         Y_o, Y_v:64:peel:vec =>
 *             @Y = {row0}/r, {Y_o, Y_v}/c
 *
 * A short row is one masked vector loop. Here the schedule is one of the whole program, for
 * programs that consist of such rows only. The formula of default_cycles.c decides about products
 * alone, which may be faster as register tiles. Odd rows get no partial sums (default_program.c):
 * those have a guarded part and a sum across the lanes.
 */
#include <stdlib.h>

#include "autoschedule/default_chooser.h"
#include "bind/loop_tree.h"
#include "cost/policy.h"
#include "program/program_cost.h"
#include "rewrite/program_rebuild.h"
#include "schedule/schedule.h"

struct rows {
  const struct program *p;
  const struct machine *machine;
  struct default_layout *layout;        /* by tensor, the program's */
  const struct program_tensor *reducer; /* the first stage with a reduction */
  int count;              /* rows are the first axes of every stage; 0: no stage reduces */
  int reducers;           /* number of stages with a reduction */
  bool ignores_functions; /* edits may move functions out of the rows */
};

static struct rows rows_open(const struct program *p, const struct machine *machine) {
  struct rows r = {.p = p, .machine = machine};
  r.layout = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *r.layout);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    default_row_major(t, &r.layout[i]);
    if (!r.reducer && t->reductions) r.reducer = t;
    r.reducers += t->reductions > 0;
  }
  r.count = r.reducer ? r.reducer->rank : 0;
  return r;
}

/* A product whose rows share loads is predicted to be faster as a register tile, with packing. */
static bool is_faster_tiled(const struct rows *r, const struct default_facts *f) {
  struct default_tile tile;
  struct default_options options = {.pack = true, .lanes = -1, .split = true};
  default_choose_tile(f, r->machine, options, &tile);
  return tile.cycles < DEFAULT_ODD_TILED * default_horizontal_cycles(f, r->machine, r->count);
}

/* A stage along an odd row of a length for which this schedule is the better one. */
static bool pays(const struct rows *r, const struct default_facts *f) {
  int64_t size = f->t->axes[r->count].size, lanes = default_lanes(f->t, r->machine);
  int64_t waste = up(size, lanes) * lanes - size;
  bool functions = !r->ignores_functions && f->operations >= DEFAULT_HEAVY_OPERATIONS;
  bool chained =
      functions || (r->reducers > 1 && r->machine->vector_bytes <= DEFAULT_ODD_NARROW_BYTES);
  if (size % lanes == 0 || size < (chained ? DEFAULT_ODD_CHAINED : DEFAULT_ODD_SHORTEST) * lanes)
    return false;
  if (functions && DEFAULT_ODD_WASTE * waste > size) return false;
  bool shared = f->t->reductions && default_rows_share(f);
  return !shared || (size < DEFAULT_ODD_SHARED * lanes && !is_faster_tiled(r, f));
}

/* The stage has the rows' axes, and either no further axis or one, along which its loads are
 * contiguous. */
static bool is_row_stage(const struct rows *r, int stage) {
  const struct program_tensor *t = &r->p->tensors.data[stage];
  struct default_facts f;
  int beyond = t->rank + t->reductions - r->count;
  if (t->rank < r->count || beyond > 1) return false;
  if (t->dtype != PROGRAM_F32 && t->dtype != PROGRAM_F64) return false;
  for (int i = 0; i < r->count; i++)
    if (t->axes[i].size != r->reducer->axes[i].size || t->axes[i].low >= 0) return false;
  if (!beyond) return true;
  default_facts(r->p, stage, r->layout, &f);
  return default_is_unit_stride(&f, r->count) && !default_has_other_vector_axis(&f, r->count) &&
         pays(r, &f);
}

/* All stages are stages of rows. Constant-folded ones are not: they have loops of their own. */
static bool has_only_rows(const struct rows *r) {
  bool *constant = program_constants(r->p), all = r->count > 0;
  for (int i = 0; i < r->p->tensors.count && all; i++)
    all = r->p->tensors.data[i].is_input || (!constant[i] && is_row_stage(r, i));
  mem_free(constant);
  return all;
}

/* `@Y = {row0}/r` */
static void put_leaf_rows(const struct rows *r, const struct program_tensor *t, struct buf *out) {
  buf_printf(out, "@%s = ", t->name);
  for (int i = 0; i < r->count; i++)
    buf_printf(out, "%s{row%d}/%s", i ? ", " : "", i, t->axes[i].name);
}

/* The loops of a stage in a row, and its leaf. */
static void put_stage(const struct rows *r, int stage, struct buf *out) {
  const struct program_tensor *t = &r->p->tensors.data[stage];
  const char *separator = t->reductions ? " // " : ", ", *name = t->name;
  struct default_facts f;
  buf_puts(out, "    ");
  if (t->rank + t->reductions == r->count) {
    put_leaf_rows(r, t, out);
    buf_puts(out, "\n");
    return;
  }
  default_facts(r->p, stage, r->layout, &f);
  const struct program_axis *a = &t->axes[r->count];
  int64_t steps =
      default_lanes(t, r->machine) *
      (f.operations >= DEFAULT_HEAVY_OPERATIONS ? DEFAULT_ODD_FUNCTIONS : DEFAULT_ODD_WHOLE);
  bool split = a->size > steps;
  if (split)
    buf_printf(out, "%s_o, %s_v:%lld:peel:vec =>\n        ", name, name, (long long)steps);
  else
    buf_printf(out, "%s_v:%lld:mask:vec =>\n        ", name, (long long)a->size);
  put_leaf_rows(r, t, out);
  if (split)
    buf_printf(out, "%s{%s_o, %s_v}/%s\n", separator, name, name, a->name);
  else
    buf_printf(out, "%s{%s_v}/%s\n", separator, name, a->name);
}

/* Cycles of arithmetic in all stages: decides about threads only. */
static double arithmetic_cycles(const struct rows *r) {
  double cycles = 0;
  for (int i = 0; i < r->p->tensors.count; i++) {
    struct default_facts f;
    if (r->p->tensors.data[i].is_input) continue;
    default_facts(r->p, i, r->layout, &f);
    cycles +=
        (double)(f.points * f.reduction * f.operations) / (double)default_lanes(f.t, r->machine);
  }
  return cycles;
}

static struct schedule *schedule_of(const struct rows *r) {
  struct buf text = {0};
  struct schedule *s = NULL;
  canvas_context ctx;
  bool parallel = arithmetic_cycles(r) >= DEFAULT_PARALLEL_CYCLES;
  buf_puts(&text, "canvas 1\nschedule heuristic\n");
  for (int i = 0; i < r->count; i++) {
    bool para = parallel && r->reducer->axes[i].size > 1;
    buf_printf(&text, "%srow%d%s", i ? ", " : "", i, para ? ":para" : "");
    parallel = parallel && !para;
  }
  buf_puts(&text, " =>\n");
  for (int i = 0; i < r->p->tensors.count; i++)
    if (!r->p->tensors.data[i].is_input) put_stage(r, i, &text);
  if (schedule_parse(&ctx, text.text, text.length, &s) != CANVAS_OK) s = NULL;
  buf_free(&text);
  return s;
}

bool default_may_have_odd_rows(const struct program *p, const struct machine *machine) {
  struct rows r = rows_open(p, machine);
  r.ignores_functions = true;
  bool may = has_only_rows(&r);
  mem_free(r.layout);
  return may;
}

struct schedule *default_odd_rows(const struct program *p, const struct machine *machine) {
  struct rows r = rows_open(p, machine);
  struct schedule *s = has_only_rows(&r) ? schedule_of(&r) : NULL;
  struct loop_tree *tree = NULL;
  canvas_context ctx;
  if (s && loop_tree_bind(&ctx, p, s, machine, &tree) != CANVAS_OK) {
    schedule_free(s); /* a row reads another row */
    s = NULL;
  }
  loop_tree_free(tree);
  mem_free(r.layout);
  return s;
}
