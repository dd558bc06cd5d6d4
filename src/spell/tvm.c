/* A program as Python in TVM's tensor expressions (te), which TVM compiles by itself.
 *
 *   in X f32 [n:1, c:8]                    X = te.placeholder((1, 8), "float32", name="X")
 *   Y[n:1] = X[n, c] * 2 // sum c:8        c = te.reduce_axis((0, 8), name="c")
 *                                          Y = te.compute(
 *                                              (1,),
 *                                              lambda n: te.sum(
 *                                                  X[n, c] * 2.0,
 *                                                  axis=[c],
 *                                              ),
 *                                              name="Y",
 *                                          )
 *
 * An element is computed in float64 if its stage or a tensor that it loads is, else in float32; loads
 * of other types and results are converted. A mean, and a reduction whose result is converted, take
 * a stage for the sums before their own, since te reduces at the top of an expression alone. A bare
 * number takes the type of the operand beside it; alone it is te.const. What te does not have is
 * defined above where it is used: expm1, log1p, prod, and largest and smallest, which are te.max and
 * te.min but for infinities: those of te begin at the least and the largest finite number.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program/scalar_ops.h"
#include "spell/spell.h"

enum { NAME = PROGRAM_NAME + 16 };

struct tvm {
  const struct program *p;
  const struct program_tensor *t; /* the stage under way */
  const char *type;               /* that it is computed in */
  bool infinite;                  /* whether infinities are among the numbers */
  char (*tensors)[NAME];          /* their names in Python, each once */
  char axes[PROGRAM_AXES][NAME];  /* those of the stage */
  struct buf *out;
};

static const char *type_name(enum program_dtype dtype) {
  static const char *const names[] = {"float32", "float64", "bfloat16", "int32"};
  return names[dtype];
}

/* -- names -- */

static bool is_python_word(const char *name) {
  static const char *const words[] = {
      "False", "None",     "True",  "and",    "as",      "assert",  "async",  "await",    "break",
      "class", "continue", "def",   "del",    "elif",    "else",    "except", "finally",  "for",
      "from",  "global",   "if",    "import", "in",      "is",      "lambda", "nonlocal", "not",
      "or",    "pass",     "raise", "return", "try",     "while",   "with",   "yield",    "te",
      "expm1", "log1p",    "prod",  "float",  "largest", "smallest"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(words[i], name)) return true;
  return false;
}

/* The name as Python takes it: letters, digits and _, no word of Python or of the text around it. */
static void python_name(const char *name, const char *more, char out[NAME]) {
  bool digit = *name >= '0' && *name <= '9';
  snprintf(out, NAME, "%s%s%s", digit ? "_" : "", name, more);
  for (char *c = out; *c; c++)
    if (!(*c == '_' || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
          (*c >= 'A' && *c <= 'Z')))
      *c = '_';
  if (is_python_word(out)) strcat(out, "_");
}

static bool is_among(const char *name, char (*names)[NAME], int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

/* The name, or with a number behind it the first that no tensor and none of `axes` axes of the stage
 * has. */
static void make_unique(struct tvm *w, int tensors, int axes, char name[NAME]) {
  char first[NAME];
  snprintf(first, NAME, "%.*s", PROGRAM_NAME, name);
  for (int n = 2; is_among(name, w->tensors, tensors) || is_among(name, w->axes, axes); n++)
    snprintf(name, NAME, "%.*s_%d", PROGRAM_NAME, first, n);
}

static void name_tensors(struct tvm *w) {
  for (int i = 0; i < w->p->tensors.count; i++) {
    python_name(w->p->tensors.data[i].name, "", w->tensors[i]);
    make_unique(w, i, 0, w->tensors[i]);
  }
}

/* Of the stage under way. An axis that is called as a tensor would hide it. */
static void name_axes(struct tvm *w) {
  int tensors = w->p->tensors.count;
  for (int i = 0; i < w->t->rank + w->t->reductions; i++) {
    const char *name = w->t->axes[i].name;
    python_name(name, "", w->axes[i]);
    if (is_among(w->axes[i], w->tensors, tensors)) python_name(name, "_axis", w->axes[i]);
    make_unique(w, tensors, i, w->axes[i]);
  }
}

/* -- expressions -- */

static void put(struct tvm *w, int expr, enum px_binding least);

static const struct px_node *node_at(const struct tvm *w, int expr) {
  return &w->p->nodes.data[expr];
}

static void put_number(struct tvm *w, double value, bool bare) {
  char text[32];
  px_number_text(value, text);
  if (!bare) buf_puts(w->out, "te.const(");
  if (isinf(value))
    buf_puts(w->out, value > 0 ? "float(\"inf\")" : "-float(\"inf\")");
  else
    buf_printf(w->out, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
  if (!bare) buf_printf(w->out, ", \"%s\")", w->type);
}

/* A number beside a value that has a type. */
static void put_beside(struct tvm *w, int expr, int other, enum px_binding least) {
  const struct px_node *n = node_at(w, expr);
  bool bare = n->op == PX_NUMBER && node_at(w, other)->op != PX_NUMBER;
  if (bare && n->number < 0) buf_puts(w->out, "(");
  if (bare)
    put_number(w, n->number, true);
  else
    put(w, expr, least);
  if (bare && n->number < 0) buf_puts(w->out, ")");
}

static void put_load(struct tvm *w, const struct px_node *n) {
  const struct program_tensor *t = &w->p->tensors.data[n->tensor];
  buf_printf(w->out, "%s[", w->tensors[n->tensor]);
  for (int i = 0; i < t->rank; i++) {
    if (i) buf_puts(w->out, ", ");
    put(w, w->p->indices.data[n->first + i], BIND_SELECT);
  }
  buf_puts(w->out, t->rank ? "]" : "()]");
  if (t->dtype != PROGRAM_I32 && strcmp(type_name(t->dtype), w->type))
    buf_printf(w->out, ".astype(\"%s\")", w->type);
}

static void put_binary(struct tvm *w, const struct px_node *n, enum px_binding binding) {
  bool compares = binding == BIND_COMPARE;
  bool index = node_at(w, n->arg[0])->sort == PX_INDEX;
  const char *text = n->op == PX_DIV && index ? "//" : px_op_text(n->op);
  put_beside(w, n->arg[0], n->arg[1], compares ? BIND_ADD : binding);
  buf_printf(w->out, " %s ", text);
  put_beside(w, n->arg[1], n->arg[0], binding + 1);
}

/* te.max(a, k) would reduce over the axis k: a sum is no axis. */
static void put_argument(struct tvm *w, int expr) {
  const struct px_node *n = node_at(w, expr);
  put(w, expr, BIND_SELECT);
  if (n->op == PX_AXIS && n->integer >= w->t->rank) buf_puts(w->out, " + 0");
}

/* The conditions of a && b && c: te.all takes any number. */
static void put_conditions(struct tvm *w, const struct px_node *n, enum px_op op) {
  for (int i = 0; i < 2; i++) {
    const struct px_node *side = node_at(w, n->arg[i]);
    if (i) buf_puts(w->out, ", ");
    if (side->op == op)
      put_conditions(w, side, op);
    else
      put(w, n->arg[i], BIND_SELECT);
  }
}

static void put_call(struct tvm *w, const struct px_node *n, const char *function) {
  buf_printf(w->out, "%s(", function);
  for (int i = 0; i < scalar_ops[n->op].arity && n->op != PX_AND && n->op != PX_OR; i++) {
    if (i) buf_puts(w->out, ", ");
    put_argument(w, n->arg[i]);
  }
  if (n->op == PX_AND || n->op == PX_OR) put_conditions(w, n, n->op);
  buf_puts(w->out, ")");
}

/* An index as a value: no number has a method astype. */
static void put_real(struct tvm *w, const struct px_node *n) {
  bool number = node_at(w, n->arg[0])->op == PX_INT;
  if (number) buf_puts(w->out, "te.const(");
  put(w, n->arg[0], number ? BIND_SELECT : BIND_CALL);
  buf_printf(w->out, number ? ", \"%s\")" : ".astype(\"%s\")", w->type);
}

static const char *function_of(enum px_op op) {
  switch (op) {
    case PX_EXP: return "te.exp";
    case PX_LOG: return "te.log";
    case PX_EXPM1: return "expm1";
    case PX_LOG1P: return "log1p";
    case PX_SIN: return "te.sin";
    case PX_COS: return "te.cos";
    case PX_TANH: return "te.tanh";
    case PX_SQRT: return "te.sqrt";
    case PX_ERF: return "te.erf";
    case PX_ABS: return "te.abs";
    case PX_FLOOR: return "te.floor";
    case PX_POW: return "te.power";
    case PX_MIN: return "te.min";
    case PX_MAX: return "te.max";
    case PX_SELECT: return "te.if_then_else";
    case PX_AND: return "te.all";
    case PX_OR: return "te.any";
    default: return NULL;
  }
}

static void put_node(struct tvm *w, const struct px_node *n, enum px_binding binding) {
  if (function_of(n->op)) {
    put_call(w, n, function_of(n->op));
    return;
  }
  switch (n->op) {
    case PX_INT: buf_printf(w->out, "%lld", (long long)n->integer); break;
    case PX_NUMBER: put_number(w, n->number, false); break;
    case PX_BOOL: buf_printf(w->out, "te.const(%d, \"bool\")", (int)n->integer); break;
    case PX_LOAD: put_load(w, n); break;
    case PX_REAL: put_real(w, n); break;
    case PX_AXIS: buf_puts(w->out, w->axes[n->integer]); break;
    case PX_NEG:
      buf_puts(w->out, "-");
      put(w, n->arg[0], BIND_SIGN);
      break;
    case PX_NOT:
      buf_puts(w->out, "te.if_then_else(");
      put(w, n->arg[0], BIND_SELECT);
      buf_puts(w->out, ", te.const(0, \"bool\"), te.const(1, \"bool\"))");
      break;
    default: put_binary(w, n, binding);
  }
}

/* How tightly the Python of a node binds: what became a call is an atom. */
static enum px_binding binding_of(const struct px_node *n) {
  if (function_of(n->op) || n->op == PX_NOT || n->op == PX_REAL) return BIND_CALL;
  if (n->op == PX_INT && n->integer < 0) return BIND_SIGN;
  return scalar_ops[n->op].binding;
}

static void put(struct tvm *w, int expr, enum px_binding least) {
  const struct px_node *n = node_at(w, expr);
  enum px_binding binding = binding_of(n);
  if (binding < least) buf_puts(w->out, "(");
  put_node(w, n, binding);
  if (binding < least) buf_puts(w->out, ")");
}

/* -- stages -- */

static void put_shape(struct tvm *w) {
  buf_puts(w->out, "(");
  for (int i = 0; i < w->t->rank; i++)
    buf_printf(w->out, i ? ", %lld" : "%lld", (long long)w->t->axes[i].size);
  buf_puts(w->out, w->t->rank == 1 ? ",)" : ")");
}

static void put_axes(struct tvm *w, int first, int end) {
  for (int i = first; i < end; i++) buf_printf(w->out, i > first ? ", %s" : "%s", w->axes[i]);
}

static bool loads_type(const struct tvm *w, int expr, enum program_dtype dtype) {
  const struct px_node *n = node_at(w, expr);
  bool found = n->op == PX_LOAD && w->p->tensors.data[n->tensor].dtype == dtype;
  for (int i = 0; i < PX_ARGS && !found && scalar_ops[n->op].arity > i; i++)
    found = loads_type(w, n->arg[i], dtype);
  return found;
}

/* `    NAME = te.compute(SHAPE, lambda AXES: `, and what closes it. */
static void begin_compute(struct tvm *w, const char *name) {
  buf_printf(w->out, "    %s = te.compute(\n        ", name);
  put_shape(w);
  buf_puts(w->out, ",\n        lambda");
  if (w->t->rank) buf_puts(w->out, " ");
  put_axes(w, 0, w->t->rank);
  buf_puts(w->out, ": ");
}

static void end_compute(struct tvm *w, const char *name) {
  buf_printf(w->out, ",\n        name=\"%s\",\n    )\n", name);
}

static void put_reduction(struct tvm *w) {
  static const char *const finite[] = {"", "te.sum", "te.max", "te.sum", "te.min", "prod"};
  static const char *const infinite[] = {"", "te.sum", "largest", "te.sum", "smallest", "prod"};
  const char *const *reducers = w->infinite ? infinite : finite;
  buf_printf(w->out, "%s(\n            ", reducers[w->t->reducer]);
  put(w, w->t->body, BIND_SELECT);
  buf_puts(w->out, ",\n            axis=[");
  put_axes(w, w->t->rank, w->t->rank + w->t->reductions);
  buf_puts(w->out, "],\n        )");
}

/* What a mean divides by. */
static double elements_of(const struct program_tensor *t) {
  double count = 1;
  for (int i = t->rank; i < t->rank + t->reductions; i++) count *= (double)t->axes[i].size;
  return count;
}

/* The sums of a mean, or of a reduction in another type, as a stage of their own; its element at the
 * axes of the stage, finished. */
static void put_from_sums(struct tvm *w, const char *name) {
  char sums[NAME];
  python_name(name, "_sums", sums);
  make_unique(w, w->p->tensors.count, w->t->rank + w->t->reductions, sums);
  begin_compute(w, sums);
  put_reduction(w);
  end_compute(w, sums);
  begin_compute(w, name);
  buf_printf(w->out, "%s[", sums);
  put_axes(w, 0, w->t->rank);
  buf_puts(w->out, w->t->rank ? "]" : "()]");
  if (w->t->reducer == REDUCE_MEAN) {
    buf_puts(w->out, " / ");
    put_number(w, elements_of(w->t), true);
  }
}

static void put_stage(struct tvm *w, int tensor) {
  const struct program_tensor *t = w->t = &w->p->tensors.data[tensor];
  bool wide = t->dtype == PROGRAM_F64 || loads_type(w, t->body, PROGRAM_F64);
  const char *name = w->tensors[tensor];
  name_axes(w);
  w->type = wide ? "float64" : "float32";
  bool converted = strcmp(w->type, type_name(t->dtype)) != 0;
  bool sums = t->reductions && (converted || t->reducer == REDUCE_MEAN);
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    buf_printf(w->out, "    %s = te.reduce_axis((0, %lld), name=\"%s\")\n", w->axes[i],
               (long long)t->axes[i].size, w->axes[i]);
  if (!sums) begin_compute(w, name);
  if (converted && !sums) buf_puts(w->out, "(");
  if (sums)
    put_from_sums(w, name);
  else if (t->reductions)
    put_reduction(w);
  else
    put(w, t->body, BIND_SELECT);
  if (converted) buf_printf(w->out, "%s.astype(\"%s\")", sums ? "" : ")", type_name(t->dtype));
  end_compute(w, name);
}

static void put_input(struct tvm *w, int tensor) {
  const char *name = w->tensors[tensor];
  w->t = &w->p->tensors.data[tensor];
  buf_printf(w->out, "    %s = te.placeholder(", name);
  put_shape(w);
  buf_printf(w->out, ", \"%s\", name=\"%s\")\n", type_name(w->t->dtype), name);
}

/* -- the text -- */

static void put_list(struct tvm *w, const int *tensors, int count) {
  buf_puts(w->out, "[");
  for (int i = 0; i < count; i++) buf_printf(w->out, i ? ", %s" : "%s", w->tensors[tensors[i]]);
  buf_puts(w->out, "]");
}

static void put_reducer(struct tvm *w, enum program_reducer reducer, const char *name,
                        const char *function, const char *start) {
  for (int i = 0; i < w->p->tensors.count; i++)
    if (w->p->tensors.data[i].reducer == reducer) {
      buf_printf(w->out,
                 "\n%s = te.comm_reducer(\n    lambda a, b: %s,\n    lambda dtype: te.const(%s, "
                 "dtype),\n    name=\"%s\",\n)\n",
                 name, function, start, name);
      return;
    }
}

static void put_functions(struct tvm *w) {
  bool expm1 = false, log1p = false;
  for (int i = 0; i < w->p->nodes.count; i++) {
    const struct px_node *n = &w->p->nodes.data[i];
    expm1 |= n->op == PX_EXPM1;
    log1p |= n->op == PX_LOG1P;
    w->infinite |= n->op == PX_NUMBER && isinf(n->number);
  }
  put_reducer(w, REDUCE_PROD, "prod", "a * b", "1");
  if (w->infinite) {
    put_reducer(w, REDUCE_MAX, "largest", "te.max(a, b)", "-float(\"inf\")");
    put_reducer(w, REDUCE_MIN, "smallest", "te.min(a, b)", "float(\"inf\")");
  }
  if (expm1)
    buf_puts(w->out, "\n\ndef expm1(x):\n    return te.tanh(0.5 * x) * (te.exp(x) + 1.0)\n");
  if (log1p)
    buf_puts(w->out,
             "\n\ndef log1p(x):\n    near = 1.0 + x  # what it rounds off is put back\n"
             "    return te.if_then_else(\n"
             "        te.abs(x) < 1e6, te.log(near) + (x - (near - 1.0)) / near, te.log(near)\n"
             "    )\n");
}

static canvas_status check(canvas_context *ctx, const struct program *p) {
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    for (int j = t->rank; j < t->rank + t->reductions; j++)
      if (t->axes[j].low >= 0)
        return fail(
            ctx, CANVAS_BAD_INPUT,
            "program '%s': stage '%s' reduces over '%s' between bounds that depend on other "
            "axes or on data, which TVM's tensor expressions do not have",
            p->name, t->name, t->axes[j].name);
  }
  return CANVAS_OK;
}

canvas_status spell_tvm(canvas_context *ctx, const struct program *p, const char *called,
                        struct buf *out) {
  struct tvm w = {.p = p, .out = out};
  char name[NAME];
  TRY(check(ctx, p));
  w.tensors = mem_alloc((size_t)p->tensors.count * sizeof *w.tensors);
  name_tensors(&w);
  python_name(called, "", name);
  buf_printf(out,
             "# Program '%s' in TVM's tensor expressions, written by canvas " CANVAS_VERSION
             ".\n"
             "from tvm import te\n",
             p->name);
  put_functions(&w);
  buf_printf(
      out,
      "\n\ndef %s():\n    \"\"\"Inputs and outputs; te.create_prim_func([*inputs, *outputs]) "
      "makes a function of them.\"\"\"\n",
      name);
  for (int i = 0; i < p->tensors.count; i++) {
    if (p->tensors.data[i].is_input)
      put_input(&w, i);
    else
      put_stage(&w, i);
  }
  buf_puts(out, "    return ");
  put_list(&w, p->inputs.data, p->inputs.count);
  buf_puts(out, ", ");
  put_list(&w, p->outputs.data, p->outputs.count);
  buf_puts(out, "\n");
  mem_free(w.tensors);
  return CANVAS_OK;
}
