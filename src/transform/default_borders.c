/* Sums of what lies inside of a border, of constant weights: no padded image, no products with 0. See
 * default.h.
 *
 *     P[h:9, w:9, c:64] = if 1 <= h && h < 8 && 1 <= w && w < 8 then X[h-1, w-1, c] else 0
 *     Y[h:7, w:7, o:64] = P[h+kh, w+kw, c] * W[kh, kw, c, o] // sum kh:3, kw:3, c:64
 *
 * The edit `border Y as Y_b` leaves 361 of 441 products, and keeps what a weight that is not finite makes of
 * the others: that depends on weights alone, and is prepared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/affine.h"
#include "program/program_edit.h"
#include "program/program_rebuild.h"
#include "transform/default_chooser.h"
#include "transform/default_editor.h"

/* Of the cycles of the padded image: less than that is taken. It is written and read again, which is 3 to 5 % that the
 * formula does not know (3x3 at 56 to 224 pixels). */
static const double LESS = 1.04;

/* It makes nothing but an image in a border of zeros, for one stage. */
static bool is_padding(const struct program *p, int stage, int reader) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reductions || is_output(p, stage)) return false;
  const struct px_node *n = &p->nodes.data[t->body];
  if (n->op != PX_SELECT || !asks_indices(p, n->arg[0])) return false;
  const struct px_node *zero = &p->nodes.data[n->arg[2]];
  if (zero->op != PX_NUMBER || zero->number != 0) return false;
  return p->nodes.data[n->arg[1]].op == PX_LOAD && is_read_by_one(p, stage, reader);
}

/* The padded image of a long sum of its products with constants; -1. */
static int padded_image(const struct program *p, int stage, const bool *constant) {
  const struct program_tensor *t = &p->tensors.data[stage];
  const struct px_node *n = &p->nodes.data[t->body];
  if (t->is_input || t->reducer != REDUCE_SUM || n->op != PX_MUL || default_terms(t) <= DEFAULT_FEW)
    return -1;
  for (int i = 0; i < 2; i++) {
    const struct px_node *image = &p->nodes.data[n->arg[i]];
    const struct px_node *weight = &p->nodes.data[n->arg[!i]];
    if (image->op != PX_LOAD || weight->op != PX_LOAD || !constant[weight->tensor]) continue;
    if (is_padding(p, image->tensor, stage)) return image->tensor;
  }
  return -1;
}

static struct program *edited(const struct program *p, const char *text) {
  canvas_context ctx;
  struct program *out;
  return program_edit(&ctx, p, text, strlen(text), &out) == CANVAS_OK ? out : NULL;
}

static struct program *bordered(const struct program *p, int stage, int image) {
  char text[3 * PROGRAM_NAME], name[PROGRAM_NAME];
  const char *sum = p->tensors.data[stage].name;
  snprintf(text, sizeof text, "inline %s", p->tensors.data[image].name);
  struct program *open = edited(p, text);
  if (!open) return NULL;
  editor_name(open, sum, "_b", name);
  snprintf(text, sizeof text, "border %s as %s", sum, name);
  struct program *out = edited(open, text);
  program_free(open);
  return out;
}

bool editor_border(struct editor *e, int *after) {
  const struct program *p = program_of(e);
  bool *constant = program_constants(p);
  struct program *out = NULL;
  for (int i = *after + 1; i < p->tensors.count && !out; i++) {
    int image = padded_image(p, i, constant);
    *after = i;
    if (image >= 0) out = bordered(p, i, image);
    if (!out || editor_cycles(e, out) < LESS * editor_cycles(e, p)) continue;
    program_free(out);
    out = NULL;
  }
  free(constant);
  if (out) editor_take(e, out);
  return out != NULL;
}
