/* Sums of what lies inside of a border, of constant weights: no padded image, no products with 0. See
 * default.h.
 *
 *     P[h:9, w:9, c:64] = if 1 <= h && h < 8 && 1 <= w && w < 8 then X[h-1, w-1, c] else 0
 *     Y[h:7, w:7, o:64] = P[h+kh, w+kw, c] * W[kh, kw, c, o] // sum kh:3, kw:3, c:64
 *
 * The edit `border Y as Y_b` leaves 361 of 441 products, and keeps what a weight that is not finite makes of
 * the others: that depends on weights alone, and is prepared. The condition may also stand in the sum, as that of
 * groups of channels does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "autoschedule/default_editor.h"
#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

/* Of the cycles of the padded image: less than that is taken. It is written and read again, which is 3 to 5 % that the
 * formula does not know (3x3 at 56 to 224 pixels). */
static const double LESS = 1.04;

/* if 1 <= h && h < 8 then X[h-1] else 0 */
static bool is_zero_outside(const struct program *p, int node) {
  const struct px_node *n = &p->nodes.data[node];
  if (n->op != PX_SELECT || !asks_indices(p, n->arg[0])) return false;
  const struct px_node *zero = &p->nodes.data[n->arg[2]];
  return zero->op == PX_NUMBER && zero->number == 0 && p->nodes.data[n->arg[1]].op == PX_LOAD;
}

/* It makes nothing but an image in a border of zeros, for one stage. */
static bool is_padding(const struct program *p, int stage, int reader) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reductions || is_output(p, stage)) return false;
  return is_zero_outside(p, t->body) && is_read_by_one(p, stage, reader);
}

/* Where more of the terms are inside, products with 0 cost less than tiles that have none gain. Of 3x3 that is so beyond
 * images of 8x8, of 3x1 of 4x4. */
static const double SMALL = 0.84;

static bool is_mostly_inside(const struct program *p, int stage, int condition) {
  const struct default_facts f = {.p = p, .t = &p->tensors.data[stage]};
  return default_share(&f, condition) > SMALL;
}

enum { OPEN = -1, NOTHING = -2 };

/* What a sum multiplies with constants: the padded image of a long one, OPEN where the condition stands in the sum, or
 * NOTHING that is 0 beyond a border. */
static int padded_image(const struct program *p, int stage, const bool *constant) {
  const struct program_tensor *t = &p->tensors.data[stage];
  const struct px_node *n = &p->nodes.data[t->body];
  if (t->is_input || t->reducer != REDUCE_SUM || n->op != PX_MUL) return NOTHING;
  bool few = default_terms(t) <= DEFAULT_SHORT_REDUCTION;
  for (int i = 0; i < 2; i++) {
    const struct px_node *image = &p->nodes.data[n->arg[i]];
    const struct px_node *weight = &p->nodes.data[n->arg[!i]];
    if (weight->op != PX_LOAD || !constant[weight->tensor]) continue;
    if (is_zero_outside(p, n->arg[i]))
      return is_mostly_inside(p, stage, image->arg[0]) ? NOTHING : OPEN;
    if (!few && image->op == PX_LOAD && is_padding(p, image->tensor, stage)) return image->tensor;
  }
  return NOTHING;
}

static struct program *bordered(const struct editor *e, int stage, int image) {
  const struct program *p = program_of(e);
  char text[3 * PROGRAM_NAME], name[PROGRAM_NAME];
  const char *sum = p->tensors.data[stage].name;
  struct program *open = NULL;
  if (image != OPEN) {
    snprintf(text, sizeof text, "inline %s", p->tensors.data[image].name);
    p = open = editor_edited(e, p, text);
    if (!open) return NULL;
  }
  editor_name(p, sum, "_b", name);
  snprintf(text, sizeof text, "border %s as %s", sum, name);
  struct program *out = editor_edited(e, p, text);
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
    if (image != NOTHING) out = bordered(e, i, image);
    if (!out || editor_cycles(e, out) < LESS * editor_cycles(e, p)) continue;
    program_free(out);
    out = NULL;
  }
  mem_free(constant);
  if (out) editor_take(e, out);
  return out != NULL;
}
