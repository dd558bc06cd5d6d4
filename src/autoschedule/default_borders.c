/* Reductions over the inside of a padding boundary: no padded image, no products with 0. For constant weights.
 *
 *     P[h:9, w:9, c:64] = if 1 <= h && h < 8 && 1 <= w && w < 8 then X[h-1, w-1, c] else 0
 *     Y[h:7, w:7, o:64] = P[h+kh, w+kw, c] * W[kh, kw, c, o] // sum kh:3, kw:3, c:64
 *
 * The edit `border Y as Y_b` leaves 361 of 441 products. Y_b holds the products of weights and zeros, which are NaN
 * where a weight is not finite; it depends on weights alone and is constant-folded. The condition may also stand in the
 * reduction, as for grouped channels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default_chooser.h"
#include "autoschedule/default_editor.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "program/program_facts.h"
#include "rewrite/program_edit.h"

/* Such as `if 1 <= h && h < 8 then X[h-1] else 0`. */
static bool is_zero_outside(const struct program *p, int node) {
  const struct px_node *n = &p->nodes.data[node];
  if (n->op != PX_SELECT || !is_index_condition(p, n->arg[0])) return false;
  const struct px_node *zero = &p->nodes.data[n->arg[2]];
  return zero->op == PX_NUMBER && zero->number == 0 && p->nodes.data[n->arg[1]].op == PX_LOAD;
}

/* The stage is an image padded with zeros, and only `consumer` reads it. */
static bool is_padding(const struct program *p, int stage, int consumer) {
  const struct program_tensor *t = &p->tensors.data[stage];
  if (t->is_input || t->reductions || is_output(p, stage)) return false;
  return is_zero_outside(p, t->body) && is_only_consumer(p, stage, consumer);
}

static bool is_mostly_inside(const struct program *p, int stage, int condition) {
  const struct default_facts f = {.p = p, .t = &p->tensors.data[stage]};
  return default_share(&f, condition) > DEFAULT_BOUNDARY_INSIDE;
}

enum { OPEN = -1, NOTHING = -2 };

/* The padded image that a long reduction multiplies with constants; OPEN if the condition stands in the
 * reduction; NOTHING if no operand is padded. */
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

static struct program *without_padding(const struct editor *e, int stage, int image) {
  const struct program *p = program_of(e);
  char text[EDIT_TEXT], name[PROGRAM_NAME];
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
    if (image != NOTHING) out = without_padding(e, i, image);
    if (!out || editor_cycles(e, out) < DEFAULT_BOUNDARY_CYCLES * editor_cycles(e, p)) continue;
    program_free(out);
    out = NULL;
  }
  mem_free(constant);
  if (out) editor_take(e, out);
  return out != NULL;
}
