/* Reverse mode over a program's expressions: see gradients.h.
 *
 *   trace      once: all operations of all elements in a row, on places of one array. Which there are
 *              depends on indices alone, not on values
 *   forward    every element of every stage: its value, and its derivative along a random direction
 *              of the image; an operation whose operands depend on weights goes onto the tape
 *   backward   from a random sum of the outputs to the weights
 *
 * A sum of terms that cancel is zero up to rounding: each derivative comes with the sum of the
 * magnitudes of its terms, and counts as zero where it is a billionth of that.
 */
#include "lower/gradients.h"

#include <math.h>

#include "base/random.h"

static const double cancelled = 1e-9;
static const double pi = 3.14159265358979323846;

/* A derivative and the sum of the magnitudes of its terms. */
struct slope {
  double of, size;
};

struct number {
  double value;
  struct slope moved; /* along the direction of the image */
  int id;             /* on the tape; -1: depends on no weight */
};

struct entry {
  int from[2]; /* -1: none */
  double slope[2];
  bool image; /* a product of a weight and what depends on the image */
};

/* An operation of the trace: what stands at `out` becomes a op b. */
enum { COPY = -1, MEAN = -2 }; /* beside those of expressions; of MEAN b is how many numbers */
struct operation {
  int op, a, b, out;
};

struct gradients {
  const struct program *p;
  struct number *numbers; /* of all tensors, then constants and temporaries */
  int *first;             /* by tensor: where its elements stand among them */
  int count, capacity;    /* of numbers */
  struct {
    VEC(int);
  } temporaries; /* places of numbers that one term of a sum needs */
  int used;      /* of these, by the term under way */
  struct {
    VEC(struct operation);
  } trace;
  int weights; /* their numbers stand first on the tape */
  bool smooth;
  int64_t at[PROGRAM_AXES];
  struct {
    VEC(struct entry);
  } tape;
  struct slope *back; /* by entry: of the output */
  int back_capacity;
  bool *image;       /* by number of a weight: what it multiplies depends on the image */
  const bool *apart; /* by weight: it need not */
};

static bool is_zero(struct slope s) {
  return fabs(s.of) <= cancelled * s.size;
}

static struct slope slope_sum(struct slope a, double times, struct slope b) {
  return (struct slope){a.of + times * b.of, a.size + fabs(times) * b.size};
}

/* -- operations -- */

static struct number constant(double value) {
  return (struct number){value, {0, 0}, -1};
}

/* What has these derivatives by its operands. */
static struct number result(struct gradients *g, double value, const struct number *a, double by_a,
                            const struct number *b, double by_b) {
  struct number out = {value, slope_sum((struct slope){0, 0}, by_a, a->moved), -1};
  out.moved = slope_sum(out.moved, by_b, b->moved);
  if (a->id < 0 && b->id < 0) return out;
  out.id = g->tape.count;
  VEC_PUSH(&g->tape, ((struct entry){{a->id, b->id}, {by_a, by_b}, false}));
  return out;
}

static bool is_weight(const struct gradients *g, const struct number *n) {
  return n->id >= 0 && n->id < g->weights;
}

static struct number product(struct gradients *g, const struct number *a, const struct number *b) {
  struct number out = result(g, a->value * b->value, a, b->value, b, a->value);
  bool image = (is_weight(g, a) && !is_zero(b->moved)) || (is_weight(g, b) && !is_zero(a->moved));
  if (image) g->tape.data[out.id].image = true;
  return out;
}

/* sign 1: the larger; -1: the smaller. */
static struct number extreme(struct gradients *g, const struct number *a, const struct number *b,
                             int sign) {
  double apart = a->value - b->value;
  if (g->smooth && fabs(apart) <= 1e6) {
    double root = sqrt(apart * apart + 1), share = (1 + sign * apart / root) / 2;
    return result(g, (a->value + b->value + sign * root) / 2, a, share, b, 1 - share);
  }
  double share = apart == 0 ? 0.5 : sign * apart > 0;
  return result(g, share > 0.5 ? a->value : b->value, a, share, b, 1 - share);
}

/* 1 + x + x*x/2 above 0, one over that of -x below: positive, rising and 1 at 0, as exp is. */
static double exponential(double x, double *slope) {
  double value = 1 + fabs(x) + x * x / 2;
  *slope = x < 0 ? (1 - x) / (value * value) : 1 + x;
  return x < 0 ? 1 / value : value;
}

/* Parabolas of the period of sin, with its zeros and its extremes. */
static double wave(double x, double *slope) {
  double r = x - 2 * pi * floor(x / (2 * pi) + 0.5);
  *slope = 4 / (pi * pi) * (pi - 2 * fabs(r));
  return 4 / (pi * pi) * r * (pi - fabs(r));
}

/* A function that none of these is: its operand. No primitive has one. */
static double function(enum px_op op, double x, double *slope) {
  double root;
  *slope = 1;
  switch (op) {
    case PX_EXP: return exponential(x, slope);
    case PX_SIN: return wave(x, slope);
    case PX_TANH:
    case PX_ERF: *slope = 1 / ((1 + fabs(x)) * (1 + fabs(x))); return x / (1 + fabs(x));
    case PX_SQRT:
      root = x > 0 ? sqrt(x) : 0;
      *slope = root > 0 ? 0.5 / root : 0;
      return root;
    case PX_ABS: *slope = (x > 0) - (x < 0); return fabs(x);
    default: return x;
  }
}

/* -- expressions -- */

static int64_t index_of(const struct gradients *g, int expr);

static bool holds(const struct gradients *g, int expr) {
  const struct px_node *n = &g->p->nodes.data[expr];
  int64_t a, b;
  switch (n->op) {
    case PX_BOOL: return n->integer;
    case PX_AND: return holds(g, n->arg[0]) && holds(g, n->arg[1]);
    case PX_OR: return holds(g, n->arg[0]) || holds(g, n->arg[1]);
    case PX_NOT: return !holds(g, n->arg[0]);
    default: a = index_of(g, n->arg[0]), b = index_of(g, n->arg[1]);
  }
  switch (n->op) {
    case PX_LT: return a < b;
    case PX_LE: return a <= b;
    case PX_GT: return a > b;
    case PX_GE: return a >= b;
    case PX_EQ: return a == b;
    default: return a != b;
  }
}

static int64_t index_of(const struct gradients *g, int expr) {
  const struct px_node *n = &g->p->nodes.data[expr];
  if (n->op == PX_INT) return n->integer;
  if (n->op == PX_AXIS) return g->at[n->integer];
  if (n->op == PX_SELECT) return index_of(g, n->arg[holds(g, n->arg[0]) ? 1 : 2]);
  int64_t a = index_of(g, n->arg[0]), b = n->arg[1] >= 0 ? index_of(g, n->arg[1]) : 1;
  switch (n->op) {
    case PX_ADD: return a + b;
    case PX_SUB: return a - b;
    case PX_MUL: return a * b;
    case PX_DIV: return a / b - (a % b < 0);
    case PX_MOD: return a % b + (a % b < 0 ? b : 0);
    case PX_MIN: return a < b ? a : b;
    case PX_MAX: return a > b ? a : b;
    default: return -a;
  }
}

static int load(const struct gradients *g, const struct px_node *n) {
  const struct program_tensor *t = &g->p->tensors.data[n->tensor];
  int64_t flat = 0;
  for (int i = 0; i < t->rank; i++)
    flat = flat * t->axes[i].size + index_of(g, g->p->indices.data[n->first + i]);
  return g->first[n->tensor] + (int)flat;
}

static struct number combine(struct gradients *g, enum px_op op, const struct number *a,
                             const struct number *b) {
  double value;
  switch (op) {
    case PX_ADD: return result(g, a->value + b->value, a, 1, b, 1);
    case PX_SUB: return result(g, a->value - b->value, a, 1, b, -1);
    case PX_DIV:
      value = a->value / b->value;
      return result(g, value, a, 1 / b->value, b, -value / b->value);
    case PX_MIN: return extreme(g, a, b, -1);
    case PX_MAX: return extreme(g, a, b, 1);
    default: return product(g, a, b);
  }
}

/* A place for one more number. */
static int new_place(struct gradients *g, struct number n) {
  if (g->count == g->capacity) {
    g->capacity = 2 * g->capacity + 64;
    g->numbers = mem_grow(g->numbers, (size_t)g->capacity * sizeof *g->numbers);
  }
  g->numbers[g->count] = n;
  return g->count++;
}

static int new_temporary(struct gradients *g) {
  if (g->used == g->temporaries.count) VEC_PUSH(&g->temporaries, new_place(g, constant(0)));
  return g->temporaries.data[g->used++];
}

static int add_operation(struct gradients *g, int op, int a, int b, int out) {
  struct operation o = {op, a, b, out};
  VEC_PUSH(&g->trace, o);
  return out;
}

/* Where the value of an expression stands. */
static int trace_of(struct gradients *g, int expr) {
  const struct px_node *n = &g->p->nodes.data[expr];
  switch (n->op) {
    case PX_NUMBER: return new_place(g, constant(n->number));
    case PX_LOAD: return load(g, n);
    case PX_REAL: return new_place(g, constant((double)index_of(g, n->arg[0])));
    case PX_SELECT: return trace_of(g, n->arg[holds(g, n->arg[0]) ? 1 : 2]);
    default: break;
  }
  int a = trace_of(g, n->arg[0]), b = n->arg[1] < 0 ? -1 : trace_of(g, n->arg[1]);
  return add_operation(g, (int)n->op, a, b, new_temporary(g));
}

static struct number operate(struct gradients *g, const struct operation *o) {
  const struct number *a = &g->numbers[o->a], none = constant(0);
  double slope, value;
  switch (o->op) {
    case COPY: return *a;
    case MEAN: return result(g, a->value / o->b, a, 1.0 / o->b, &none, 0);
    case PX_NEG: return result(g, -a->value, a, -1, &none, 0);
    default: break;
  }
  if (o->b >= 0) return combine(g, (enum px_op)o->op, a, &g->numbers[o->b]);
  value = function((enum px_op)o->op, a->value, &slope);
  return result(g, value, a, slope, &none, 0);
}

/* -- stages -- */

static bool next(const struct program_tensor *t, int first, int end, int64_t at[PROGRAM_AXES]) {
  for (int i = end - 1; i >= first; i--) {
    if (++at[i] < t->axes[i].size) return true;
    at[i] = 0;
  }
  return false;
}

static enum px_op reducer_op(enum program_reducer reducer) {
  switch (reducer) {
    case REDUCE_MAX: return PX_MAX;
    case REDUCE_MIN: return PX_MIN;
    case REDUCE_PROD: return PX_MUL;
    default: return PX_ADD;
  }
}

static void trace_element(struct gradients *g, const struct program_tensor *t, int out) {
  int end = t->rank + t->reductions, points = 1;
  for (int i = t->rank; i < end; i++) g->at[i] = 0;
  g->used = 0;
  add_operation(g, COPY, trace_of(g, t->body), -1, out);
  while (next(t, t->rank, end, g->at)) {
    g->used = 0;
    add_operation(g, (int)reducer_op(t->reducer), out, trace_of(g, t->body), out);
    points++;
  }
  if (t->reducer == REDUCE_MEAN) add_operation(g, MEAN, out, points, out);
}

static void trace_stage(struct gradients *g, int tensor) {
  const struct program_tensor *t = &g->p->tensors.data[tensor];
  int out = g->first[tensor];
  for (int i = 0; i < t->rank; i++) g->at[i] = 0;
  do trace_element(g, t, out++);
  while (next(t, 0, t->rank, g->at));
}

static void forward(struct gradients *g) {
  for (int i = 0; i < g->trace.count; i++) {
    const struct operation *o = &g->trace.data[i];
    g->numbers[o->out] = operate(g, o);
  }
}

/* Uniform in -1..1. */
static double any(struct random *r) {
  return (double)random_u32(r) / 2147483648.0 - 1;
}

/* The image has a direction; weights are divided by the root of their fan-in, of another size in each
 * pass, so that no function is saturated in all of them. */
static void fill(struct gradients *g, struct random *r, uint64_t index) {
  const struct program *p = g->p;
  g->tape.count = 0;
  for (int i = 0; i < p->inputs.count; i++) {
    int tensor = p->inputs.data[i];
    int64_t count = program_elements(p, tensor);
    int64_t each = count / p->tensors.data[tensor].axes[0].size;
    double fan_in = (double)each;
    double size = (double)(1 << index % 4) / sqrt(fan_in);
    for (int64_t j = 0; j < count; j++) {
      struct number *n = &g->numbers[g->first[tensor] + (int)j];
      *n = constant(any(r) * (i ? size : 2));
      if (!i) n->moved = (struct slope){any(r), 1};
      if (!i) continue;
      n->id = g->tape.count;
      VEC_PUSH(&g->tape, ((struct entry){{-1, -1}, {0, 0}, false}));
    }
  }
}

static void open_back(struct gradients *g) {
  if (g->tape.count > g->back_capacity) {
    g->back_capacity = g->tape.capacity;
    g->back = mem_grow(g->back, (size_t)g->back_capacity * sizeof *g->back);
  }
  for (int i = 0; i < g->tape.count; i++) g->back[i] = (struct slope){0, 0};
  for (int w = 1, i = 0; w < g->p->inputs.count; w++)
    for (int64_t left = program_elements(g->p, g->p->inputs.data[w]); left > 0; left--)
      g->image[i++] = g->apart && g->apart[w - 1];
}

static void open_output(struct gradients *g, struct random *r) {
  int output = g->p->outputs.data[0];
  int64_t count = program_elements(g->p, output);
  for (int64_t i = 0; i < count; i++) {
    double share = 1.5 + any(r);
    int id = g->numbers[g->first[output] + (int)i].id;
    if (id >= 0) g->back[id] = slope_sum(g->back[id], share, (struct slope){1, 1});
  }
}

static void backward(struct gradients *g, bool *matters) {
  for (int i = g->tape.count - 1; i >= g->weights; i--) {
    const struct entry *e = &g->tape.data[i];
    for (int j = 0; j < 2 && !is_zero(g->back[i]); j++) {
      int from = e->from[j];
      if (from < 0) continue;
      g->back[from] = slope_sum(g->back[from], e->slope[j], g->back[i]);
      if (from < g->weights) g->image[from] |= e->image;
    }
  }
  for (int i = 0; i < g->weights; i++) matters[i] |= g->image[i] && !is_zero(g->back[i]);
}

void gradients_pass(struct gradients *g, uint64_t index, bool smooth, bool *matters) {
  struct random r;
  random_open(&r, smooth, RANDOM_IDLE, index);
  g->smooth = smooth;
  fill(g, &r, index);
  forward(g);
  open_back(g);
  open_output(g, &r);
  backward(g, matters);
}

struct gradients *gradients_new(const struct program *p, const bool *apart) {
  struct gradients *g = mem_alloc(sizeof *g);
  g->p = p;
  g->apart = apart;
  g->first = mem_alloc((size_t)p->tensors.count * sizeof *g->first);
  for (int i = 0; i < p->tensors.count; i++) {
    g->first[i] = g->count;
    g->count += (int)program_elements(p, i);
  }
  g->capacity = g->count;
  g->numbers = mem_alloc((size_t)g->capacity * sizeof *g->numbers);
  for (int i = 0; i < p->tensors.count; i++)
    if (!p->tensors.data[i].is_input) trace_stage(g, i);
  for (int i = 1; i < p->inputs.count; i++)
    g->weights += (int)program_elements(p, p->inputs.data[i]);
  g->image = mem_alloc((size_t)g->weights * sizeof *g->image + 1);
  return g;
}

void gradients_free(struct gradients *g) {
  mem_free(g->numbers);
  mem_free(g->first);
  mem_free(g->trace.data);
  mem_free(g->temporaries.data);
  mem_free(g->image);
  mem_free(g->back);
  mem_free(g->tape.data);
  mem_free(g);
}

int gradients_operations(const struct gradients *g) {
  return g->trace.count;
}

int gradients_numbers(const struct gradients *g) {
  return g->weights;
}
