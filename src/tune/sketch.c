/* Makes all sketches of a program. See sketch.h. */
#include "tune/sketch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/winograd_nest.h"
#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

enum {
  KINDS = 10,   /* tiles per program */
  COLUMNS = 3,  /* tiles of a convolution as a matrix product */
  OVERLAPS = 2, /* tiles with bands of rows */
  CHANNELS = 3, /* tiles of a convolution in blocks of channels */
  LEAST = 8     /* sketches that stay however slow they are */
};
static const double FEWER =
    1.5; /* approximate speed-up of Winograd's convolution over the best sketch */
static const double WORSE = 2; /* ratio to the best cycles above which a sketch is dropped */

struct maker {
  const struct machine *machine;
  struct sketches *out;
};

/* ---- one sketch ------------------------------------------------------------------------------ */

void sketch_free(struct sketch *s) {
  mem_free(s->rule);
  program_free(s->program);
  schedule_free(s->schedule);
}

void sketches_free(struct sketches *s) {
  for (int i = 0; i < s->count; i++) sketch_free(&s->data[i]);
  mem_free(s->data);
  *s = (struct sketches){0};
}

static char *text_of(const struct sketch *s) {
  struct buf text = {0};
  program_print(s->program, &text);
  schedule_print(s->schedule, &text);
  return text.text;
}

static bool same_sketch(const struct sketch *a, const struct sketch *b) {
  char *x = text_of(a), *y = text_of(b);
  bool same = strcmp(x, y) == 0;
  mem_free(x);
  mem_free(y);
  return same;
}

/* Adds a sketch unless it exists. */
static void add(struct maker *m, struct sketch s) {
  for (int i = 0; i < m->out->count; i++)
    if (same_sketch(&m->out->data[i], &s)) {
      sketch_free(&s);
      return;
    }
  VEC_PUSH(m->out, s);
}

/* Adds the default schedule if it binds. */
static void add_default(struct maker *m, const struct program *p) {
  canvas_context ctx;
  struct default_bound made;
  if (default_bind(&ctx, p, m->machine, &made) != CANVAS_OK) return;
  loop_tree_free(made.tree);
  if (!made.edited) made.edited = program_copy(p);
  add(m, (struct sketch){mem_strdup("default"), made.edited, made.schedule, 0, FAMILY_PLAIN,
                         BLOCKS_FORMULA});
}

/* ---- kinds of tiles -------------------------------------------------------------------------- */

static char *rule_of(const struct default_constraint *w) {
  static const char *const blocks[] = {"", ", panels in blocks", ", rows in blocks",
                                       ", rows in bands"};
  struct buf text = {0};
  if (!w->tile) {
    buf_printf(&text, "%lld partial sums", (long long)w->partial_sums);
    return text.text;
  }
  if (w->keeps_guards) buf_puts(&text, "borders, ");
  if (w->partial_sums > 0) buf_puts(&text, "partial sums, ");
  if (w->lanes[0])
    buf_printf(&text, "lanes %s %lld", w->lanes, (long long)w->steps);
  else
    buf_puts(&text, "no lanes");
  for (int i = 0; i < 2 && w->rows[i][0]; i++)
    buf_printf(&text, "%s%s", i ? " and " : ", rows ", w->rows[i]);
  buf_puts(&text, blocks[w->blocks]);
  return text.text;
}

static void drop(struct default_made *made) {
  program_free(made->program);
  schedule_free(made->schedule);
}

static bool is_legal(const struct program *p, const struct schedule *s,
                     const struct machine *machine) {
  canvas_context ctx;
  struct loop_tree *tree;
  if (loop_tree_bind(&ctx, p, s, machine, &tree) != CANVAS_OK) return false;
  loop_tree_free(tree);
  return true;
}

/* Whether an index condition remains in the reduction. */
static bool has_guard(const struct default_made *made) {
  const struct program *p = made->program;
  const struct px_node *n = &p->nodes.data[p->tensors.data[made->stage].body];
  return n->op == PX_SELECT && is_index_condition(p, n->arg[0]);
}

static bool add_constrained(struct maker *m, const struct program *p,
                            const struct default_constraint *constraint) {
  struct default_made made;
  if (!default_make(p, m->machine, constraint, &made)) return false;
  bool blocked = constraint->blocks == BLOCKS_FORMULA || made.tile.block_axis >= 0;
  bool summed = constraint->tile || made.program->tensors.count > p->tensors.count;
  if (!blocked || !summed || (constraint->keeps_guards && !has_guard(&made))) {
    drop(&made);
    return false;
  }
  sketch_open(&made, constraint, m->machine);
  enum sketch_family family = constraint->keeps_guards   ? FAMILY_GUARDED
                              : constraint->partial_sums ? FAMILY_SUMS
                                                         : FAMILY_PLAIN;
  add(m, (struct sketch){rule_of(constraint), made.program, made.schedule, made.cycles, family,
                         constraint->blocks});
  return true;
}

/* ---- producers per block of rows ------------------------------------------------------------- */

static void add_buffered(struct maker *m, const struct program *p,
                         const struct default_constraint *constraint, bool across) {
  struct default_made made;
  if (!default_make(p, m->machine, constraint, &made)) return;
  if ((constraint->keeps_guards && !has_guard(&made)) ||
      !sketch_buffer(&made, constraint->buffer, across, m->machine) ||
      !is_legal(made.program, made.schedule, m->machine)) {
    drop(&made);
    return;
  }
  sketch_open(&made, constraint, m->machine);
  struct buf rule = {0};
  buf_printf(&rule, "%s of rows%s, ", constraint->buffer, across ? " across" : "");
  char *of = rule_of(constraint);
  buf_puts(&rule, of);
  mem_free(of);
  add(m, (struct sketch){rule.text, made.program, made.schedule, made.cycles, FAMILY_BUFFERED,
                         constraint->blocks});
}

static bool is_summed(const struct program *p, int stage) {
  for (int i = stage + 1; i < p->tensors.count; i++)
    if (p->tensors.data[i].reductions && stage_loads(p, i, stage)) return true;
  return false;
}

/* Tries each stage that a reduction reads, under its name after the edits. */
static void add_buffers(struct maker *m, const struct program *p,
                        struct default_constraint constraint) {
  constraint.blocks = BLOCKS_ROWS;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (t->is_input || t->reductions || !is_summed(p, i)) continue;
    strcpy(constraint.buffer, t->name);
    add_buffered(m, p, &constraint, false);
    add_buffered(m, p, &constraint, true);
  }
}

static int by_cycles(const void *a, const void *b) {
  double x = ((const struct default_candidate *)a)->cycles,
         y = ((const struct default_candidate *)b)->cycles;
  return (x > y) - (x < y);
}

/* ---- producers per band of rows -------------------------------------------------------------- */

static bool add_band(struct maker *m, const struct program *p,
                     const struct default_constraint *constraint, const char *stage, int64_t rows) {
  struct default_made made;
  if (!default_make(p, m->machine, constraint, &made)) return false;
  if (!sketch_overlap(&made, stage, rows, m->machine) ||
      !is_legal(made.program, made.schedule, m->machine)) {
    drop(&made);
    return false;
  }
  sketch_open(&made, constraint, m->machine);
  struct buf rule = {0};
  char *of = rule_of(constraint);
  buf_printf(&rule, "%s for %lld rows, overlapping, %s", stage, (long long)rows, of);
  mem_free(of);
  add(m, (struct sketch){rule.text, made.program, made.schedule, made.cycles, FAMILY_BUFFERED,
                         constraint->blocks});
  return true;
}

/* Tries bands, which need several panels, else blocks. */
static void add_rows(struct maker *m, const struct program *p, struct default_constraint constraint,
                     const char *stage, int64_t rows) {
  constraint.blocks = BLOCKS_BANDS;
  if (add_band(m, p, &constraint, stage, rows)) return;
  constraint.blocks = BLOCKS_ROWS;
  add_band(m, p, &constraint, stage, rows);
}

/* Computes each stage that a window reads for a few rows at a time, in the best tiles. */
static void add_overlaps(struct maker *m, const struct program *p) {
  static const int64_t rows[] = {2, 4, 7, 8};
  struct default_constraint unconstrained = {0};
  struct default_candidates kinds = {0};
  default_list_candidates(p, m->machine, &unconstrained, &kinds);
  if (kinds.count) qsort(kinds.data, (size_t)kinds.count, sizeof *kinds.data, by_cycles);
  for (int i = 0; i < kinds.count && i < OVERLAPS; i++) {
    for (int stage = 0; stage < p->tensors.count; stage++) {
      const struct program_tensor *t = &p->tensors.data[stage];
      int64_t size = t->is_input ? 0 : sketch_window(p, stage);
      for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (rows[r] < size && size % rows[r] == 0)
          add_rows(m, p, kinds.data[i].constraint, t->name, rows[r]);
    }
  }
  mem_free(kinds.data);
}

/* Whether the partial sums are the vector axis; otherwise their number makes no difference. */
static bool is_of_sums(const struct default_constraint *kind, int64_t sums) {
  size_t length = strlen(kind->lanes);
  return sums <= 0 ||
         (kind->steps == sums && length > 2 && !strcmp(kind->lanes + length - 2, "_i"));
}

/* Adds each kind of tile in blocks of panels, in blocks of rows and in bands: all loop orders that
 * differ. */
static void add_kinds(struct maker *m, const struct program *p,
                      const struct default_constraint *base) {
  struct default_candidates kinds = {0};
  default_list_candidates(p, m->machine, base, &kinds);
  if (kinds.count) qsort(kinds.data, (size_t)kinds.count, sizeof *kinds.data, by_cycles);
  for (int i = 0; i < kinds.count && i < KINDS; i++) {
    struct default_constraint constraint = kinds.data[i].constraint;
    if (kinds.data[i].cycles > WORSE * kinds.data[0].cycles) break;
    if (!is_of_sums(&constraint, base->partial_sums)) continue;
    constraint.keeps_guards = base->keeps_guards;
    constraint.partial_sums = base->partial_sums;
    constraint.blocks = BLOCKS_LANES;
    add_buffers(m, p, constraint);
    bool panels = add_constrained(m, p, &constraint);
    constraint.blocks = BLOCKS_ROWS;
    bool rows = add_constrained(m, p, &constraint);
    constraint.blocks = BLOCKS_BANDS;
    bool bands = add_constrained(m, p, &constraint);
    constraint.blocks = BLOCKS_FORMULA;
    if (!panels && !rows && !bands) add_constrained(m, p, &constraint);
  }
  mem_free(kinds.data);
}

/* Whether the default uses partial sums: a new stage with a reduction. */
static bool has_partial_sums(const struct maker *m, const struct program *given) {
  const struct program *p = m->out->data[0].program;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    size_t length = strlen(t->name);
    bool made = program_find(given, t->name) < 0 && length > 2;
    if (made && t->reductions && !strcmp(t->name + length - 2, "_r")) return true;
  }
  return false;
}

/* Adds sketches without partial sums and with other numbers of them. */
static void add_sums(struct maker *m, const struct program *p) {
  struct default_constraint whole = {.partial_sums = -1};
  if (!has_partial_sums(m, p)) return;
  add_kinds(m, p, &whole);
  int lanes = m->machine->vector_bytes / 4;
  for (int vectors = 1; vectors <= 4; vectors *= 2) {
    struct default_constraint constraint = {.partial_sums = vectors * lanes};
    add_constrained(m, p, &constraint);
    add_kinds(m, p, &constraint);
  }
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Computes a convolution's columns per block of rows, in the best tiles. */
static void add_columns(struct maker *m, const struct program *given) {
  struct default_constraint unconstrained = {0};
  struct default_candidates kinds = {0};
  char name[PROGRAM_NAME];
  struct program *p = sketch_columns(given, m->machine, name);
  if (!p) return;
  default_list_candidates(p, m->machine, &unconstrained, &kinds);
  if (kinds.count) qsort(kinds.data, (size_t)kinds.count, sizeof *kinds.data, by_cycles);
  for (int i = 0; i < kinds.count && i < COLUMNS; i++) {
    struct default_constraint constraint = kinds.data[i].constraint;
    constraint.blocks = BLOCKS_ROWS;
    strcpy(constraint.buffer, name);
    add_buffered(m, p, &constraint, false);
    add_buffered(m, p, &constraint, true);
  }
  mem_free(kinds.data);
  program_free(p);
}

/* ---- channels in blocks ---------------------------------------------------------------------- */

/* Prefixes the rules with the name of the stage that changes the layout. */
static void name_channels(struct maker *m, int from, const char *name) {
  for (int i = from; i < m->out->count; i++) {
    struct sketch *s = &m->out->data[i];
    struct buf rule = {0};
    buf_printf(&rule, "%s in blocks of channels, %s", name, s->rule);
    mem_free(s->rule);
    s->rule = rule.text;
    s->family = FAMILY_CHANNELS;
  }
}

static void add_channels(struct maker *m, const struct program *given) {
  struct default_constraint unconstrained = {0};
  struct default_candidates kinds = {0};
  char name[PROGRAM_NAME];
  int before = m->out->count;
  struct program *p = sketch_channels(given, m->machine, name);
  if (!p) return;
  default_list_candidates(p, m->machine, &unconstrained, &kinds);
  if (kinds.count) qsort(kinds.data, (size_t)kinds.count, sizeof *kinds.data, by_cycles);
  for (int i = 0; i < kinds.count && i < CHANNELS; i++) {
    struct default_constraint constraint = kinds.data[i].constraint;
    for (constraint.blocks = BLOCKS_LANES; constraint.blocks <= BLOCKS_BANDS; constraint.blocks++)
      add_constrained(m, p, &constraint);
  }
  name_channels(m, before, name);
  mem_free(kinds.data);
  program_free(p);
}

/* ---- guarded operands ------------------------------------------------------------------------ */

static struct program *edited(const struct program *p, const char *edit, const char *name) {
  char text[PROGRAM_NAME + 16];
  canvas_context ctx;
  struct program *out;
  int length = snprintf(text, sizeof text, "%s %s", edit, name);
  return program_edit(&ctx, p, text, (size_t)length, &out) == CANVAS_OK ? out : NULL;
}

/* Whether the stage is a padded copy, or part of a tensor. */
static bool is_padding(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reductions || is_output(p, stage)) return false;
  const struct px_node *n = &p->nodes.data[t->body];
  return n->op == PX_SELECT && is_index_condition(p, n->arg[0]);
}

static bool take(struct program **p, struct program *next) {
  if (!next) return false;
  program_free(*p);
  *p = next;
  return true;
}

/* The program without padded copies: their consumers are guarded instead. NULL: there are none. */
static struct program *without_padding(const struct program *given) {
  struct program *p = program_copy(given);
  bool any = false;
  for (int i = 0; i < p->tensors.count; i++)
    if (is_padding(p, i) && take(&p, edited(p, "inline", p->tensors.data[i].name))) {
      any = true;
      i--;
    }
  if (any) return p;
  program_free(p);
  return NULL;
}

static void add_guarded(struct maker *m, const struct program *p) {
  struct default_constraint constraint = {.keeps_guards = true};
  struct program *open = without_padding(p);
  add_kinds(m, open ? open : p, &constraint);
  program_free(open);
}

/* ---- sparse reductions ----------------------------------------------------------------------- */

/* Whether data bounds a reduction, as for a block-sparse matrix. */
static bool is_sparse(const struct program *p) {
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    for (int j = t->rank; j < t->rank + t->reductions; j++)
      if (t->axes[j].low >= 0) return true;
  }
  return false;
}

/* Keeps only the default and buffered sketches, if there are any. */
static bool keep_buffered(struct sketches *s) {
  int kept = 1, buffered = 0;
  for (int i = 1; i < s->count; i++) buffered += s->data[i].family == FAMILY_BUFFERED;
  for (int i = 1; i < s->count && buffered; i++)
    if (s->data[i].family == FAMILY_BUFFERED)
      s->data[kept++] = s->data[i];
    else
      sketch_free(&s->data[i]);
  if (buffered) s->count = kept;
  return buffered > 0;
}

/* Whether the sketches are complete: for sparse reductions buffered sketches always won, and their
 * space is small enough to try all of it. */
static bool is_all(struct maker *m, const struct program *p) {
  return is_sparse(p) && keep_buffered(m->out);
}

/* ---- fewer products -------------------------------------------------------------------------- */

static double least_cycles(const struct sketches *s) {
  double least = 0;
  for (int i = 1; i < s->count; i++)
    if (!least || s->data[i].cycles < least) least = s->data[i].cycles;
  return least;
}

/* The schedule row by row; NULL: none, e.g. if a row reads another one. */
static struct schedule *rows_of(const struct program *p, const struct machine *machine) {
  struct schedule *s = sketch_rows(p, machine);
  if (!s || is_legal(p, s, machine)) return s;
  schedule_free(s);
  return NULL;
}

/* Adds the sketch row by row, of the default's program without partial sums or of the given one. */
static void add_row_by_row(struct maker *m, const struct program *given) {
  const struct default_constraint whole = {.partial_sums = -1};
  struct default_made made = {0};
  bool edited = default_make(given, m->machine, &whole, &made);
  struct schedule *s = edited ? rows_of(made.program, m->machine) : NULL;
  struct program *p = s ? made.program : program_copy(given);
  if (edited) schedule_free(made.schedule);
  if (edited && !s) program_free(made.program);
  if (!s) s = rows_of(p, m->machine);
  if (s)
    add(m, (struct sketch){mem_strdup("row by row"), p, s, least_cycles(m->out), FAMILY_ROWS,
                           BLOCKS_FORMULA});
  else
    program_free(p);
}

static void add_winograd(struct maker *m, const struct program *given, int tile) {
  struct program *p = program_with_winograd(given, tile);
  char rule[32];
  if (!p) return;
  struct schedule *s = winograd_nest(p, m->machine);
  snprintf(rule, sizeof rule, "winograd %d", tile);
  if (!s || !is_legal(p, s, m->machine)) { /* falls back to the default schedule */
    struct program *edited = default_program(p, m->machine);
    schedule_free(s);
    if (edited) program_free(p);
    p = edited ? edited : p;
    s = schedule_default(p, true, m->machine);
  }
  add(m, (struct sketch){mem_strdup(rule), p, s, least_cycles(m->out) / FEWER, FAMILY_WINOGRAD,
                         BLOCKS_FORMULA});
}

/* ---- all ------------------------------------------------------------------------------------- */

static int better(const void *a, const void *b) {
  double x = ((const struct sketch *)a)->cycles, y = ((const struct sketch *)b)->cycles;
  return (x > y) - (x < y);
}

/* Whether the last sketch is poor compared with the best one without Winograd's convolution. */
static bool is_poor(const struct sketches *s) {
  int best = 1;
  while (s->data[best].program->winograd > s->data[0].program->winograd) best++;
  return s->data[s->count - 1].cycles > WORSE * s->data[best].cycles;
}

/* Drops the worst sketch of the largest family. */
static void drop_one(struct sketches *s) {
  int members[FAMILY_COUNT] = {0}, most = 0, at = s->count - 1;
  for (int i = 1; i < s->count; i++) members[s->data[i].family]++;
  for (int i = 0; i < FAMILY_COUNT; i++)
    if (members[i] > members[most]) most = i;
  while (s->data[at].family != (enum sketch_family)most) at--;
  sketch_free(&s->data[at]);
  memmove(&s->data[at], &s->data[at + 1], (size_t)(s->count - at - 1) * sizeof *s->data);
  s->count--;
}

canvas_status sketches_of(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct sketch_options *options,
                          struct sketches *out) {
  struct default_constraint unconstrained = {0};
  struct maker m = {machine, out};
  (void)ctx;
  *out = (struct sketches){0};
  add_default(&m, p);
  struct program *merged = default_merged(p, machine);
  if (merged) p = merged;
  add_kinds(&m, p, &unconstrained);
  add_sums(&m, p);
  if (!is_all(&m, p)) {
    add_guarded(&m, p);
    add_row_by_row(&m, p);
    add_columns(&m, p);
    add_channels(&m, p);
    add_overlaps(&m, p);
  }
  for (int tile = 2; options && options->winograd && tile <= WINOGRAD; tile += 2)
    add_winograd(&m, p, tile);
  program_free(merged);
  if (out->count > 1) qsort(out->data + 1, (size_t)out->count - 1, sizeof *out->data, better);
  while (out->count > LEAST && is_poor(out)) sketch_free(&out->data[--out->count]);
  while (out->count > SKETCHES) drop_one(out);
  return CANVAS_OK;
}
