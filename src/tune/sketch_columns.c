/* Writes a convolution as a product of matrices: the columns, a new stage, hold what windows read.
 *
 *     Y[h:7, w:7, o] = P[h+kh, w+kw, c] * W[o, c, kh, kw] // sum kh:3, kw:3, c
 * ->
 *     im2col[h_w:49, kh:3, kw:3, c] =
 *         if 1 <= h_w/7+kh && ... then X[h_w/7+kh-1, h_w%7+kw-1, c] else 0
 *     Y_f[h_w:49, o] = im2col[h_w, kh, kw, c] * W[o, c, kh, kw] // sum kh:3, kw:3, c
 *     Y[h:7, w:7, o] = Y_f[h*7+w, o]
 *
 * If an image row is shorter than a register tile, the image axes are merged, as here, so that a
 * tile continues in the next row. Otherwise they stay, and Y itself is the product.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_editor.h"
#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"
#include "tune/sketch.h"

/* A convolution: a contraction of windows of an image with weights. */
struct convolution {
  int stage, image; /* contraction stage; expression of the image */
  uint32_t rows;    /* mask of own axes that only the image uses */
};

static uint32_t axes_in(const struct program *p, int stage, int expr) {
  const struct program_tensor *t = &p->tensors.data[stage];
  uint32_t found = 0;
  for (int i = 0; i < t->rank + t->reductions; i++)
    if (px_mentions(p, expr, i)) found |= 1u << i;
  return found;
}

/* The load under index conditions, if the expression only moves data; -1. */
static int moved_load(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_LOAD) return n->sort == PX_VALUE ? expr : -1;
  if (n->op != PX_SELECT || !is_index_condition(p, n->arg[0])) return -1;
  int first = p->nodes.data[n->arg[1]].op, second = p->nodes.data[n->arg[2]].op;
  if (first != PX_NUMBER && second != PX_NUMBER) return -1;
  return moved_load(p, n->arg[first == PX_NUMBER ? 2 : 1]);
}

/* Whether an index of the load mentions both an own axis and a reduction. */
static bool has_window(const struct program *p, int stage, int load) {
  const struct px_node *n = &p->nodes.data[load];
  uint32_t own = (1u << p->tensors.data[stage].rank) - 1;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++) {
    uint32_t axes = axes_in(p, stage, p->indices.data[n->first + i]);
    if (axes & own && axes & ~own) return true;
  }
  return false;
}

/* Whether the convolution is dense: the operands share no own axis longer than 1, no reduction is
 * bounded by data, and weights use all axes that the image does not. */
static bool is_dense(const struct program *p, int stage, int image, int weights) {
  const struct program_tensor *t = &p->tensors.data[stage];
  uint32_t a = axes_in(p, stage, image), b = axes_in(p, stage, weights), own = (1u << t->rank) - 1;
  for (int i = 0; i < t->rank; i++)
    if (a & b & 1u << i && t->axes[i].size > 1) return false;
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (t->axes[i].low >= 0) return false;
  return b & own & ~a && (a | own) == (b | own);
}

static bool is_convolution(const struct program *p, int stage, struct convolution *out) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reducer != REDUCE_SUM || p->nodes.data[t->body].op != PX_MUL) return false;
  for (int i = 0; i < 2; i++) {
    int image = p->nodes.data[t->body].arg[i], weights = p->nodes.data[t->body].arg[1 - i];
    int load = moved_load(p, image);
    if (load < 0 || moved_load(p, weights) < 0 || !has_window(p, stage, load)) continue;
    *out = (struct convolution){
        stage, image,
        axes_in(p, stage, image) & ~axes_in(p, stage, weights) & ((1u << t->rank) - 1)};
    return is_dense(p, stage, image, weights);
  }
  return false;
}

static double terms_of(const struct program *p, int stage) {
  const struct program_tensor *t = &p->tensors.data[stage];
  double terms = 1;
  for (int i = 0; i < t->rank + t->reductions; i++) terms *= (double)t->axes[i].size;
  return terms;
}

/* The convolution with most terms, if no other reduction has more. */
static bool find_convolution(const struct program *p, struct convolution *out) {
  struct convolution c;
  double most = 0;
  for (int i = 0; i < p->tensors.count; i++)
    if (is_convolution(p, i, &c) && terms_of(p, i) > most) {
      most = terms_of(p, i);
      *out = c;
    }
  for (int i = 0; i < p->tensors.count; i++)
    if (p->tensors.data[i].reductions && terms_of(p, i) > most) return false;
  return most > 0;
}

bool sketch_convolution(const struct program *p, int *stage, int *load) {
  struct convolution c;
  if (!find_convolution(p, &c) || p->nodes.data[c.image].op != PX_LOAD) return false;
  *stage = c.stage;
  *load = c.image;
  return true;
}

/* ---- merging image rows ---------------------------------------------------------------------- */

/* The size of the image's last axis; *axes: number of image axes longer than 1. */
static int64_t row_size(const struct program *p, const struct convolution *c, int *axes) {
  const struct program_tensor *t = &p->tensors.data[c->stage];
  int64_t last = 0;
  *axes = 0;
  for (int i = 0; i < t->rank; i++)
    if (c->rows >> i & 1) {
      last = t->axes[i].size;
      *axes += last > 1;
    }
  return last;
}

static bool is_folded(const struct program *p, const struct convolution *c,
                      const struct machine *machine) {
  int axes;
  int64_t size = row_size(p, c, &axes);
  return axes > 1 && size < machine->registers;
}

/* Writes `(n*7+h)*7+w, o`: the merged axes take the place of the first one. */
static void put_folded(const struct program *p, const struct convolution *c, struct buf *out) {
  const struct program_tensor *t = &p->tensors.data[c->stage];
  struct buf sum = {0};
  int count = 0;
  for (int i = 0; i < t->rank; i++) {
    struct buf next = {0};
    if (!(c->rows >> i & 1)) continue;
    if (count++)
      buf_printf(&next, count > 2 ? "(%s)*%lld+%s" : "%s*%lld+%s", sum.text,
                 (long long)t->axes[i].size, t->axes[i].name);
    else
      buf_puts(&next, t->axes[i].name);
    buf_free(&sum);
    sum = next;
  }
  for (int i = 0, done = 0; i < t->rank; i++) {
    bool row = c->rows >> i & 1;
    if (row && done) continue;
    buf_printf(out, "%s%s", i ? ", " : "", row ? sum.text : t->axes[i].name);
    done |= row;
  }
  buf_free(&sum);
}

static bool edit(struct editor *e, struct buf *text) {
  bool done = editor_edit(e, text->text);
  buf_free(text);
  *text = (struct buf){0};
  return done;
}

static bool fold(struct editor *e, const struct convolution *c) {
  char sum[PROGRAM_NAME], folded[PROGRAM_NAME];
  const char *name = program_of(e)->tensors.data[c->stage].name;
  struct buf layout = {0}, text = {0};
  editor_name(program_of(e), name, "_s", sum);
  editor_name(program_of(e), name, "_f", folded);
  put_folded(program_of(e), c, &layout);
  buf_printf(&text, "cache %s as %s", name, sum);
  bool done = edit(e, &text);
  if (done) buf_printf(&text, "pack %s as %s [%s]", sum, folded, layout.text);
  done = done && edit(e, &text);
  if (done) buf_printf(&text, "inline %s", sum);
  done = done && edit(e, &text);
  buf_free(&layout);
  return done;
}

/* ---- columns --------------------------------------------------------------------------------- */

static bool make(struct editor *e, char name[PROGRAM_NAME]) {
  struct convolution c;
  struct program *out;
  canvas_context ctx;
  if (program_inline_data_movement(&ctx, e->given, &out) == CANVAS_OK) editor_take(e, out);
  if (!find_convolution(program_of(e), &c)) return false;
  if (is_folded(program_of(e), &c, e->machine) &&
      (!fold(e, &c) || !find_convolution(program_of(e), &c)))
    return false;
  editor_name(program_of(e), "im2col", "", name);
  if (program_columns(&ctx, program_of(e), c.stage, c.image, name, &out) != CANVAS_OK) return false;
  editor_take(e, out);
  return true;
}

struct program *sketch_columns(const struct program *p, const struct machine *machine,
                               char name[PROGRAM_NAME]) {
  struct editor e = {.given = p, .machine = machine};
  if (make(&e, name)) return e.p;
  program_free(e.p);
  return NULL;
}
