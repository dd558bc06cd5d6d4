/* Hoist values that are the value for a whole row into a stage of their own.
 *
 *     Y[n, c, h, w] = X[n, c, h, w] / (1 + exp(-S[n, c]))
 *
 *     Y_s[n, c] = 1 + exp(-S[n, c])
 *     Y[n, c, h, w] = X[n, c, h, w] / Y_s[n, c]
 *
 * A divisor becomes its reciprocal: a division takes as long as ten products.
 *
 *     Y[n, c] = (X[n, c] - M[n]) / sqrt(V[n] + 0.00001)
 *
 *     Y_d[n] = 1 / sqrt(V[n] + 0.00001)
 *     Y[n, c] = (X[n, c] - M[n]) * Y_d[n]
 *
 * Only where the divisor is proved to have a reciprocal (program_reciprocal.c).
 */
#include "autoschedule/default_editor.h"
#include "cost/policy.h"
#include "program/affine.h"
#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

/* The value depends on some axes, and is invariant along the others often enough to be hoisted. */
static bool is_invariant_often(const struct program *p, const struct program_tensor *t, int expr) {
  double times = 1;
  bool any = false;
  for (int i = 0; i < t->rank + t->reductions; i++) {
    bool depends = px_mentions(p, expr, i);
    any = any || depends;
    if (!depends) times *= (double)t->axes[i].size;
  }
  return any && times >= DEFAULT_HOIST_USES;
}

/* An invariant divisor that has a reciprocal; -1. */
static int find_divisor(const struct program *p, const struct program_tensor *t, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return -1;
  if (n->op == PX_DIV && is_invariant_often(p, t, n->arg[1]) && has_reciprocal(p, n->arg[1]))
    return n->arg[1];
  for (int i = 0; i < PX_ARGS; i++) {
    int found = n->arg[i] >= 0 ? find_divisor(p, t, n->arg[i]) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

/* The program with the reciprocal of the divisor as a stage; NULL if the edit fails. */
static struct program *with_reciprocal(const struct program *p, int stage, int divisor) {
  char name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  editor_name(p, p->tensors.data[stage].name, "_d", name);
  canvas_status status = program_reciprocal(&ctx, p, stage, divisor, name, &out);
  return status == CANVAS_OK ? out : NULL;
}

bool editor_multiply(struct editor *e) {
  const struct program *p = program_of(e);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    if (t->is_input || t->dtype != PROGRAM_F32) continue;
    int divisor = find_divisor(p, t, t->body);
    struct program *out = divisor >= 0 ? with_reciprocal(p, i, divisor) : NULL;
    if (!out) continue;
    editor_take(e, out);
    return true;
  }
  return false;
}

/* ---- functions such as exp ---- */

static bool has_function(const struct program *p, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return false;
  switch (n->op) {
    case PX_EXP:
    case PX_EXPM1:
    case PX_LOG:
    case PX_LOG1P:
    case PX_SIN:
    case PX_COS:
    case PX_TANH:
    case PX_ERF:
    case PX_POW:
    case PX_SQRT: return true;
    default: break;
  }
  for (int i = 0; i < PX_ARGS; i++)
    if (n->arg[i] >= 0 && has_function(p, n->arg[i])) return true;
  return false;
}

/* The largest invariant expression with a function in it; none below an index condition; -1. */
static int find_invariant(const struct program *p, const struct program_tensor *t, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD || !has_function(p, expr)) return -1;
  if (is_invariant_often(p, t, expr)) return expr;
  if (n->op == PX_SELECT) return -1;
  for (int i = 0; i < PX_ARGS; i++) {
    int found = n->arg[i] >= 0 ? find_invariant(p, t, n->arg[i]) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

bool editor_hoist(struct editor *e) {
  const struct program *p = program_of(e);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    char name[PROGRAM_NAME];
    canvas_context ctx;
    struct program *out;
    int value = t->is_input || t->dtype != PROGRAM_F32 ? -1 : find_invariant(p, t, t->body);
    if (value < 0) continue;
    editor_name(p, t->name, "_s", name);
    if (program_outline(&ctx, p, i, value, name, &out) != CANVAS_OK) continue;
    editor_take(e, out);
    return true;
  }
  return false;
}
