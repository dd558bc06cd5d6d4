/* The edit `winograd`: finds the stages that Winograd's convolution applies to. winograd_stages.c
 * builds the stages that replace them, and shows them. */
#include <stdlib.h>

#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"
#include "rewrite/winograd_matrices.h"

/* Strides of an own axis and a window axis in the indices of an expression. */
struct steps {
  int64_t own, window; /* in the first index that depends on either; 0: no index does */
  bool conflict;       /* another index has other proportions, or is not affine */
};

static void see_index(const struct program *p, int expr, int own, int window, struct steps *s) {
  struct affine sum;
  int64_t a, b;
  if (!px_mentions(p, expr, own) && !px_mentions(p, expr, window)) return;
  if (!affine_of(p, expr, &sum) || !affine_stride(p, &sum, own, &a) ||
      !affine_stride(p, &sum, window, &b)) {
    s->conflict = true;
    return;
  }
  if (!s->own && !s->window) {
    s->own = a;
    s->window = b;
  }
  if ((a == b) != (s->own == s->window)) s->conflict = true;
}

static void see_steps(const struct program *p, int expr, int own, int window, struct steps *s) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort == PX_INDEX) {
    see_index(p, expr, own, window, s);
    return;
  }
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) see_steps(p, n->arg[i], own, window, s);
  for (int i = 0; n->op == PX_LOAD && i < p->tensors.data[n->tensor].rank; i++)
    see_steps(p, p->indices.data[n->first + i], own, window, s);
}

struct finder {
  const struct program *p;
  const struct program_tensor *t;
  struct winograd *w;
  int pairs;
  bool stretched; /* a window has a stride or a dilation */
};

static bool in_image(const struct finder *f, int axis) {
  return px_mentions(f->p, f->w->image, axis) ||
         (f->w->guard >= 0 && px_mentions(f->p, f->p->nodes.data[f->w->guard].arg[0], axis));
}

/* The own axis that occurs with this window axis, with the same stride, in the image only; -1. */
static int moved_with(struct finder *f, int window) {
  const struct program *p = f->p;
  for (int own = 0; own < f->t->rank; own++) {
    struct steps s = {0};
    see_steps(p, f->w->image, own, window, &s);
    if (f->w->guard >= 0) see_steps(p, p->nodes.data[f->w->guard].arg[0], own, window, &s);
    if (!s.own || !s.window || (f->pairs && own == f->w->own[0])) continue;
    if (!s.conflict && s.own == s.window && !px_mentions(p, f->w->weights, own)) return own;
    f->stretched = true;
  }
  return -1;
}

static void add_pair(struct finder *f, int window) {
  const struct program_axis *a = &f->t->axes[window];
  if (a->low >= 0 || !in_image(f, window) || !px_mentions(f->p, f->w->weights, window)) return;
  int own = a->size == TAPS ? moved_with(f, window) : -1;
  if (own < 0 || f->pairs == 2) return;
  f->w->own[f->pairs] = own;
  f->w->window[f->pairs++] = window;
}

/* Whether the axis occurs in the expression only as axis/block; sets the block. */
static bool in_blocks(const struct program *p, int expr, int axis, int64_t *block) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_AXIS) return n->integer != axis;
  if (n->op == PX_DIV && n->sort == PX_INDEX) {
    const struct px_node *of = &p->nodes.data[n->arg[0]], *by = &p->nodes.data[n->arg[1]];
    bool whole = of->op == PX_AXIS && of->integer == axis && by->op == PX_INT;
    if (whole && (!*block || *block == by->integer)) {
      *block = by->integer;
      return true;
    }
  }
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && !in_blocks(p, n->arg[i], axis, block)) return false;
  for (int i = 0; n->op == PX_LOAD && i < p->tensors.data[n->tensor].rank; i++)
    if (!in_blocks(p, p->indices.data[n->first + i], axis, block)) return false;
  return true;
}

static const char *find_pairs(struct finder *f) {
  struct winograd *w = f->w;
  bool channels = false;
  f->pairs = 0;
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++) add_pair(f, i);
  if (f->pairs < 2 && f->stretched)
    return "has a window with a stride or a dilation, Winograd needs neither";
  if (f->pairs < 2) return "has no 3x3 window along two of its axes";
  for (int i = f->t->rank; i < f->t->rank + f->t->reductions; i++) {
    if (f->t->axes[i].low >= 0) return "has a reduction whose bounds depend on data";
    if (i == w->window[0] || i == w->window[1] || f->t->axes[i].size == 1) continue;
    channels |= in_image(f, i) && px_mentions(f->p, w->weights, i);
  }
  if (!channels)
    return "sums over no channels of image times weights, so Winograd would take more work";
  for (int i = 0; i < f->t->rank; i++) {
    int64_t block = 0;
    bool blocks = in_blocks(f->p, w->image, i, &block);
    if (w->guard >= 0)
      blocks = blocks && in_blocks(f->p, f->p->nodes.data[w->guard].arg[0], i, &block);
    w->block[i] = blocks ? block : 0;
  }
  return NULL;
}

static bool is_zero(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  return n->op == PX_NUMBER && n->number == 0;
}

const char *find_winograd(const struct program *p, int stage, int tile, struct winograd *out) {
  const struct program_tensor *t = &p->tensors.data[stage];
  const char *no_products = "is not a sum of products of an image and weights";
  struct finder f = {.p = p, .t = t, .w = out};
  *out = (struct winograd){.guard = -1};
  if (t->is_input) return "is an input, it computes nothing";
  if (t->reducer != REDUCE_SUM) return no_products;
  const struct px_node *n = &p->nodes.data[t->body];
  if (n->op == PX_SELECT && is_index_condition(p, n->arg[0]) && is_zero(p, n->arg[2])) {
    out->guard = t->body;
    n = &p->nodes.data[n->arg[1]];
  }
  if (n->op != PX_MUL) return no_products;
  const char *why = NULL;
  for (int i = 0; i < 2; i++) {
    out->image = n->arg[i];
    out->weights = n->arg[1 - i];
    why = find_pairs(&f);
    if (f.pairs == 2) break;
  }
  if (!why) out->tile = tile;
  return why;
}

/* ---- the edit
 * ------------------------------------------------------------------------------------ */

/* The padding stage that the image is loaded from, if it can be inlined: only this stage loads it,
 * once, and it does not reduce; -1. */
static int padding_of(const struct program *p, int stage, const struct winograd *w) {
  const struct px_node *n = &p->nodes.data[w->image];
  if (n->op != PX_LOAD || !is_only_consumer(p, n->tensor, stage)) return -1;
  bool once = stage_loads(p, stage, n->tensor) == 1 && !p->tensors.data[n->tensor].reductions;
  return once && !not_inlined(p, n->tensor) ? n->tensor : -1;
}

void change_add_winograd(struct change *c, int stage, const struct winograd *w) {
  if (!c->winograd) c->winograd = mem_alloc((size_t)c->from->tensors.count * sizeof *c->winograd);
  c->winograd[stage] = *w;
  int border = padding_of(c->from, stage, w);
  if (border >= 0) c->inlined[border] = true;
  if (w->tile > c->to->winograd) c->to->winograd = w->tile;
}

struct program *program_with_winograd(const struct program *p, int tile) {
  struct change c = change_open(CHANGE_WINOGRAD, p);
  struct program *out = NULL;
  canvas_context ctx;
  c.tensor = -1;
  for (int i = 0; i < p->tensors.count; i++) {
    struct winograd w;
    if (!find_winograd(p, i, tile, &w)) change_add_winograd(&c, i, &w);
  }
  if (c.winograd && change_finish(&ctx, &c, &out) == CANVAS_OK) return out;
  if (!c.winograd) {
    change_close(&c);
    program_free(c.to);
  }
  return NULL;
}
