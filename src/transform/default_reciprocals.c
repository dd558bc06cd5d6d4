/* What is the same for a whole row is computed once for it. See default.h.
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
 * Only where the divisor is proved to be neither so small nor so large that its reciprocal is no normal number
 * (an infinity and a nan give what they gave). What has an upper bound here has a root in it, whose bound of
 * rounding has room for a product more.
 */
#include <math.h>

#include "program/affine.h"
#include "program/program_edit.h"
#include "program/program_rebuild.h"
#include "transform/default_editor.h"

enum {
  OFTEN = 8,    /* uses of a divisor that are worth it */
  VISITED = 200 /* nodes that are looked at to prove its range */
};

static const double SMALLEST = 1e-30, LARGEST = 1e30; /* of a divisor: normal in fp32 */
static const double MOST = 3.5e38;                    /* of any number in fp32 that is finite */

/* Where finite values are. */
struct values {
  double low, high;
};

struct look {
  const struct program *p;
  int left; /* nodes */
};

static const struct values anything = {-HUGE_VAL, HUGE_VAL};

static struct values values_of(struct look *l, int expr);

static struct values stage_values(struct look *l, int stage) {
  const struct program_tensor *t = &l->p->tensors.data[stage];
  if (t->is_input || t->dtype == PROGRAM_I32) return anything;
  struct values v = values_of(l, t->body);
  if (t->reducer == REDUCE_NONE || t->reducer == REDUCE_MAX) return v;
  if (t->reducer == REDUCE_MIN || t->reducer == REDUCE_MEAN) return v;
  return t->reducer == REDUCE_SUM && v.low >= 0 ? (struct values){0, HUGE_VAL} : anything;
}

static struct values product(struct look *l, const struct px_node *n) {
  struct values a = values_of(l, n->arg[0]);
  if (px_same(l->p, n->arg[0], n->arg[1])) return (struct values){0, HUGE_VAL};
  struct values b = values_of(l, n->arg[1]);
  if (a.low < 0 || b.low < 0) return anything;
  return (struct values){a.low * b.low, HUGE_VAL};
}

static struct values quotient(struct look *l, const struct px_node *n) {
  struct values a = values_of(l, n->arg[0]), b = values_of(l, n->arg[1]);
  return a.low >= 0 && b.low > 0 ? (struct values){0, HUGE_VAL} : anything;
}

static struct values root(struct values v) {
  double most = v.high < MOST ? v.high : MOST;
  return v.low >= 0 ? (struct values){sqrt(v.low), sqrt(most)} : anything;
}

static struct values values_of(struct look *l, int expr) {
  const struct px_node *n = &l->p->nodes.data[expr];
  struct values a, b;
  if (--l->left < 0 || n->sort != PX_VALUE) return anything;
  switch (n->op) {
    case PX_NUMBER: return (struct values){n->number, n->number};
    case PX_LOAD: return stage_values(l, n->tensor);
    case PX_MUL: return product(l, n);
    case PX_DIV: return quotient(l, n);
    case PX_EXP:
    case PX_ABS: return (struct values){0, HUGE_VAL};
    case PX_SQRT: return root(values_of(l, n->arg[0]));
    case PX_ADD:
      a = values_of(l, n->arg[0]);
      b = values_of(l, n->arg[1]);
      return (struct values){a.low + b.low, a.high + b.high};
    case PX_MAX:
      a = values_of(l, n->arg[0]);
      b = values_of(l, n->arg[1]);
      return (struct values){fmax(a.low, b.low), fmax(a.high, b.high)};
    default: return anything;
  }
}

static bool has_reciprocal(const struct program *p, int expr) {
  struct look l = {p, VISITED};
  struct values v = values_of(&l, expr);
  return v.low >= SMALLEST && v.high <= LARGEST && l.left >= 0;
}

/* The stage divides by it again and again. */
static bool is_same_often(const struct program *p, const struct program_tensor *t, int expr) {
  double times = 1;
  bool any = false;
  for (int i = 0; i < t->rank + t->reductions; i++) {
    bool depends = px_mentions(p, expr, i);
    any = any || depends;
    if (!depends) times *= (double)t->axes[i].size;
  }
  return any && times >= OFTEN;
}

/* The divisor of such a division; -1. */
static int find_divisor(const struct program *p, const struct program_tensor *t, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return -1;
  if (n->op == PX_DIV && is_same_often(p, t, n->arg[1]) && has_reciprocal(p, n->arg[1]))
    return n->arg[1];
  for (int i = 0; i < 3; i++) {
    int found = n->arg[i] >= 0 ? find_divisor(p, t, n->arg[i]) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

/* Divisions by the tensor become products. */
static void multiply(struct program *p, int expr, int tensor) {
  struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD) return;
  if (n->op == PX_DIV) {
    const struct px_node *by = &p->nodes.data[n->arg[1]];
    if (by->op == PX_LOAD && by->tensor == tensor) n->op = PX_MUL;
  }
  for (int i = 0; i < 3; i++)
    if (p->nodes.data[expr].arg[i] >= 0) multiply(p, p->nodes.data[expr].arg[i], tensor);
}

static bool is_divided_by(const struct program *p, int expr, int tensor, int *loads) {
  const struct px_node *n = &p->nodes.data[expr];
  bool only = true;
  for (int i = 0; i < 3; i++) {
    int arg = n->arg[i];
    if (arg < 0) continue;
    const struct px_node *below = &p->nodes.data[arg];
    bool load = below->op == PX_LOAD && below->tensor == tensor;
    *loads += load;
    only = only && (!load || (n->op == PX_DIV && i == 1)) && is_divided_by(p, arg, tensor, loads);
  }
  return only;
}

/* The program with the divisor as a stage, and that as its reciprocal; NULL where that cannot be. */
static struct program *with_reciprocal(const struct program *p, int stage, int divisor) {
  char name[PROGRAM_NAME];
  canvas_context ctx;
  struct program *out;
  int loads = 0;
  editor_name(p, p->tensors.data[stage].name, "_d", name);
  if (program_outline(&ctx, p, stage, divisor, name, &out) != CANVAS_OK) return NULL;
  int made = program_find(out, name), reader = program_find(out, p->tensors.data[stage].name);
  if (is_divided_by(out, out->tensors.data[reader].body, made, &loads) && loads) {
    multiply(out, out->tensors.data[reader].body, made);
    int one = px_number(out, 1);
    out->tensors.data[made].body = px_raw(out, PX_DIV, one, out->tensors.data[made].body, -1, 0, 0);
    if (program_verify(&ctx, out) == CANVAS_OK) return out;
  }
  program_free(out);
  return NULL;
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

/* ---- functions ---- */

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
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && has_function(p, n->arg[i])) return true;
  return false;
}

/* The largest part with a function in it that is the same often; none that a condition of indices guards; -1. */
static int find_same(const struct program *p, const struct program_tensor *t, int expr) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->sort != PX_VALUE || n->op == PX_LOAD || !has_function(p, expr)) return -1;
  if (is_same_often(p, t, expr)) return expr;
  if (n->op == PX_SELECT) return -1;
  for (int i = 0; i < 3; i++) {
    int found = n->arg[i] >= 0 ? find_same(p, t, n->arg[i]) : -1;
    if (found >= 0) return found;
  }
  return -1;
}

bool editor_once(struct editor *e) {
  const struct program *p = program_of(e);
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    char name[PROGRAM_NAME];
    canvas_context ctx;
    struct program *out;
    int same = t->is_input || t->dtype != PROGRAM_F32 ? -1 : find_same(p, t, t->body);
    if (same < 0) continue;
    editor_name(p, t->name, "_s", name);
    if (program_outline(&ctx, p, i, same, name, &out) != CANVAS_OK) continue;
    editor_take(e, out);
    return true;
  }
  return false;
}
