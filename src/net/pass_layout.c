/* Chooses the layout of each image value by predicted time.
 *
 *     n c h w    as it came        n h w c        n c/16 h w c%16
 *
 * Inputs, weights and outputs of the network keep their layout; an input may be converted by a call
 * of its own. No other conversion is needed, since a program can be rewritten for any layout of any
 * of its tensors (program_relayout.h). The cost of a call is the predicted time of its default
 * schedule with its tensors laid out so. A copy of contiguous parts costs nothing (memory_plan.h),
 * and weights of blocked outputs may be packed. The search starts from each uniform layout that is
 * nearly the best and improves value by value until nothing changes; the best end wins.
 *
 * Reductions keep their order: results are bit-identical.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/name_table.h"
#include "net/call_maker.h"
#include "net/copied_parts.h"
#include "net/fuse_cost.h"
#include "net/passes.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_relayout.h"

enum kind { AS_IT_CAME, CHANNELS_LAST, BLOCKED, KINDS };
enum { BLOCK = 16, ROUNDS = 8, EVALUATIONS = 1500 };
/* Limits of the time of a candidate over the current time, set by the error of predictions: between
 * ends, for one value, for packed weights, and of a uniform layout as a start over the best one. */
static const double BETTER = 0.99, SURELY_BETTER = 0.9, PACKED_BETTER = 0.8, NEARLY = 1.1;
/* A program with a layout of each tensor. */
struct variant {
  char *key;
  struct program *program; /* NULL: unchanged, or moved to the network */
  int number;              /* number in the network; -1: not yet added */
  double seconds;
};

struct choice {
  struct network *n;
  struct fuse_costs *costs;
  unsigned char *kind; /* by tensor of the network: enum kind */
  double (*conversion)[KINDS];
  struct name_table table;
  struct {
    VEC(struct variant);
  } variants;
  int evaluations;
};

/* ---- programs -------------------------------------------------------------------------------- */

static void put_layout(const struct program_tensor *t, enum kind kind, struct buf *out) {
  const char *n = t->axes[0].name, *c = t->axes[1].name, *h = t->axes[2].name, *w = t->axes[3].name;
  if (kind == CHANNELS_LAST)
    buf_printf(out, "[%s, %s, %s, %s]", n, h, w, c);
  else
    buf_printf(out, "[%s, %s/%d, %s, %s, %s%%%d]", n, c, BLOCK, h, w, c, BLOCK);
}

static bool has_parts(const struct program_tensor *t, enum kind kind) {
  return kind != BLOCKED || (t->axes[1].size % BLOCK == 0 && t->axes[1].size > BLOCK);
}

/* The layout of an inner stage: that of a laid-out input or output with the same images and
 * channels. */
static enum kind kind_like(const struct program *p, int stage, const enum kind *given) {
  const struct program_tensor *t = &p->tensors.data[stage];
  enum kind kind = AS_IT_CAME;
  if (t->rank != 4) return kind;
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *other = &p->tensors.data[i];
    if (given[i] == AS_IT_CAME || other->rank != 4) continue;
    if (other->axes[0].size != t->axes[0].size || other->axes[1].size != t->axes[1].size) continue;
    kind = given[i];
  }
  return has_parts(t, kind) ? kind : AS_IT_CAME;
}

/* Rewrites the program for the layouts given[tensor]. */
static canvas_status lay_out(canvas_context *ctx, const struct program *p, const enum kind *given,
                             struct program **out) {
  size_t count = (size_t)p->tensors.count + 1;
  struct buf *texts = mem_alloc(count * sizeof *texts);
  const char **text = mem_alloc(count * sizeof *text);
  for (int i = 0; i < p->tensors.count; i++) {
    enum kind kind = given[i];
    bool within = !p->tensors.data[i].is_input;
    for (int k = 0; k < p->outputs.count; k++) within &= p->outputs.data[k] != i;
    if (within) kind = kind_like(p, i, given);
    if (kind == AS_IT_CAME) continue;
    put_layout(&p->tensors.data[i], kind, &texts[i]);
    text[i] = texts[i].text;
  }
  canvas_status status = program_relayout(ctx, p, text, out);
  for (int i = 0; i < p->tensors.count; i++) buf_free(&texts[i]);
  mem_free(texts);
  mem_free(text);
  return status;
}

/* ---- cost of a call -------------------------------------------------------------------------- */

static double seconds_of(struct choice *c, const struct program *p) {
  if (only_copies(p)) return 0;
  c->evaluations++;
  return fuse_cost(c->costs, p);
}

/* Fills the layouts by tensor of the call's program; false: all are unchanged. */
static bool kinds_of(const struct choice *c, const struct net_call *call, enum kind *given) {
  const struct program *p = c->n->programs.data[call->program];
  bool any = false;
  for (int i = 0; i < call->arguments.count; i++)
    any |= (given[p->inputs.data[i]] = c->kind[call->arguments.data[i]]) != AS_IT_CAME;
  for (int i = 0; i < call->results.count; i++)
    any |= (given[p->outputs.data[i]] = c->kind[call->results.data[i]]) != AS_IT_CAME;
  return any;
}

/* Packs weights W[o, c, ...] as W_p[o/16, c, ..., o%16], so that a block of output channels is
 * contiguous. This happens at load time. NULL: not applicable. */
static struct program *with_packed(const struct program *p, int input) {
  const struct program_tensor *t = &p->tensors.data[input];
  canvas_context ctx;
  struct program *packed = NULL;
  struct buf edit = {0};
  if (!t->constant || t->rank < 2 || t->axes[0].size % BLOCK || t->axes[0].size == BLOCK)
    return NULL;
  buf_printf(&edit, "pack %s as %s_p [%s/%d", t->name, t->name, t->axes[0].name, BLOCK);
  for (int i = 1; i < t->rank; i++) buf_printf(&edit, ", %s", t->axes[i].name);
  buf_printf(&edit, ", %s%%%d]", t->axes[0].name, BLOCK);
  program_edit(&ctx, p, edit.text, edit.length, &packed);
  buf_free(&edit);
  return packed;
}

/* Packs weights if that is predicted to be faster. */
static void pack_weights(struct choice *c, struct variant *v) {
  for (int i = 0; i < v->program->inputs.count; i++) {
    struct program *packed = with_packed(v->program, v->program->inputs.data[i]);
    double seconds = packed ? seconds_of(c, packed) : INFINITY;
    bool better = seconds < v->seconds * PACKED_BETTER;
    program_free(better ? v->program : packed);
    if (!better) continue;
    v->program = packed;
    v->seconds = seconds;
  }
}

static bool gives_blocks(const struct program *p, const enum kind *given) {
  for (int i = 0; i < p->outputs.count; i++)
    if (given[p->outputs.data[i]] == BLOCKED) return true;
  return false;
}

static struct variant make_variant(struct choice *c, const struct net_call *call,
                                   const enum kind *given, bool any) {
  canvas_context ctx;
  const struct program *p = c->n->programs.data[call->program];
  struct variant v = {.number = any ? -1 : call->program, .seconds = INFINITY};
  if (!any)
    v.seconds = seconds_of(c, p);
  else if (lay_out(&ctx, p, given, &v.program) == CANVAS_OK) {
    v.seconds = seconds_of(c, v.program);
    if (gives_blocks(p, given)) pack_weights(c, &v);
  }
  return v;
}

/* The variant of the call's program for the current layouts. */
static struct variant *variant_of(struct choice *c, const struct net_call *call) {
  const struct program *p = c->n->programs.data[call->program];
  enum kind *given = mem_alloc((size_t)(p->tensors.count + 1) * sizeof *given);
  bool any = kinds_of(c, call, given);
  struct buf key = {0};
  buf_printf(&key, "%d:", call->program);
  for (int i = 0; i < p->tensors.count; i++) buf_printf(&key, "%d", (int)given[i]);
  int found = name_table_find(&c->table, key.text, key.length);
  if (found < 0) {
    struct variant v = make_variant(c, call, given, any);
    v.key = buf_take(&key);
    found = c->variants.count;
    VEC_PUSH(&c->variants, v);
    name_table_add(&c->table, v.key, found);
  }
  buf_free(&key);
  mem_free(given);
  return &c->variants.data[found];
}

static bool touches(const struct net_call *call, int tensor) {
  for (int i = 0; i < call->arguments.count; i++)
    if (call->arguments.data[i] == tensor) return true;
  for (int i = 0; i < call->results.count; i++)
    if (call->results.data[i] == tensor) return true;
  return false;
}

/* Predicted seconds of calls and conversions that touch the tensor; -1: of all. Calls that run only
 * at load time are ignored. */
static double seconds_around(struct choice *c, int tensor) {
  double seconds = 0;
  for (int i = 0; i < c->n->calls.count; i++) {
    const struct net_call *call = &c->n->calls.data[i];
    if (call->varies && (tensor < 0 || touches(call, tensor)))
      seconds += variant_of(c, call)->seconds;
  }
  for (int i = 0; i < c->n->tensors.count; i++)
    if (tensor < 0 || i == tensor) seconds += c->conversion[i][c->kind[i]];
  return seconds;
}

/* ---- candidate layouts ----------------------------------------------------------------------- */

static bool is_image(const struct network *n, int tensor) {
  const struct net_tensor *t = &n->tensors.data[tensor];
  if (t->rank != 4 || t->dtype == PROGRAM_I32 || network_constant(n, tensor)) return false;
  return !network_is_output(n, tensor) && t->sizes[1] > 1 && t->sizes[2] * t->sizes[3] > 1;
}

static bool may_lie(const struct choice *c, int tensor, enum kind kind) {
  if (kind == AS_IT_CAME) return true;
  int64_t channels = c->n->tensors.data[tensor].sizes[1];
  return is_image(c->n, tensor) && (kind != BLOCKED || (channels % BLOCK == 0 && channels > BLOCK));
}

/* A copy of X[n, c, h, w], to be given a layout. */
static struct program *copy_program(const struct net_tensor *t) {
  static const char *const names[] = {"n", "c", "h", "w"};
  int axis[4];
  struct program *p = program_new("convert");
  int x = program_input(p, "X", t->dtype, 4, names, t->sizes);
  int y = program_stage(p, "Y", t->dtype, 4, names, t->sizes);
  for (int i = 0; i < 4; i++) axis[i] = program_axis(p, y, i);
  program_define(p, y, px_load(p, x, 4, axis));
  program_output(p, y);
  return p;
}

static canvas_status conversion(canvas_context *ctx, const struct net_tensor *t, enum kind kind,
                                struct program **out) {
  struct program *copy = copy_program(t);
  const enum kind given[] = {AS_IT_CAME, kind};
  canvas_status status = lay_out(ctx, copy, given, out);
  program_free(copy);
  return status;
}

static void price_conversions(struct choice *c) {
  canvas_context ctx;
  for (int i = 0; i < c->n->tensors.count; i++)
    for (enum kind kind = CHANNELS_LAST; kind < KINDS; kind++) {
      struct program *p;
      if (c->n->tensors.data[i].kind != NET_INPUT || !may_lie(c, i, kind)) continue;
      c->conversion[i][kind] = INFINITY;
      if (conversion(&ctx, &c->n->tensors.data[i], kind, &p) != CANVAS_OK) continue;
      c->conversion[i][kind] = fuse_cost(c->costs, p);
      program_free(p);
    }
}

/* ---- choosing -------------------------------------------------------------------------------- */

static void lay_all(struct choice *c, enum kind kind) {
  for (int i = 0; i < c->n->tensors.count; i++) {
    bool value = c->n->tensors.data[i].kind == NET_VALUE;
    c->kind[i] = value && may_lie(c, i, kind) ? kind : AS_IT_CAME;
  }
}

static bool improve(struct choice *c, int tensor) {
  enum kind before = c->kind[tensor], best = before;
  double least = seconds_around(c, tensor);
  for (enum kind kind = AS_IT_CAME; kind < KINDS; kind++) {
    if (kind == before || !may_lie(c, tensor, kind)) continue;
    c->kind[tensor] = kind;
    double seconds = seconds_around(c, tensor);
    if (seconds >= least * SURELY_BETTER) continue;
    least = seconds;
    best = kind;
  }
  c->kind[tensor] = best;
  return best != before;
}

static void descend(struct choice *c) {
  bool changed = true;
  for (int round = 0; round < ROUNDS && changed; round++) {
    changed = false;
    for (int i = 0; i < c->n->tensors.count && c->evaluations < EVALUATIONS; i++)
      if (is_image(c->n, i)) changed |= improve(c, i);
  }
}

static int least_of(const double *seconds) {
  int least = 0;
  for (int kind = 1; kind < KINDS; kind++)
    if (seconds[kind] < seconds[least]) least = kind;
  return least;
}

/* Improves each uniform layout that is nearly the best, the best one first. Among ends of nearly
 * equal time the simplest layout wins. */
static void choose(struct choice *c) {
  size_t bytes = (size_t)c->n->tensors.count + 1;
  unsigned char *ends = mem_alloc(KINDS * bytes);
  double all[KINDS], end[KINDS] = {INFINITY, INFINITY, INFINITY}, least = INFINITY;
  for (enum kind kind = AS_IT_CAME; kind < KINDS; kind++) {
    lay_all(c, kind);
    all[kind] = seconds_around(c, -1);
  }
  double most = all[least_of(all)] * NEARLY;
  for (int next = least_of(all); isfinite(all[next]) && all[next] <= most; next = least_of(all)) {
    lay_all(c, next);
    descend(c);
    memcpy(ends + (size_t)next * bytes, c->kind, bytes);
    end[next] = seconds_around(c, -1);
    all[next] = INFINITY; /* done */
  }
  lay_all(c, AS_IT_CAME);
  for (enum kind kind = AS_IT_CAME; kind < KINDS; kind++) {
    if (end[kind] >= least * BETTER) continue;
    least = end[kind];
    memcpy(c->kind, ends + (size_t)kind * bytes, bytes);
  }
  mem_free(ends);
}

/* ---- the network ----------------------------------------------------------------------------- */

static void take_variant(struct choice *c, struct net_call *call) {
  struct variant *v = variant_of(c, call);
  char name[PROGRAM_NAME + 1];
  if (v->number < 0) {
    free_program_name(c->n, v->program->name, name);
    v->program->name = arena_strndup(&v->program->arena, name, strlen(name));
    v->number = network_program(c->n, v->program);
    v->program = NULL;
  }
  call->program = v->number;
}

static void take_sizes(struct net_tensor *t, const struct program_tensor *like) {
  t->rank = like->rank;
  for (int i = 0; i < like->rank; i++) t->sizes[i] = like->axes[i].size;
}

static void read_instead(struct network *n, int tensor, int value, int calls) {
  for (int c = 0; c < calls; c++)
    for (int i = 0; i < n->calls.data[c].arguments.count; i++)
      if (n->calls.data[c].arguments.data[i] == tensor) n->calls.data[c].arguments.data[i] = value;
}

/* Adds a first call that converts the input. */
static canvas_status convert(canvas_context *ctx, struct choice *c, int input) {
  struct network *n = c->n;
  struct program *p;
  char name[PROGRAM_NAME + 1];
  TRY(conversion(ctx, &n->tensors.data[input], c->kind[input], &p));
  free_program_name(n, "convert", name);
  p->name = arena_strndup(&p->arena, name, strlen(name));
  int calls = n->calls.count, call = network_call(n, network_program(n, p));
  network_argument(n, call, input);
  read_instead(n, input, add_result(n, call, n->tensors.data[input].name), calls);
  struct net_call made = n->calls.data[call];
  memmove(n->calls.data + 1, n->calls.data, (size_t)calls * sizeof made);
  n->calls.data[0] = made;
  return CANVAS_OK;
}

static canvas_status take_layouts(canvas_context *ctx, struct choice *c) {
  struct network *n = c->n;
  int tensors = n->tensors.count;
  for (int i = 0; i < n->calls.count; i++)
    if (n->calls.data[i].varies) take_variant(c, &n->calls.data[i]);
  for (int i = 0; i < n->calls.count; i++) {
    const struct net_call *call = &n->calls.data[i];
    const struct program *p = n->programs.data[call->program];
    for (int k = 0; k < call->results.count; k++)
      take_sizes(&n->tensors.data[call->results.data[k]], &p->tensors.data[p->outputs.data[k]]);
  }
  for (int i = 0; i < tensors; i++)
    if (n->tensors.data[i].kind == NET_INPUT && c->kind[i] != AS_IT_CAME) TRY(convert(ctx, c, i));
  network_constants_first(n);
  network_join_programs(n);
  return CANVAS_OK;
}

canvas_status pass_layout(canvas_context *ctx, struct network *n, struct fuse_costs *costs) {
  size_t tensors = (size_t)n->tensors.count + 1;
  struct choice c = {.n = n, .costs = costs};
  network_settle(n);
  c.kind = mem_alloc(tensors);
  c.conversion = mem_alloc(tensors * sizeof *c.conversion);
  price_conversions(&c);
  choose(&c);
  canvas_status status = take_layouts(ctx, &c);
  for (int i = 0; i < c.variants.count; i++) {
    program_free(c.variants.data[i].program);
    mem_free(c.variants.data[i].key);
  }
  mem_free(c.variants.data);
  name_table_free(&c.table);
  mem_free(c.conversion);
  mem_free(c.kind);
  return status;
}
