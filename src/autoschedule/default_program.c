/* The edits of a program that come before its default schedule. See default.h.
 *
 * Each keeps what is computed; one that does not go through leaves the program as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "autoschedule/default_editor.h"
#include "autoschedule/winograd_nest.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

enum {
  ROUNDS = 24,    /* edits of a kind */
  CHEAP = 2,      /* operations that may be done twice, */
  SPREAD = 4,     /* ... and, of what is so many times as large as what it is made of, */
  MOST_AGAIN = 8, /* ... so many times */
  MOST_SUMS = 4,  /* vectors of partial sums */
  AGAIN = 8,      /* sums over an axis of less than a vector that are worth its lanes */
  LONG = 4        /* vectors of an axis that no whole vectors divide */
};

static const double PARTIAL = 0.7; /* of the cycles without: less than that is worth partial sums */
static const double RAGGED = 1.2;  /* what they take where they do not divide the axis */
static const double FEWER = 0.98;  /* ... and of those with more of them, worth fewer */

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

/* It is several times as large as what it is made of, by little: windows of an image, say. */
static bool is_spread(const struct default_facts *f) {
  double most = 0;
  for (int i = 0; i < f->loads; i++) {
    double elements = (double)program_elements(f->p, f->load[i].tensor);
    if (elements > most) most = elements;
  }
  return f->operations <= CHEAP && (double)f->points >= SPREAD * most;
}

/* What reads it does so shifted or under conditions, so that lanes would be computed one by one. */
static bool is_moved(const struct program *p, const struct default_plans *all, int stage) {
  for (int i = stage + 1; i < p->tensors.count; i++) {
    struct default_facts f;
    if (!stage_loads(p, i, stage)) continue;
    default_facts(p, i, all->layout, &f);
    for (int j = 0; j < f.loads; j++)
      if (f.load[j].tensor == stage && (f.load[j].non_affine || f.load[j].guarded)) return true;
  }
  return false;
}

/* An image in its border, not along its lanes, of which windows are summed up, one for each of its channels: their
 * own loops are split where the border is. */
static bool is_border_of_windows(const struct program *p, int stage,
                                 const struct default_facts *f) {
  if (f->loads != 1 || f->load[0].non_affine || f->operations > 1) return false;
  uint32_t asked = f->load[0].guarded;
  if (!asked || asked >> (f->t->rank - 1) & 1) return false;
  for (int i = stage + 1; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    int64_t terms = 1;
    if (!stage_loads(p, i, stage)) continue;
    for (int r = t->rank; r < t->rank + t->reductions; r++) terms *= t->axes[r].size;
    if (!t->reductions || t->reductions > __builtin_popcount(asked) || terms > DEFAULT_FEW)
      return false;
  }
  return true;
}

static bool is_worth_inlining(const struct program *p, const struct default_plans *all, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  struct default_facts f;
  if (t->is_input || t->reductions || not_inlined(p, stage)) return false;
  struct uses u = uses_of(p, stage);
  if (!u.loads) return false;
  default_facts(p, stage, all->layout, &f);
  if (u.loads > 1 && (f.operations > CHEAP || u.loads > 3)) return false;
  if (f.operations >= DEFAULT_CALLS && is_moved(p, all, stage)) return false;
  if (u.loads > 1 && reads_sum(p, stage)) return false;
  if (u.loads == 1 && is_border_of_windows(p, stage, &f)) return true;
  double times = is_spread(&f) ? MOST_AGAIN : 1.01;
  return u.points <= times * (double)u.loads * (double)f.points;
}

static void inline_maps(struct editor *e) {
  const struct program *p = program_of(e);
  struct default_plans all;
  struct program *out;
  canvas_context ctx;
  int count = 0;
  struct change c = change_open(CHANGE_INLINE, p);
  all.layout = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *all.layout);
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &all.layout[i]);
  for (int i = 0; i < p->tensors.count; i++) count += c.inlined[i] = is_worth_inlining(p, &all, i);
  mem_free(all.layout);
  if (!count) {
    change_close(&c);
    program_free(c.to);
  } else if (change_finish(&ctx, &c, &out) == CANVAS_OK) {
    editor_take(e, out);
  }
}

/* ---- reductions along the lanes: partial sums -------------------------------------------------- */

/* Every load is contiguous along the axis, or stands still. */
static bool runs_along(const struct default_facts *f, int axis) {
  bool moves = false;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (!(l->depends_on >> axis & 1)) continue;
    if (l->non_affine >> axis & 1 || l->block[axis] || l->stride[axis] != 1) return false;
    moves = true;
  }
  return moves && !f->truncated && !(f->guarded >> axis & 1) && f->t->axes[axis].low < 0;
}

/* Cycles of a stage with partial sums along the axis, about: each vector once, and then the lanes. */
static double partial_cycles(const struct default_facts *f, int64_t sums, int lanes) {
  double vectors = (double)f->reduction / (double)(sums < lanes ? sums : lanes);
  double work = f->loads > f->operations ? f->loads : f->operations;
  return (double)f->points * (vectors * work / 2 + 20);
}

static struct program *with_partial_sums(const struct default_facts *f, int axis, int64_t sums) {
  char text[4 * PROGRAM_NAME], name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  editor_name(f->p, f->t->name, "_r", name);
  int length = snprintf(text, sizeof text, "rfactor %s %s %lld as %s", f->t->name,
                        f->t->axes[axis].name, (long long)sums, name);
  return program_edit(&ctx, f->p, text, (size_t)length, &out) == CANVAS_OK ? out : NULL;
}

/* Where no number of whole vectors divides the axis, the last steps are under a condition, which splits their
 * loop. NULL: it is too short, or not worth it. */
static struct program *ragged_sums(const struct default_facts *f, int axis, int lanes,
                                   double least) {
  int64_t size = f->t->axes[axis].size, sums = MOST_SUMS * lanes;
  if (size % lanes == 0 || size < LONG * lanes) return NULL;
  while (sums > lanes && 2 * sums > size) sums /= 2;
  if (2 * sums > size || RAGGED * partial_cycles(f, sums, lanes) >= least) return NULL;
  return with_partial_sums(f, axis, sums);
}

/* An axis that is less than a vector, of a sum that has more axes: a sum for each of its steps. NULL: it is not
 * worth it. */
static struct program *whole_sums(struct editor *e, const struct default_facts *f, int axis,
                                  int lanes) {
  int64_t size = f->t->axes[axis].size;
  if (2 * size <= lanes || size >= lanes || f->reduction < AGAIN * size) return NULL;
  struct program *out = with_partial_sums(f, axis, size);
  if (!out || editor_cycles(e, out) < FEWER * editor_cycles(e, program_of(e))) return out;
  program_free(out);
  return NULL;
}

/* The program with so many partial sums along the axis as take least: as many vectors of them as divide
 * it, up to four; fewer where that makes room for rows that share what they load. Less than one vector
 * only where none divides it and it is short. NULL: nothing does, or it is not worth it. */
static struct program *partial_sums(struct editor *e, const struct default_facts *f, int axis,
                                    double least) {
  int64_t size = f->t->axes[axis].size;
  int lanes = default_lanes(f->t, e->machine);
  struct program *best = ragged_sums(f, axis, lanes, least);
  double cycles = 0;
  if (!best) best = whole_sums(e, f, axis, lanes);
  if (best) return best;
  for (int64_t sums = MOST_SUMS * lanes; sums >= 4; sums /= 2) {
    if (size % sums || (best && (sums < lanes || !default_rows_share(f)))) continue;
    if (!best && partial_cycles(f, sums, lanes) >= least) return NULL;
    struct program *p = with_partial_sums(f, axis, sums);
    double taken = p ? editor_cycles(e, p) : 0;
    bool less = p && (!best || taken < FEWER * cycles);
    program_free(less ? best : p);
    if (!less) continue;
    best = p;
    cycles = taken;
  }
  return best;
}

/* Without a wish for a tile, it is for all stages. */
static int64_t wished_sums(const struct editor *e, bool is_wished) {
  const struct default_constraint *wish = e->mode.constraint;
  return wish && (is_wished || !wish->tile) ? wish->partial_sums : 0;
}

static bool rfactor_one(struct editor *e, int *after) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  struct program *out = NULL;
  for (int i = *after + 1; i < p->tensors.count && !out; i++) {
    const struct default_plan *plan = &all->plan[i];
    struct default_facts f;
    if (plan->kind != DEFAULT_TILED && plan->kind != DEFAULT_FUSED_PRODUCER) continue;
    if (!p->tensors.data[i].reductions) continue;
    int64_t sums = wished_sums(e, i == all->constrained);
    default_facts(p, i, all->layout, &f);
    for (int r = f.t->rank; r < f.t->rank + f.t->reductions && !out && sums >= 0; r++)
      if (runs_along(&f, r))
        out = sums ? with_partial_sums(&f, r, sums)
                   : partial_sums(e, &f, r, PARTIAL * plan->tile.cycles);
    *after = i + 1; /* the sum of what comes before it */
  }
  if (out) editor_take(e, out);
  return out != NULL;
}

/* ---- outputs across the lanes ----------------------------------------------------------------- */

/* Functions are not for one lane at a time. */
static bool is_slow_apart(const struct default_plans *all, int stage) {
  struct default_facts f;
  int of = 0;
  while (all->plan[of].consumer != stage) of++;
  default_facts(all->p, stage, all->layout, &f);
  return all->plan[of].gathered && all->plan[of].transposed < 0 && f.operations >= DEFAULT_CALLS;
}

static bool cache_one(struct editor *e) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  char text[3 * PROGRAM_NAME], name[PROGRAM_NAME];
  bool found = false;
  for (int i = 0; i < p->outputs.count && !found; i++) {
    int stage = p->outputs.data[i];
    const struct default_plan *plan = &all->plan[stage];
    struct default_facts f;
    if (plan->kind == DEFAULT_FUSED_CONSUMER
            ? !is_slow_apart(all, stage)
            : plan->kind != DEFAULT_TILED || !p->tensors.data[stage].reductions)
      continue;
    default_facts(p, stage, all->layout, &f);
    found = plan->kind == DEFAULT_FUSED_CONSUMER ||
            (plan->tile.vector_axis >= 0 && f.out_stride[plan->tile.vector_axis] != 1);
    editor_name(p, f.t->name, "_c", name);
    snprintf(text, sizeof text, "cache %s as %s", f.t->name, name);
  }
  return found && editor_edit(e, text);
}

/* What no plan is asked for: the same in each mode. */
static void edit_alike(struct editor *e) {
  editor_normalize_conditions(e);
  for (int i = 0; i < ROUNDS && editor_multiply(e); i++) {
  }
  inline_maps(e);
  for (int i = 0; i < ROUNDS && editor_hoist(e); i++) {
  }
}

static void edit_maps(struct editor *e) {
  bool borders = e->mode.constraint && e->mode.constraint->keeps_guards;
  for (int i = 0; i < ROUNDS && !borders && editor_materialize(e); i++) {
  }
  for (int i = 0, skip = 0; i < ROUNDS && !e->mode.constraint && editor_straighten(e, &skip); i++) {
  }
  for (int i = 0; i < ROUNDS && !e->mode.constraint && editor_transpose(e); i++) {
  }
}

/* All but panels, which go with a tile. */
static void edit_stages(struct editor *e) {
  edit_maps(e);
  for (int i = 0, after = -1; i < ROUNDS && rfactor_one(e, &after); i++) {
  }
  for (int i = 0; i < ROUNDS && cache_one(e); i++) {
  }
  for (int i = 0, after = -1; i < ROUNDS && !e->mode.constraint && editor_border(e, &after); i++) {
  }
}

static void edit_all(struct editor *e) {
  edit_stages(e);
  for (int i = 0; i < ROUNDS && editor_pack(e); i++) {
  }
}

static struct editor editor_open(const struct program *p, const struct machine *machine,
                                 const struct default_constraint *wish, bool told) {
  return (struct editor){.given = p,
                         .machine = machine,
                         .mode = {.pack = true, .program_layout = told, .constraint = wish}};
}

static struct editor edited_in_mode(const struct program *p, const struct machine *machine,
                                    const struct default_constraint *wish, bool told, bool verifies,
                                    bool *matters) {
  struct editor e = editor_open(p, machine, wish, told);
  e.mode.layout_matters = matters;
  e.verifies = verifies;
  edit_all(&e);
  return e;
}

/* In the mode that takes less; the program is NULL where there are no edits. */
static struct default_edited edited_at_best(const struct program *p, const struct machine *machine,
                                            const struct default_constraint *wish, bool verifies) {
  bool matters = false;
  struct editor open = edited_in_mode(p, machine, wish, false, verifies, &matters);
  double cycles = editor_cycles(&open, program_of(&open));
  editor_close(&open);
  if (!matters) return (struct default_edited){open.p, LAYOUT_FREE};
  struct editor told = edited_in_mode(p, machine, wish, true, verifies, NULL);
  bool takes_less = editor_cycles(&told, program_of(&told)) < cycles;
  editor_close(&told);
  program_free(takes_less ? open.p : told.p);
  return takes_less ? (struct default_edited){told.p, LAYOUT_OF_PROGRAM}
                    : (struct default_edited){open.p, LAYOUT_FREE};
}

/* Verified in the end. An edit that makes what no program may be does not go through: then each of them is. */
static struct default_edited edited_in_modes(const struct program *p, const struct machine *machine,
                                             const struct default_constraint *wish) {
  canvas_context ctx;
  struct default_edited edited = edited_at_best(p, machine, wish, false);
  if (!edited.program || program_verify(&ctx, edited.program) == CANVAS_OK) return edited;
  program_free(edited.program);
  return edited_at_best(p, machine, wish, true);
}

static struct default_edited edited_for(const struct program *p, const struct machine *machine,
                                        const struct default_constraint *wish) {
  struct editor alike = editor_open(p, machine, wish, false);
  edit_alike(&alike);
  struct default_edited edited = edited_in_modes(program_of(&alike), machine, wish);
  if (!edited.program) return (struct default_edited){alike.p, LAYOUT_EITHER};
  program_free(alike.p);
  return edited;
}

static bool are_odd_rows(const struct program *p, const struct machine *machine) {
  struct schedule *s = default_odd_rows(p, machine);
  schedule_free(s);
  return s != NULL;
}

/* The program after the edits; NULL where there are none. Sets `odd` where its schedule is that of odd rows. */
static struct default_edited edited_program(const struct program *p, const struct machine *machine,
                                            bool *odd) {
  *odd = false;
  if (!default_may_have_odd_rows(p, machine)) return edited_for(p, machine, NULL);
  struct editor e = editor_open(p, machine, NULL, false);
  edit_alike(&e);
  edit_maps(&e); /* partial sums and panels there are none */
  editor_close(&e);
  *odd = are_odd_rows(program_of(&e), machine);
  if (*odd) return (struct default_edited){e.p, LAYOUT_EITHER};
  program_free(e.p);
  return edited_for(p, machine, NULL);
}

/* A sum of products whose rows share what they load. */
static bool has_product(const struct program *p) {
  struct default_layout *kept = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *kept);
  bool found = false;
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &kept[i]);
  for (int i = 0; i < p->tensors.count && !found; i++) {
    struct default_facts f;
    if (!p->tensors.data[i].reductions) continue;
    default_facts(p, i, kept, &f);
    found = f.loads > 1 && default_rows_share(&f);
  }
  mem_free(kept);
  return found;
}

static const double SURELY_LESS = 0.95; /* cycles, of those before: by as much as predictions err */

/* What the first output has side by side is an axis that was merged. */
static bool merges_last(const struct program *p, const struct program *merged) {
  const struct program_tensor *a = &p->tensors.data[p->outputs.data[0]],
                              *b = &merged->tensors.data[merged->outputs.data[0]];
  return b->rank && b->axes[b->rank - 1].size != a->axes[a->rank - 1].size;
}

static double cycles_after(const struct program *p, struct default_edited edited,
                           const struct machine *machine) {
  return default_cycles(edited.program ? edited.program : p, machine, edited.layout);
}

/* The program with merged axes where that takes less: they leave no rows for stages to share. A product has them where
 * its lanes are lines then; that is not asked for, as the formula takes lines for faster than they are. Where its rows
 * are, as of pixels with channels behind them, it has them where that surely takes less: 14 pixels are three tiles of
 * 5 or 6, 196 are 33 of 6. NULL: it does not. Sets what the edits make of the one that takes less, NULL: nothing. */
static struct program *merged_if_less(const struct program *p, const struct machine *machine,
                                      struct default_edited *edited) {
  struct program *merged = program_merge_axes(p);
  struct default_edited other = {0};
  bool odd = false, odd_merged = false;
  bool product = merged && has_product(p), rows = product && !merges_last(p, merged);
  if (merged) other = edited_program(merged, machine, &odd_merged);
  if (merged && !rows && (product || odd_merged)) {
    *edited = other;
    return merged;
  }
  *edited = edited_program(p, machine, &odd);
  if (!merged) return NULL;
  bool less = !odd && !odd_merged &&
              cycles_after(merged, other, machine) <=
                  (rows ? SURELY_LESS : 1) * cycles_after(p, *edited, machine);
  program_free(less ? edited->program : merged);
  if (less)
    *edited = other;
  else
    program_free(other.program);
  return less ? merged : NULL;
}

struct program *default_merged(const struct program *p, const struct machine *machine) {
  struct default_edited edited;
  struct program *merged = merged_if_less(p, machine, &edited);
  program_free(edited.program);
  return merged;
}

struct default_edited default_edit(const struct program *p, const struct machine *machine) {
  struct schedule *winograd = default_winograd(p, machine);
  struct default_edited edited = {0};
  schedule_free(winograd);
  if (winograd) return edited;
  struct program *merged = merged_if_less(p, machine, &edited);
  if (!edited.program) return (struct default_edited){merged, LAYOUT_EITHER};
  program_free(merged);
  return edited;
}

struct program *default_program(const struct program *p, const struct machine *machine) {
  return default_edit(p, machine).program;
}

/* What conditions of indices choose is multiplied only where they do, what a weight that is not finite makes of
 * the zeros beside it is added: last of all, as what is loaded there can be packed no more. */
static void border_sums(struct program **p) {
  for (int i = 0; i < (*p)->tensors.count; i++) {
    char text[3 * PROGRAM_NAME], name[PROGRAM_NAME];
    const char *sum = (*p)->tensors.data[i].name;
    struct program *out;
    canvas_context ctx;
    if (!(*p)->tensors.data[i].reductions) continue;
    editor_name(*p, sum, "_b", name);
    snprintf(text, sizeof text, "border %s as %s", sum, name);
    if (program_edit(&ctx, *p, text, strlen(text), &out) != CANVAS_OK) continue;
    program_free(*p);
    *p = out;
  }
}

static double cycles_of(const struct program *p, const struct machine *machine,
                        const struct default_constraint *wish) {
  struct default_mode open = {.constraint = wish},
                      told = {.program_layout = true, .constraint = wish};
  struct editor a = {.given = p, .machine = machine, .mode = open};
  struct editor b = {.given = p, .machine = machine, .mode = told};
  double x = editor_cycles(&a, p), y = editor_cycles(&b, p);
  editor_close(&a);
  editor_close(&b);
  return x < y ? x : y;
}

bool default_make(const struct program *p, const struct machine *machine,
                  const struct default_constraint *wish, struct default_made *out) {
  *out = (struct default_made){.program = edited_for(p, machine, wish).program};
  if (!out->program) out->program = program_copy(p);
  out->cycles = cycles_of(out->program, machine, wish);
  if (wish->keeps_guards) border_sums(&out->program);
  out->schedule = schedule_constrained(out->program, machine, wish, out);
  if (out->schedule) return true;
  program_free(out->program);
  return false;
}

void default_list_candidates(const struct program *p, const struct machine *machine,
                             const struct default_constraint *wish,
                             struct default_candidates *out) {
  struct default_constraint seeing = *wish;
  seeing.tile = false;
  for (int told = 0; told < 2; told++) {
    struct default_plans all;
    struct editor e = editor_open(p, machine, wish, told);
    edit_alike(&e);
    edit_stages(&e);
    seeing.candidates = out;
    default_plan_all(
        &all, program_of(&e), machine,
        (struct default_mode){.pack = true, .program_layout = told, .constraint = &seeing});
    default_plan_free(&all);
    editor_close(&e);
    program_free(e.p);
  }
}
