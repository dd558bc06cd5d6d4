/* Opens a search: sketches and spaces, rates, the program for few images, compiler, expected
 * outputs, log and hints. See search.h. */
#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "program/program_cost.h"
#include "run/child.h"
#include "tune/fewer_images.h"
#include "tune/journal.h"
#include "tune/rates_here.h"
#include "tune/search_open.h"

static const double IMAGE = 5e7; /* least FLOPs of an image */
static const double TRIED = 4e8; /* approximate FLOPs of a trial */
static const double HEAVY = 1e9; /* FLOPs of a trial above which only the interpreter checks it */
static const double FOR_FINALS = 0.3; /* share of the time for finals, at first */

/* ---- sketches and spaces --------------------------------------------------------------------- */

/* The error message of a user's sketch or of the default schedule. */
static canvas_status of_sketch(canvas_context *ctx, const canvas_context *why, bool given,
                               canvas_status status) {
  return status == CANVAS_OK
             ? status
             : fail(ctx, status, "the %s: %s", given ? "sketch" : "default schedule", why->message);
}

static canvas_status find_sketches(canvas_context *ctx, const struct program *p,
                                   const struct machine *machine,
                                   const struct tune_options *options, struct sketches *out) {
  const struct sketch_options how = {.winograd = options->winograd};
  struct sketch one;
  TRY(sketches_of(ctx, p, machine, &how, out));
  if (!options->sketch) return CANVAS_OK;
  while (out->count > 1) sketch_free(&out->data[--out->count]); /* keeps the default */
  canvas_context why = {0};
  TRY(of_sketch(ctx, &why, true,
                sketch_from_text(&why, p, options->sketch, strlen(options->sketch), &one)));
  VEC_PUSH(out, one);
  return CANVAS_OK;
}

/* Makes the spaces. The first sketch is the default; `given`: the second is the user's. */
static canvas_status find_spaces(canvas_context *ctx, const struct machine *machine,
                                 const char *given, const struct sketches *sketches,
                                 struct space **spaces) {
  for (int i = 0; i < sketches->count; i++) {
    const struct sketch *s = &sketches->data[i];
    canvas_context why = {0};
    TRY(of_sketch(ctx, &why, given && i,
                  space_new(&why, s->program, s->schedule, machine, NUMBERS_AUTO, &spaces[i])));
  }
  return CANVAS_OK;
}

void tune_spaces_free(struct sketches *sketches, struct space **spaces) {
  for (int i = 0; spaces && i < sketches->count; i++) space_free(spaces[i]);
  mem_free(spaces);
  sketches_free(sketches);
}

canvas_status tune_spaces(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct tune_options *options,
                          struct sketches *sketches, struct space ***spaces) {
  *sketches = (struct sketches){0};
  *spaces = NULL;
  canvas_status status = find_sketches(ctx, p, machine, options, sketches);
  *spaces = mem_alloc(((size_t)sketches->count + 1) * sizeof **spaces);
  if (status == CANVAS_OK) status = find_spaces(ctx, machine, options->sketch, sketches, *spaces);
  if (status == CANVAS_OK) return CANVAS_OK;
  tune_spaces_free(sketches, *spaces);
  *sketches = (struct sketches){0};
  *spaces = NULL;
  return status;
}

/* ---- few images ------------------------------------------------------------------------------ */

/* Makes each sketch's program for few images; returns how many have one. */
static int make_few(struct search *s, int64_t tried) {
  int made = 0;
  for (int i = 0; i < s->sketches.count; i++) {
    s->few[i] = fewer_images(s->sketches.data[i].program, tried);
    made += s->few[i] != NULL;
  }
  return made;
}

static void drop_few(struct search *s) {
  for (int i = 0; i < s->sketches.count; i++) {
    program_free(s->few[i]);
    s->few[i] = NULL;
  }
}

/* Removes sketches that need all images, since times of all and of few images do not compare. */
static void drop_whole(struct search *s) {
  int kept = 0;
  for (int i = 0; i < s->sketches.count; i++) {
    if (s->few[i]) {
      s->sketches.data[kept] = s->sketches.data[i];
      s->spaces[kept] = s->spaces[i];
      s->few[kept++] = s->few[i];
    } else {
      sketch_free(&s->sketches.data[i]);
      space_free(s->spaces[i]);
    }
  }
  s->sketches.count = kept;
}

/* Uses few images if the default, most sketches and a user's sketch have a program for few. */
static void choose_images(struct search *s, bool measures, bool own) {
  s->images = images_of(s->program);
  double flops = program_flops(s->program), image = flops / (double)s->images;
  s->tried = s->images;
  s->measured = s->program;
  s->few = mem_alloc(((size_t)s->sketches.count + 1) * sizeof *s->few);
  if (!measures || image < IMAGE || flops <= TRIED) return;
  int64_t tried = int_max(1, (int64_t)(TRIED / image));
  s->fewer = tried < s->images ? fewer_images(s->program, tried) : NULL;
  if (!s->fewer) return;
  int made = make_few(s, tried);
  if (2 * made < s->sketches.count || !s->few[0] || (own && made < s->sketches.count)) {
    drop_few(s);
    program_free(s->fewer);
    s->fewer = NULL;
    return;
  }
  drop_whole(s);
  s->measured = s->fewer;
  s->tried = tried;
}

/* ---- a user's sketch ------------------------------------------------------------------------- */

enum { LOOKED = 2000 /* points of a space to try; of larger spaces random ones */ };

static int64_t looked_point(const struct space *space, int i, struct random *r) {
  return space->size > LOOKED ? (int64_t)(random_u64(r) >> 2) % space->size : i;
}

/* Writes why a point is illegal. */
static void explain_point(const struct space *space, int64_t point, struct buf *out) {
  canvas_context why = {.message = ""};
  struct loop_tree *tree = NULL;
  struct buf warned = {0};
  space_print(space, point, out);
  buf_puts(out, out->length ? ": " : "");
  if (space_bind(&why, space, point, &tree) == CANVAS_OK) {
    loop_tree_print_warnings(tree, &warned);
    const char *text = warned.length ? warned.text + strlen("warning: ") : "";
    buf_printf(out, "%.*s", (int)strcspn(text, "\n"), text);
  } else {
    buf_puts(out, why.message);
  }
  buf_free(&warned);
  loop_tree_free(tree);
}

/* Rejects a sketch without legal points, which would silently leave only the default. */
static canvas_status check_points(canvas_context *ctx, const struct space *space) {
  struct random r;
  struct buf first = {0};
  random_open(&r, 1, RANDOM_TUNE, 1);
  int count = (int)(space->size < LOOKED ? space->size : LOOKED);
  for (int i = 0; i < count; i++) {
    struct loop_tree *tree = space_legal(space, looked_point(space, i, &r));
    loop_tree_free(tree);
    if (tree) return CANVAS_OK;
  }
  explain_point(space, 0, &first);
  canvas_status status = fail(ctx, CANVAS_BAD_INPUT,
                              "the sketch: none of %d points is legal, %.600s", count, first.text);
  buf_free(&first);
  return status;
}

/* ---- hints ----------------------------------------------------------------------------------- */

static int64_t number_of(const struct schedule *s, const char *level) {
  int i = schedule_find_level(s, level);
  return i >= 0 && s->levels.data[i].kind == EXTENT_INT ? s->levels.data[i].extent : 0;
}

static int64_t point_near(const struct space *space, const struct schedule *found) {
  int64_t *extents = mem_alloc(((size_t)space->schedule->levels.count + 1) * sizeof *extents);
  for (int i = 0; i < space->count; i++)
    extents[space->knobs[i].level] = number_of(found, space->knobs[i].name);
  int64_t point = space_nearest(space, extents);
  mem_free(extents);
  return point;
}

/* Adds the result of a similar program as a hint, for sketches of the same rule. */
static void add_hint(void *data, const char *rule, const char *schedule) {
  struct search *s = data;
  struct schedule *found;
  canvas_context ctx;
  for (int i = 0; i < s->sketches.count; i++) {
    if (strcmp(s->sketches.data[i].rule, rule) != 0) continue;
    if (schedule_parse(&ctx, schedule, strlen(schedule), &found) != CANVAS_OK) return;
    VEC_PUSH(&s->hints, ((struct tune_candidate){i, point_near(s->spaces[i], found)}));
    schedule_free(found);
  }
}

static canvas_status open_journal(struct search *s, const struct tune_options *options) {
  struct buf program = {0}, machine = {0};
  program_print(s->program, &program);
  machine_print(&s->machine, &machine);
  const struct journal_run run = {.program = program.text,
                                  .machine = machine.text,
                                  .method = options->method->name,
                                  .seed = options->seed,
                                  .threads = options->threads};
  canvas_status status = journal_open(s->ctx, options->log, &run, &s->journal);
  buf_free(&program);
  buf_free(&machine);
  if (status == CANVAS_OK) journal_similar(s->journal, add_hint, s);
  return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static canvas_status open_measuring(struct search *s, const struct tune_options *options) {
  const struct compiler_options compiler = {.quick = true};
  s->expecting = (struct expected_options){.seed = 1, .winograd = options->winograd ? WINOGRAD : 0};
  s->measuring = (struct batch_options){.together = options->together,
                                        .limits = {.seconds = options->timeout,
                                                   .repeats = 20,
                                                   .timing = 0.1,
                                                   .threads = options->threads,
                                                   .early = true}};
  TRY(compiler_open(s->ctx, &compiler, &s->compiler));
  s->heavy = program_flops(s->measured) > HEAVY;
  if (s->heavy) { /* checks some thousand elements: all would take longer than the trials */
    s->expecting.seconds = s->expecting.spot = 1;
    s->measuring.limits.repeats = 3;
  } else {
    s->expecting.compiler = s->compiler;
  }
  return CANVAS_OK;
}

canvas_status search_open(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct tune_options *options,
                          struct search *s) {
  struct rates rates;
  canvas_status known = rates_here(ctx, machine, &rates); /* not counted in the time */
  *s = (struct search){.ctx = ctx,
                       .program = p,
                       .machine = *machine,
                       .rates = rates,
                       .best = -1,
                       .may_measure = options->may_measure,
                       .progress = options->progress,
                       .enough = options->enough,
                       .clock = options->clock,
                       .data = options->data,
                       .started = clock_wall(),
                       .processor = clock_processor()};
  TRY(known);
  bool measures = options->method->trials > 0;
  s->budget = (struct search_budget){.trials = options->trials,
                                     .seconds = options->seconds,
                                     .finals = FOR_FINALS * options->seconds,
                                     .patience = options->patience};
  random_open(&s->random, options->seed, RANDOM_TUNE, 0);
  TRY(tune_spaces(ctx, p, machine, options, &s->sketches, &s->spaces));
  if (options->sketch) TRY(check_points(ctx, s->spaces[1]));
  choose_images(s, measures, options->sketch != NULL);
  for (int i = 0; i < s->sketches.count; i++) s->size = saturating_add(s->size, s->spaces[i]->size);
  if (measures) TRY(open_measuring(s, options));
  return options->log ? open_journal(s, options) : CANVAS_OK;
}

void search_close(struct search *s) {
  journal_close(s->journal);
  expected_free(s->expected);
  compiler_close(s->compiler);
  for (int i = 0; s->few && i < s->sketches.count; i++) program_free(s->few[i]);
  mem_free(s->few);
  program_free(s->fewer);
  tune_spaces_free(&s->sketches, s->spaces);
  mem_free(s->trials.data);
  mem_free(s->hints.data);
}
