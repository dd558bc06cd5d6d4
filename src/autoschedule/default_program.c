/* The edits of a program that come before its default schedule. Axes are merged first, if the merged program is
 * predicted to be faster. The other edits follow in order: index conditions, reciprocals, inlining, hoisting; padded
 * buffers and layouts; partial sums; an output that is computed beside its place; padding boundaries; panels. Each
 * keeps the values; an edit that fails leaves the program as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "autoschedule/default_editor.h"
#include "autoschedule/winograd_nest.h"
#include "cost/policy.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* ---- inlining of element-wise stages ---- */

/* Evaluations of the loads of a stage, and load nodes. */
struct evaluations {
  double points;
  int loads;
};

/* The stage reads a reduction: it can be fused into that tile, and is not inlined into several loads. */
static bool reads_sum(const struct default_plans *all, int stage) {
  const struct program_use_list *operands = &all->uses.operands;
  for (int i = operands->first[stage]; i < operands->first[stage + 1]; i++)
    if (all->p->tensors.data[operands->use[i].tensor].reductions) return true;
  return false;
}

static struct evaluations evaluations_of(const struct default_plans *all, int stage) {
  const struct program_use_list *consumers = &all->uses.consumers;
  struct evaluations e = {0, 0};
  for (int i = consumers->first[stage]; i < consumers->first[stage + 1]; i++) {
    const struct program_tensor *t = &all->p->tensors.data[consumers->use[i].tensor];
    double points = consumers->use[i].loads;
    for (int j = 0; j < t->rank + t->reductions; j++) points *= (double)t->axes[j].size;
    e.points += points;
    e.loads += consumers->use[i].loads;
  }
  return e;
}

/* The stage is cheap, and several times larger than its operands, such as the columns of an image. */
static bool is_spread(const struct default_facts *f) {
  double most = 0;
  for (int i = 0; i < f->loads; i++) {
    double elements = (double)program_elements(f->p, f->load[i].tensor);
    if (elements > most) most = elements;
  }
  return f->operations <= DEFAULT_CHEAP_OPERATIONS &&
         (double)f->points >= DEFAULT_SPREAD_GROWTH * most;
}

/* A consumer loads the stage with a non-affine index or under a condition: inlined, it would be scalar code. */
static bool is_loaded_irregularly(const struct default_plans *all, int stage) {
  const struct program_use_list *consumers = &all->uses.consumers;
  for (int i = consumers->first[stage]; i < consumers->first[stage + 1]; i++) {
    struct default_facts f;
    default_facts(all->p, consumers->use[i].tensor, all->layout, &f);
    for (int j = 0; j < f.loads; j++)
      if (f.load[j].tensor == stage && (f.load[j].non_affine || f.load[j].guarded)) return true;
  }
  return false;
}

/* A padded image whose consumers reduce over short windows of each channel: the loops of these are partitioned at the
 * padding boundary, so that no padded copy is needed. */
static bool is_padding_of_windows(const struct default_plans *all, int stage,
                                  const struct default_facts *f) {
  const struct program_use_list *consumers = &all->uses.consumers;
  if (f->loads != 1 || f->load[0].non_affine || f->operations > 1) return false;
  uint32_t guarded = f->load[0].guarded;
  if (!guarded || guarded >> (f->t->rank - 1) & 1) return false;
  for (int i = consumers->first[stage]; i < consumers->first[stage + 1]; i++) {
    const struct program_tensor *t = &all->p->tensors.data[consumers->use[i].tensor];
    int64_t terms = 1;
    for (int r = t->rank; r < t->rank + t->reductions; r++) terms *= t->axes[r].size;
    if (!t->reductions || t->reductions > __builtin_popcount(guarded) ||
        terms > DEFAULT_SHORT_REDUCTION)
      return false;
  }
  return true;
}

static bool is_worth_inlining(const struct default_plans *all, int stage) {
  const struct program *p = all->p;
  const struct program_tensor *t = &p->tensors.data[stage];
  struct default_facts f;
  if (t->is_input || t->reductions || not_inlined(p, stage)) return false;
  struct evaluations u = evaluations_of(all, stage);
  if (!u.loads) return false;
  default_facts(p, stage, all->layout, &f);
  if (u.loads > 1 && (f.operations > DEFAULT_CHEAP_OPERATIONS || u.loads > DEFAULT_INLINED_LOADS))
    return false;
  if (f.operations >= DEFAULT_HEAVY_OPERATIONS && is_loaded_irregularly(all, stage)) return false;
  if (u.loads > 1 && reads_sum(all, stage)) return false;
  if (u.loads == 1 && is_padding_of_windows(all, stage, &f)) return true;
  double times = is_spread(&f) ? DEFAULT_SPREAD_REPEATS : DEFAULT_INLINED_REPEATS;
  return u.points <= times * (double)u.loads * (double)f.points;
}

static void inline_stages(struct editor *e) {
  const struct program *p = program_of(e);
  struct default_plans all = {.p = p, .uses = program_find_uses(p)};
  struct program *out;
  canvas_context ctx;
  int count = 0;
  struct change c = change_open(CHANGE_INLINE, p);
  all.layout = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *all.layout);
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &all.layout[i]);
  for (int i = 0; i < p->tensors.count; i++) count += c.inlined[i] = is_worth_inlining(&all, i);
  mem_free(all.layout);
  program_free_uses(&all.uses);
  if (!count) {
    change_close(&c);
    program_free(c.to);
  } else if (change_finish(&ctx, &c, &out) == CANVAS_OK) {
    editor_take(e, out);
  }
}

/* ---- partial sums: reductions along the vector axis ---- */

/* Every load is contiguous along the axis, or invariant; at least one depends on it. */
static bool is_contiguous_along(const struct default_facts *f, int axis) {
  bool depends = false;
  for (int i = 0; i < f->loads; i++) {
    const struct default_load *l = &f->load[i];
    if (!(l->depends_on >> axis & 1)) continue;
    if (l->non_affine >> axis & 1 || l->block[axis] || l->stride[axis] != 1) return false;
    depends = true;
  }
  return depends && !f->truncated && !(f->guarded >> axis & 1) && f->t->axes[axis].low < 0;
}

/* An approximate estimate of a stage with partial sums: each vector once, then the sum of its lanes. */
static double partial_cycles(const struct default_facts *f, int64_t sums, int lanes) {
  double vectors = (double)f->reduction / (double)(sums < lanes ? sums : lanes);
  double work = f->loads > f->operations ? f->loads : f->operations;
  return (double)f->points * (vectors * work / 2 + DEFAULT_LANE_SUM_CYCLES);
}

static struct program *with_partial_sums(const struct default_facts *f, int axis, int64_t sums) {
  char text[EDIT_TEXT], name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  editor_name(f->p, f->t->name, "_r", name);
  int length = snprintf(text, sizeof text, "rfactor %s %s %lld as %s", f->t->name,
                        f->t->axes[axis].name, (long long)sums, name);
  return program_edit(&ctx, f->p, text, (size_t)length, &out) == CANVAS_OK ? out : NULL;
}

/* Partial sums along an axis that is no multiple of a vector: a condition guards the last steps, and partitions their
 * loop. NULL: the axis is too short, or the gain too small. */
static struct program *uneven_sums(const struct default_facts *f, int axis, int lanes,
                                   double limit) {
  int64_t size = f->t->axes[axis].size, sums = DEFAULT_PARTIAL_VECTORS * lanes;
  if (size % lanes == 0 || size < DEFAULT_UNEVEN_VECTORS * lanes) return NULL;
  while (sums > lanes && 2 * sums > size) sums /= 2;
  if (2 * sums > size || DEFAULT_UNEVEN_CYCLES * partial_cycles(f, sums, lanes) >= limit)
    return NULL;
  return with_partial_sums(f, axis, sums);
}

/* An axis shorter than a vector, in a reduction with more axes: one partial sum per step. NULL: the gain is too small. */
static struct program *whole_sums(struct editor *e, const struct default_facts *f, int axis,
                                  int lanes) {
  int64_t size = f->t->axes[axis].size;
  if (2 * size <= lanes || size >= lanes || f->reduction < DEFAULT_SHORT_SUM_TERMS * size)
    return NULL;
  struct program *out = with_partial_sums(f, axis, size);
  if (!out || editor_cycles(e, out) < DEFAULT_FEWER_SUMS_GAIN * editor_cycles(e, program_of(e)))
    return out;
  program_free(out);
  return NULL;
}

/* The program with the cheapest number of partial sums along the axis: the most vectors that divide it, up to four; fewer
 * if that leaves registers for rows that share loads; less than a vector only if none divides a short axis. NULL: there is
 * none, or the gain is too small. */
static struct program *partial_sums(struct editor *e, const struct default_facts *f, int axis,
                                    double limit) {
  int64_t size = f->t->axes[axis].size;
  int lanes = default_lanes(f->t, e->machine);
  struct program *best = uneven_sums(f, axis, lanes, limit);
  double cycles = 0;
  if (!best) best = whole_sums(e, f, axis, lanes);
  if (best) return best;
  for (int64_t sums = DEFAULT_PARTIAL_VECTORS * lanes; sums >= DEFAULT_SHORT_VECTOR; sums /= 2) {
    if (size % sums || (best && (sums < lanes || !default_rows_share(f)))) continue;
    if (!best && partial_cycles(f, sums, lanes) >= limit) return NULL;
    struct program *p = with_partial_sums(f, axis, sums);
    double predicted = p ? editor_cycles(e, p) : 0;
    bool less = p && (!best || predicted < DEFAULT_FEWER_SUMS_GAIN * cycles);
    program_free(less ? best : p);
    if (!less) continue;
    best = p;
    cycles = predicted;
  }
  return best;
}

/* The program with a partial sum for each element of groups along an own axis, such as one per channel of a group norm:
 * vectors run along the elements of all groups. What is the same for a group is copied to each element. NULL: the
 * reduction does not count such elements, or the gain is too small. */
static struct program *grouped_sums(struct editor *e, const struct default_facts *f, int axis) {
  const struct program_axis *within = &f->t->axes[axis];
  struct editor trial = {.given = e->given, .machine = e->machine, .mode = e->mode};
  char text[EDIT_TEXT], name[PROGRAM_NAME];
  bool whole = within->size % default_lanes(f->t, e->machine) == 0; /* groups are whole vectors */
  if (whole || f->reduction < DEFAULT_SHORT_SUM_TERMS * within->size) return NULL;
  editor_name(f->p, f->t->name, "_r", name);
  for (int i = f->t->rank - 1; i >= 0 && !trial.p; i--) {
    if (f->t->axes[i].size == 1 || not_grouped(f->p, f->stage, axis, i)) continue;
    snprintf(text, sizeof text, "rfactor %s %s of %s as %s", f->t->name, within->name,
             f->t->axes[i].name, name);
    trial.p = editor_edited(&trial, f->p, text);
  }
  if (!trial.p) return NULL;
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && editor_materialize(&trial); i++) {
  }
  bool less = editor_cycles(e, trial.p) < DEFAULT_GROUPED_GAIN * editor_cycles(e, program_of(e));
  editor_close(&trial);
  if (less) return trial.p;
  program_free(trial.p);
  return NULL;
}

/* The number of partial sums that the constraint gives; without a tile it holds for all stages. */
static int64_t constrained_sums(const struct editor *e, bool is_constrained) {
  const struct default_constraint *constraint = e->mode.constraint;
  return constraint && (is_constrained || !constraint->tile) ? constraint->partial_sums : 0;
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
    int64_t sums = constrained_sums(e, i == all->constrained);
    default_facts(p, i, all->layout, &f);
    for (int r = f.t->rank; r < f.t->rank + f.t->reductions && !out && !sums; r++)
      if (is_contiguous_along(&f, r)) out = grouped_sums(e, &f, r);
    for (int r = f.t->rank; r < f.t->rank + f.t->reductions && !out && sums >= 0; r++)
      if (is_contiguous_along(&f, r))
        out = sums ? with_partial_sums(&f, r, sums)
                   : partial_sums(e, &f, r, DEFAULT_PARTIAL_GAIN * plan->tile.cycles);
    *after = i + 1; /* the stage behind adds up the partial sums */
  }
  if (out) editor_take(e, out);
  return out != NULL;
}

/* ---- outputs with another innermost axis ---- */

/* The fused consumer would call functions for one element at a time. */
static bool calls_scalars(const struct default_plans *all, int stage) {
  struct default_facts f;
  int of = 0;
  while (all->plan[of].consumer != stage) of++;
  default_facts(all->p, stage, all->layout, &f);
  return all->plan[of].gathered && all->plan[of].transposed < 0 &&
         f.operations >= DEFAULT_HEAVY_OPERATIONS;
}

/* Computes an output in a buffer of its own layout, and copies it. */
static bool cache_one(struct editor *e) {
  const struct program *p = program_of(e);
  const struct default_plans *all = editor_plans(e);
  char text[EDIT_TEXT], name[PROGRAM_NAME];
  bool found = false;
  for (int i = 0; i < p->outputs.count && !found; i++) {
    int stage = p->outputs.data[i];
    const struct default_plan *plan = &all->plan[stage];
    struct default_facts f;
    if (plan->kind == DEFAULT_FUSED_CONSUMER
            ? !calls_scalars(all, stage)
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

/* Edits that do not depend on the layout mode. */
static void edit_once(struct editor *e) {
  editor_normalize_conditions(e);
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && editor_multiply(e); i++) {
  }
  inline_stages(e);
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && editor_hoist(e); i++) {
  }
}

/* Buffers and layouts of operands. */
static void edit_operands(struct editor *e) {
  bool keeps_guards = e->mode.constraint && e->mode.constraint->keeps_guards;
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && !keeps_guards && editor_materialize(e); i++) {
  }
  for (int i = 0, skip = 0;
       i < DEFAULT_EDIT_ROUNDS && !e->mode.constraint && editor_straighten(e, &skip); i++) {
  }
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && !e->mode.constraint && editor_transpose(e); i++) {
  }
}

/* All edits but panels, which depend on the tile. */
static void edit_stages(struct editor *e) {
  edit_operands(e);
  for (int i = 0, after = -1; i < DEFAULT_EDIT_ROUNDS && rfactor_one(e, &after); i++) {
  }
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && cache_one(e); i++) {
  }
  for (int i = 0, after = -1;
       i < DEFAULT_EDIT_ROUNDS && !e->mode.constraint && editor_border(e, &after); i++) {
  }
}

static void edit_all(struct editor *e) {
  edit_stages(e);
  for (int i = 0; i < DEFAULT_EDIT_ROUNDS && editor_pack(e); i++) {
  }
}

static struct editor editor_open(const struct program *p, const struct machine *machine,
                                 const struct default_constraint *constraint, bool program_layout) {
  return (struct editor){
      .given = p,
      .machine = machine,
      .mode = {.pack = true, .program_layout = program_layout, .constraint = constraint}};
}

static struct editor edited_in_mode(const struct program *p, const struct machine *machine,
                                    const struct default_constraint *constraint,
                                    bool program_layout, bool verifies, bool *matters) {
  struct editor e = editor_open(p, machine, constraint, program_layout);
  e.mode.layout_matters = matters;
  e.verifies = verifies;
  edit_all(&e);
  return e;
}

/* Edited for both layouts, if they differ: the cheaper program. NULL: there are no edits. */
static struct default_edited edited_at_best(const struct program *p, const struct machine *machine,
                                            const struct default_constraint *constraint,
                                            bool verifies) {
  bool matters = false;
  struct editor open = edited_in_mode(p, machine, constraint, false, verifies, &matters);
  double cycles = editor_cycles(&open, program_of(&open));
  editor_close(&open);
  if (!matters) return (struct default_edited){open.p, LAYOUT_FREE};
  struct editor program_layout = edited_in_mode(p, machine, constraint, true, verifies, NULL);
  bool takes_less = editor_cycles(&program_layout, program_of(&program_layout)) < cycles;
  editor_close(&program_layout);
  program_free(takes_less ? open.p : program_layout.p);
  return takes_less ? (struct default_edited){program_layout.p, LAYOUT_OF_PROGRAM}
                    : (struct default_edited){open.p, LAYOUT_FREE};
}

/* Verifies the program after all edits. If that fails, the edits are made again, each verified. */
static struct default_edited edited_in_modes(const struct program *p, const struct machine *machine,
                                             const struct default_constraint *constraint) {
  canvas_context ctx;
  struct default_edited edited = edited_at_best(p, machine, constraint, false);
  if (!edited.program || program_verify(&ctx, edited.program) == CANVAS_OK) return edited;
  program_free(edited.program);
  return edited_at_best(p, machine, constraint, true);
}

static struct default_edited edited_for(const struct program *p, const struct machine *machine,
                                        const struct default_constraint *constraint) {
  struct editor alike = editor_open(p, machine, constraint, false);
  edit_once(&alike);
  struct default_edited edited = edited_in_modes(program_of(&alike), machine, constraint);
  if (!edited.program) return (struct default_edited){alike.p, LAYOUT_EITHER};
  program_free(alike.p);
  return edited;
}

static bool are_odd_rows(const struct program *p, const struct machine *machine) {
  struct schedule *s = default_odd_rows(p, machine);
  schedule_free(s);
  return s != NULL;
}

/* The edited program; NULL if there are no edits. Sets `odd` if its schedule is that of odd rows (default_odd.c). */
static struct default_edited edited_program(const struct program *p, const struct machine *machine,
                                            bool *odd) {
  *odd = false;
  if (!default_may_have_odd_rows(p, machine)) return edited_for(p, machine, NULL);
  struct editor e = editor_open(p, machine, NULL, false);
  edit_once(&e);
  edit_operands(&e); /* such programs have neither partial sums nor panels */
  editor_close(&e);
  *odd = are_odd_rows(program_of(&e), machine);
  if (*odd) return (struct default_edited){e.p, LAYOUT_EITHER};
  program_free(e.p);
  return edited_for(p, machine, NULL);
}

/* Some stage is a product whose rows share loads. */
static bool has_product(const struct program *p) {
  struct default_layout *layout = mem_alloc(((size_t)p->tensors.count + 1) * sizeof *layout);
  bool found = false;
  for (int i = 0; i < p->tensors.count; i++) default_row_major(&p->tensors.data[i], &layout[i]);
  for (int i = 0; i < p->tensors.count && !found; i++) {
    struct default_facts f;
    if (!p->tensors.data[i].reductions) continue;
    default_facts(p, i, layout, &f);
    found = f.loads > 1 && default_rows_share(&f);
  }
  mem_free(layout);
  return found;
}

/* The innermost axis of the first output is a merged one. */
static bool merges_last(const struct program *p, const struct program *merged) {
  const struct program_tensor *a = &p->tensors.data[p->outputs.data[0]],
                              *b = &merged->tensors.data[merged->outputs.data[0]];
  return b->rank && b->axes[b->rank - 1].size != a->axes[a->rank - 1].size;
}

static double cycles_after(const struct program *p, struct default_edited edited,
                           const struct machine *machine) {
  return default_cycles(edited.program ? edited.program : p, machine, edited.layout);
}

/* The program with merged axes if it is predicted to be faster, else NULL. Merged axes leave no rows for stages to share.
 *
 *     a product, merged along its vector axis     merged always: the formula underestimates strided lines
 *     a product, merged along its rows            merged if clearly faster: 14 pixels are three tiles of 5 or 6 rows,
 *                                                 196 are 33 of 6
 *     anything else                               merged if faster
 *
 * Sets `edited` to the edits of the program that is chosen. */
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
                  (rows ? DEFAULT_MERGED_GAIN : 1) * cycles_after(p, *edited, machine);
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

/* Multiplies guarded operands only inside their padding boundary, and adds what non-finite weights make of the zeros
 * outside. The last edit, because operands cannot be packed after it. */
static void border_sums(struct program **p) {
  for (int i = 0; i < (*p)->tensors.count; i++) {
    char text[EDIT_TEXT], name[PROGRAM_NAME];
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
                        const struct default_constraint *constraint) {
  struct default_mode open = {.constraint = constraint},
                      program_layout = {.program_layout = true, .constraint = constraint};
  struct editor a = {.given = p, .machine = machine, .mode = open};
  struct editor b = {.given = p, .machine = machine, .mode = program_layout};
  double x = editor_cycles(&a, p), y = editor_cycles(&b, p);
  editor_close(&a);
  editor_close(&b);
  return x < y ? x : y;
}

bool default_make(const struct program *p, const struct machine *machine,
                  const struct default_constraint *constraint, struct default_made *out) {
  *out = (struct default_made){.program = edited_for(p, machine, constraint).program};
  if (!out->program) out->program = program_copy(p);
  out->cycles = cycles_of(out->program, machine, constraint);
  if (constraint->keeps_guards) border_sums(&out->program);
  out->schedule = schedule_constrained(out->program, machine, constraint, out);
  if (out->schedule) return true;
  program_free(out->program);
  return false;
}

void default_list_candidates(const struct program *p, const struct machine *machine,
                             const struct default_constraint *constraint,
                             struct default_candidates *out) {
  struct default_constraint seeing = *constraint;
  seeing.tile = false;
  for (int program_layout = 0; program_layout < 2; program_layout++) {
    struct default_plans all;
    struct editor e = editor_open(p, machine, constraint, program_layout);
    edit_once(&e);
    edit_stages(&e);
    seeing.candidates = out;
    default_plan_all(&all, program_of(&e), machine,
                     (struct default_mode){
                         .pack = true, .program_layout = program_layout, .constraint = &seeing});
    default_plan_free(&all);
    editor_close(&e);
    program_free(e.p);
  }
}
