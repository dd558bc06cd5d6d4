/* The edit `normalize conditions`: index conditions use only `<` and `<=`, and hold where a value
 * is computed instead of where it is padding. Default scheduling expects this form.
 *
 *     Y[k:4, w:58] = if w < 1 || !(w <= 56) then 0 else X[w-1] * W[k]
 * ->
 *     Y[k:4, w:58] = if 1 <= w && w <= 56 then X[w-1] * W[k] else 0
 */
#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* The condition in normal form; with `holds` false, its negation. */
static int normalized_condition(struct program *p, int expr, bool holds) {
  const struct px_node n = p->nodes.data[expr]; /* a copy: the array may move */
  int a = n.arg[0], b = n.arg[1];
  if (p->failed) return -1;
  switch (n.op) {
    case PX_NOT: return normalized_condition(p, a, !holds);
    case PX_AND:
    case PX_OR:
      a = normalized_condition(p, a, holds);
      b = normalized_condition(p, b, holds);
      return (n.op == PX_AND) == holds ? px_and(p, a, b) : px_or(p, a, b);
    case PX_LT: return holds ? expr : px_compare(p, PX_LE, b, a);
    case PX_LE: return holds ? expr : px_compare(p, PX_LT, b, a);
    case PX_GT: return holds ? px_compare(p, PX_LT, b, a) : px_compare(p, PX_LE, a, b);
    case PX_GE: return holds ? px_compare(p, PX_LE, b, a) : px_compare(p, PX_LT, a, b);
    case PX_EQ:
    case PX_NE: return holds ? expr : px_compare(p, n.op == PX_EQ ? PX_NE : PX_EQ, a, b);
    case PX_BOOL: return px_bool(p, (n.integer != 0) == holds);
    default: return holds ? expr : px_not(p, expr);
  }
}

/* Whether the condition consists of `<` and `<=`, joined by `between` (PX_AND or PX_OR) only. */
static bool is_chain_of(const struct program *p, int expr, enum px_op between) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == between)
    return is_chain_of(p, n->arg[0], between) && is_chain_of(p, n->arg[1], between);
  return n->op == PX_LT || n->op == PX_LE;
}

/* Whether `then` is the padding and `other` the value. */
static bool is_outside(const struct program *p, int condition, int then, int other) {
  if (!is_chain_of(p, condition, PX_OR)) return false;
  bool number = p->nodes.data[then].op == PX_NUMBER, rest = p->nodes.data[other].op == PX_NUMBER;
  return (number && !rest) || (number == rest && p->nodes.data[condition].op == PX_OR);
}

/* The expression with all its conditions in normal form; `expr` itself if nothing changes. */
static int normalized(struct program *p, int expr) {
  const struct px_node n = p->nodes.data[expr];
  int arg[3] = {n.arg[0], n.arg[1], n.arg[2]};
  if (p->failed || n.sort != PX_VALUE || n.op == PX_LOAD) return expr;
  for (int i = 0; i < 3; i++)
    if (arg[i] >= 0) arg[i] = normalized(p, arg[i]);
  if (n.op == PX_SELECT && is_index_condition(p, arg[0])) {
    arg[0] = normalized_condition(p, arg[0], true);
    if (!p->failed && is_outside(p, arg[0], arg[1], arg[2])) {
      arg[0] = normalized_condition(p, arg[0], false);
      return px_select(p, arg[0], arg[2], arg[1]);
    }
  }
  bool same = arg[0] == n.arg[0] && arg[1] == n.arg[1] && arg[2] == n.arg[2];
  return same || p->failed ? expr : px_raw(p, n.op, arg[0], arg[1], arg[2], 0, 0);
}

struct program *program_normalize_conditions(const struct program *p) {
  struct program *out = program_copy(p);
  bool changed = false;
  for (int i = 0; i < out->tensors.count && !out->failed; i++) {
    struct program_tensor *t = &out->tensors.data[i];
    if (t->is_input) continue;
    int body = normalized(out, t->body);
    t = &out->tensors.data[i];
    bool same = out->failed || px_same(out, body, t->body);
    changed = changed || !same;
    if (!same) t->body = body;
  }
  if (changed && !out->failed) {
    program_note_edit(out, p, "normalize conditions");
    return out;
  }
  program_free(out);
  return NULL;
}
