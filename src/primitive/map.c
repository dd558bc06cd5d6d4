/* element-wise functions (paper Table 1), in forms whose value and gradient are finite in fp32 for
 * |x| <= 1e4, gradient at 0 included. The formula stands in the primitive's row; `operations` are
 * the published system's counts.
 */
#include <assert.h>
#include <string.h>

#include "primitive/formula.h"
#include "primitive/lowering.h"
#include "primitive/spelling.h"

static int relu(struct program *p, int a) {
  return px_max(p, a, px_number(p, 0));
}

static int gelu(struct program *p, int a) {
  int erf = px_call(p, PX_ERF, px_div(p, a, px_number(p, 1.4142135623730951)));
  return px_mul(p, px_mul(p, a, px_number(p, 0.5)), px_add(p, px_number(p, 1), erf));
}

static int sigmoid(struct program *p, int a) {
  int e = px_call(p, PX_EXP, px_neg(p, a));
  return px_div(p, px_number(p, 1), px_add(p, px_number(p, 1), e));
}

static int tanh_(struct program *p, int a) {
  return px_call(p, PX_TANH, a);
}

static int abs_(struct program *p, int a) {
  return px_call(p, PX_ABS, a);
}

static int exp_(struct program *p, int a) {
  return px_call(p, PX_EXP, px_min(p, a, px_number(p, 4)));
}

static int sin_(struct program *p, int a) {
  return px_call(p, PX_SIN, px_mul(p, a, px_number(p, 1.5707963267948966)));
}

static int sqrt_(struct program *p, int a) {
  int inside = px_add(p, px_call(p, PX_ABS, a), px_number(p, 0.0001));
  return px_sub(p, px_call(p, PX_SQRT, inside), px_number(p, 0.01));
}

static int sqr(struct program *p, int a) {
  return px_mul(p, a, a);
}

/* One line per function; the PyTorch spelling has %s for the input, the formula %. */
static const struct function {
  enum primitive op;
  int operations;
  int (*value)(struct program *p, int a);
  const char *torch, *formula;
} functions[] = {
    {PRIMITIVE_RELU, 1, relu, "F.relu(%s)", "max(%, 0)"},
    {PRIMITIVE_GELU, 4, gelu, "F.gelu(%s)", "1/2·%·(1 + erf(%/√(2)))"},
    {PRIMITIVE_SIGMOID, 3, sigmoid, "torch.sigmoid(%s)", "1/(1 + exp(-%))"},
    {PRIMITIVE_TANH, 5, tanh_, "torch.tanh(%s)", "tanh(%)"},
    {PRIMITIVE_ABS, 1, abs_, "torch.abs(%s)", "|%|"},
    {PRIMITIVE_NEG, 1, px_neg, "-%s", "-%"},
    {PRIMITIVE_EXP, 1, exp_, "torch.exp(torch.clamp(%s, max=4.0))", "exp(min(%, 4))"},
    {PRIMITIVE_SIN, 1, sin_, "torch.sin(%s * 1.5707963267948966)", "sin(π/2·%)"},
    {PRIMITIVE_SQRT, 1, sqrt_, "torch.sqrt(torch.abs(%s) + 0.0001) - 0.01",
     "√(|%| + 1/10000) - 1/100"},
    {PRIMITIVE_SQR, 1, sqr, "torch.square(%s)", "%²"},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static const struct function *function_of(enum primitive op) {
  for (int i = 0; i < FUNCTIONS; i++)
    if (functions[i].op == op) return &functions[i];
  assert(!"a row of the family map has no function");
  return NULL;
}

static const char *shape(const struct kernel *k, const struct node *n, struct shape *out) {
  *out = *node_input(k, n, 0);
  return NULL;
}

/* None directly after an unfold: there it would be computed K*K times. */
static int choices(const struct kernel *k, int a, int b, struct candidate *out) {
  (void)b;
  if (k->nodes[a].op == PRIMITIVE_UNFOLD) return 0;
  for (int i = 0; i < FUNCTIONS; i++)
    out[i] =
        (struct candidate){.op = functions[i].op, .in = {a, -1}, .attrs.dim = dim_one(), .x = -1};
  return FUNCTIONS;
}

static bool work(const struct kernel *k, const struct node *n, const struct sizes *s,
                 struct work *w) {
  (void)k;
  int64_t elements;
  return shape_elements(&n->shape, s, &elements) &&
         !__builtin_mul_overflow(elements, function_of(n->op)->operations, &w->elementwise);
}

static void lower(struct lowering *l, int node) {
  const struct node *n = &l->k->nodes[node];
  struct place at;
  int stage = lowering_stage(l, node, "", &n->shape, &at);
  int a = lowering_load(l, l->tensor[n->in[0]], &at, n->shape.count);
  program_define(l->p, stage, function_of(n->op)->value(l->p, a));
  l->tensor[node] = stage;
}

static void torch(struct spelling *s, int node) {
  const struct node *n = &s->k->nodes[node];
  const char *a = s->name[n->in[0]], *text = function_of(n->op)->torch, *at = strstr(text, "%s");
  assert(at);
  spelling_line(s, "%s = %.*s%s%s", s->name[node], (int)(at - text), text, a, at + 2);
}

/* The element that it reads stands for each % of the text. */
static void formula(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  struct spot at;
  formula_element(f, &n->shape, &at);
  const char *a = formula_read(f, n->in[0], &at), *value = "";
  const char *text = function_of(n->op)->formula, *next;
  for (; (next = strchr(text, '%')); text = next + 1)
    value = formula_text(f, "%s%.*s%s", value, (int)(next - text), text, a);
  formula_line(f, node, &at, formula_text(f, "%s%s", value, text));
}

const struct family family_map = {.name = "element-wise",
                                  .shape = shape,
                                  .choices = choices,
                                  .work = work,
                                  .lower = lower,
                                  .torch = torch,
                                  .formula = formula};
