/* Rows that no whole vectors divide, and what is made of each: a norm, softmax, a mean. One row after the other goes
 * through all stages, in some vectors at a time, and what is left of it is code of its own.
 *
 *     row0 =>
 *         mean_o, mean_v:64:peel:vec =>
 *             @mean = {row0}/r // {mean_o, mean_v}/c
 *         Y_o, Y_v:64:peel:vec =>
 *             @Y = {row0}/r, {Y_o, Y_v}/c
 *
 * Partial sums of such a row (default_program.c) have a part under a condition, and are added up across the lanes.
 * The formula is not asked: this is a schedule of the whole program, for programs that are nothing else.
 */
#include <stdlib.h>

#include "autoschedule/default_chooser.h"
#include "bind/loop_tree.h"
#include "program/program_cost.h"
#include "rewrite/program_rebuild.h"
#include "schedule/schedule.h"

enum {
  SHORTEST = 1,  /* vectors of a row */
  CHAINED = 4,   /* ... whose stages wait for each other: sums one after the other, functions */
  NARROW = 32,   /* bytes of vectors up to which sums do, as other loops gather few lanes there */
  WHOLE = 8,     /* ... that is not split, and of a step of one that is */
  FUNCTIONS = 4, /* ... where each computes a function */
  SHARED = 16, /* ... that many rows share, from which on partial sums of several rows take less */
  WASTE = 7,   /* one in so many lanes of functions may be for nothing */
  PARALLEL = 1 << 15 /* cycles that are worth threads */
};

struct rows {
  const struct program *p;
  const struct machine *machine;
  struct default_layout *kept;        /* by tensor, as the program tells */
  const struct program_tensor *first; /* that sums */
  int count;                          /* axes that rows have; 0: none sums */
  int sums;                           /* stages that sum */
  bool any;                           /* functions are of no account, as edits may take them out */
};

static struct rows rows_open(const struct program *p, const struct machine *machine) {
  struct rows r = {.p = p, .machine = machine};
  r.kept = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *r.kept);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    default_row_major(t, &r.kept[i]);
    if (!r.first && t->reductions) r.first = t;
    r.sums += t->reductions > 0;
  }
  r.count = r.first ? r.first->rank : 0;
  return r;
}

static bool is_worth_it(const struct rows *r, const struct default_facts *f) {
  int64_t size = f->t->axes[r->count].size, lanes = default_lanes(f->t, r->machine);
  int64_t waste = up(size, lanes) * lanes - size;
  bool functions = !r->any && f->operations >= DEFAULT_CALLS;
  bool chained = functions || (r->sums > 1 && r->machine->vector_bytes <= NARROW);
  if (size % lanes == 0 || size < (chained ? CHAINED : SHORTEST) * lanes) return false;
  if (functions && WASTE * waste > size) return false;
  bool shared = f->t->reductions && default_rows_share(f);
  return !shared || size < SHARED * lanes;
}

/* The stage has the rows of the first one that sums, and goes along them, or is one number of each. */
static bool is_of_rows(const struct rows *r, int stage) {
  const struct program_tensor *t = &r->p->tensors.data[stage];
  struct default_facts f;
  int beyond = t->rank + t->reductions - r->count;
  if (t->rank < r->count || beyond > 1) return false;
  if (t->dtype != PROGRAM_F32 && t->dtype != PROGRAM_F64) return false;
  for (int i = 0; i < r->count; i++)
    if (t->axes[i].size != r->first->axes[i].size || t->axes[i].low >= 0) return false;
  if (!beyond) return true;
  default_facts(r->p, stage, r->kept, &f);
  return default_is_unit_stride(&f, r->count) && !default_has_other_vector_axis(&f, r->count) &&
         is_worth_it(r, &f);
}

/* What depends on constant inputs alone is prepared, and has loops of its own. */
static bool are_all(const struct rows *r) {
  bool *constant = program_constants(r->p), all = r->count > 0;
  for (int i = 0; i < r->p->tensors.count && all; i++)
    all = r->p->tensors.data[i].is_input || (!constant[i] && is_of_rows(r, i));
  mem_free(constant);
  return all;
}

static void put_leaf(const struct rows *r, const struct program_tensor *t, struct buf *out) {
  buf_printf(out, "@%s = ", t->name);
  for (int i = 0; i < r->count; i++)
    buf_printf(out, "%s{row%d}/%s", i ? ", " : "", i, t->axes[i].name);
}

static void put_stage(const struct rows *r, int stage, struct buf *out) {
  const struct program_tensor *t = &r->p->tensors.data[stage];
  const char *along = t->reductions ? " // " : ", ", *name = t->name;
  struct default_facts f;
  buf_puts(out, "    ");
  if (t->rank + t->reductions == r->count) {
    put_leaf(r, t, out);
    buf_puts(out, "\n");
    return;
  }
  default_facts(r->p, stage, r->kept, &f);
  const struct program_axis *a = &t->axes[r->count];
  int64_t steps =
      default_lanes(t, r->machine) * (f.operations >= DEFAULT_CALLS ? FUNCTIONS : WHOLE);
  bool split = a->size > steps;
  if (split)
    buf_printf(out, "%s_o, %s_v:%lld:peel:vec =>\n        ", name, name, (long long)steps);
  else
    buf_printf(out, "%s_v:%lld:mask:vec =>\n        ", name, (long long)a->size);
  put_leaf(r, t, out);
  if (split)
    buf_printf(out, "%s{%s_o, %s_v}/%s\n", along, name, name, a->name);
  else
    buf_printf(out, "%s{%s_v}/%s\n", along, name, a->name);
}

/* About. */
static double cycles_of(const struct rows *r) {
  double cycles = 0;
  for (int i = 0; i < r->p->tensors.count; i++) {
    struct default_facts f;
    if (r->p->tensors.data[i].is_input) continue;
    default_facts(r->p, i, r->kept, &f);
    cycles +=
        (double)(f.points * f.reduction * f.operations) / (double)default_lanes(f.t, r->machine);
  }
  return cycles;
}

static struct schedule *schedule_of(const struct rows *r) {
  struct buf text = {0};
  struct schedule *s = NULL;
  canvas_context ctx;
  bool parallel = cycles_of(r) >= PARALLEL;
  buf_puts(&text, "canvas 1\nschedule heuristic\n");
  for (int i = 0; i < r->count; i++) {
    bool here = parallel && r->first->axes[i].size > 1;
    buf_printf(&text, "%srow%d%s", i ? ", " : "", i, here ? ":para" : "");
    parallel = parallel && !here;
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
  r.any = true;
  bool may = are_all(&r);
  mem_free(r.kept);
  return may;
}

struct schedule *default_odd_rows(const struct program *p, const struct machine *machine) {
  struct rows r = rows_open(p, machine);
  struct schedule *s = are_all(&r) ? schedule_of(&r) : NULL;
  struct loop_tree *tree = NULL;
  canvas_context ctx;
  if (s && loop_tree_bind(&ctx, p, s, machine, &tree) != CANVAS_OK) {
    schedule_free(s); /* one row reads another one */
    s = NULL;
  }
  loop_tree_free(tree);
  mem_free(r.kept);
  return s;
}
