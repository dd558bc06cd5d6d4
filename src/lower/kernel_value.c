/* Evaluation over a field: see kernel_value.h.
 *
 *   bindings   two, with other sizes of everything; free sizes differ from C, G and each other
 *   elements   of stages in the order of the program, whole tensors, a few images at once
 *   weights    filled when the stage that reads them is next, as the contracted tensor is known
 */
#include "lower/kernel_value.h"

#include <math.h>
#include <stdio.h>

#include "base/saturating.h"
#include "lower/lower.h"

/* Every image decides once more which of two scalars is larger. */
enum { IMAGES = 8, CHANNELS_TRIES = 24 };
#define ELEMENTS_MOST (INT64_C(1) << 17)
#define PRIME         ((UINT64_C(1) << 61) - 1)

__extension__ typedef unsigned __int128 wide;

/* -- the field -- */

static uint64_t reduced(uint64_t a) {
  a = (a & PRIME) + (a >> 61);
  return a >= PRIME ? a - PRIME : a;
}

static uint64_t plus(uint64_t a, uint64_t b) {
  return reduced(a + b);
}

static uint64_t negative(uint64_t a) {
  return a ? PRIME - a : 0;
}

static uint64_t times(uint64_t a, uint64_t b) {
  wide product = (wide)a * b;
  return reduced((uint64_t)(product & PRIME) + (uint64_t)(product >> 61));
}

static uint64_t inverse(uint64_t a) {
  uint64_t out = 1;
  for (uint64_t power = PRIME - 2; power; power >>= 1, a = times(a, a))
    if (power & 1) out = times(out, a);
  return out;
}

static uint64_t mix(uint64_t key, uint64_t a) {
  uint64_t h = (key + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ a;
  h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
  return h ^ (h >> 31);
}

/* The number itself: a whole number times a power of 2, and 2^61 is 1. */
static uint64_t number(double value) {
  int exponent;
  double whole = ldexp(frexp(fabs(value), &exponent), 53);
  if (!isfinite(value)) return reduced(mix(1, value > 0));
  uint64_t out = times((uint64_t)whole, UINT64_C(1) << ((exponent - 53) % 61 + 61) % 61);
  return value < 0 ? negative(out) : out;
}

/* -- order and functions -- */

/* The one of a and -a that stands for both. */
static uint64_t size_of(uint64_t a) {
  return a > PRIME / 2 ? PRIME - a : a;
}

/* 1, 0 or -1, opposite for -a */
static int sign_of(uint64_t a) {
  if (!a) return 0;
  return (mix(2, size_of(a)) & 1) == (a > PRIME / 2) ? 1 : -1;
}

static bool is_less(uint64_t a, uint64_t b) {
  int x = sign_of(a), y = sign_of(b);
  if (x != y) return x < y;
  uint64_t p = mix(3, size_of(a)), q = mix(3, size_of(b));
  return x > 0 ? p < q : q < p;
}

static uint64_t absolute(uint64_t a) {
  return sign_of(a) < 0 ? negative(a) : a;
}

static uint64_t function(enum px_op op, uint64_t a) {
  uint64_t any = reduced(mix(10 + (uint64_t)op, a)),
           even = reduced(mix(10 + (uint64_t)op, size_of(a)));
  switch (op) {
    case PX_ABS: return absolute(a);
    case PX_NEG: return negative(a);
    case PX_EXP: return a ? absolute(any) : 1;
    case PX_SQRT: return a == number(0.0001) ? number(0.01) : absolute(any); /* sqrt 0 is 0 */
    case PX_SIN: return !a ? 0 : a == size_of(a) ? even : negative(even);
    case PX_TANH:
    case PX_ERF: return !a ? 0 : sign_of(a) > 0 ? absolute(even) : negative(absolute(even));
    case PX_COS: return even;
    default: return any;
  }
}

static uint64_t combine(enum px_op op, uint64_t a, uint64_t b) {
  switch (op) {
    case PX_ADD: return plus(a, b);
    case PX_SUB: return plus(a, negative(b));
    case PX_MUL: return times(a, b);
    case PX_DIV: return times(a, inverse(b));
    case PX_MIN: return is_less(b, a) ? b : a;
    case PX_MAX: return is_less(a, b) ? b : a;
    default: return reduced(mix(mix((uint64_t)op, a), b));
  }
}

/* -- expressions -- */

struct field_run {
  const struct program *p;
  uint64_t **values; /* by tensor */
  int64_t at[PROGRAM_AXES];
};

static int64_t index_of(const struct field_run *f, int expr);

static bool holds(const struct field_run *f, int expr) {
  const struct px_node *n = &f->p->nodes.data[expr];
  int64_t a, b;
  switch (n->op) {
    case PX_BOOL: return n->integer;
    case PX_AND: return holds(f, n->arg[0]) && holds(f, n->arg[1]);
    case PX_OR: return holds(f, n->arg[0]) || holds(f, n->arg[1]);
    case PX_NOT: return !holds(f, n->arg[0]);
    default: a = index_of(f, n->arg[0]), b = index_of(f, n->arg[1]);
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

static int64_t index_of(const struct field_run *f, int expr) {
  const struct px_node *n = &f->p->nodes.data[expr];
  if (n->op == PX_INT) return n->integer;
  if (n->op == PX_AXIS) return f->at[n->integer];
  if (n->op == PX_SELECT) return index_of(f, n->arg[holds(f, n->arg[0]) ? 1 : 2]);
  int64_t a = index_of(f, n->arg[0]), b = n->arg[1] >= 0 ? index_of(f, n->arg[1]) : 1;
  switch (n->op) {
    case PX_ADD: return a + b;
    case PX_SUB: return a - b;
    case PX_MUL: return a * b;
    case PX_DIV: return a / b - (a % b < 0);
    case PX_MOD: return a % b + (a % b < 0 ? b : 0);
    case PX_MIN: return int_min(a, b);
    case PX_MAX: return int_max(a, b);
    default: return -a;
  }
}

static uint64_t load(const struct field_run *f, const struct px_node *n) {
  const struct program_tensor *t = &f->p->tensors.data[n->tensor];
  int64_t flat = 0;
  for (int i = 0; i < t->rank; i++)
    flat = flat * t->axes[i].size + index_of(f, f->p->indices.data[n->first + i]);
  return f->values[n->tensor][flat];
}

static uint64_t value_of(const struct field_run *f, int expr) {
  const struct px_node *n = &f->p->nodes.data[expr];
  switch (n->op) {
    case PX_NUMBER: return number(n->number);
    case PX_LOAD: return load(f, n);
    case PX_REAL: return number((double)index_of(f, n->arg[0]));
    case PX_SELECT: return value_of(f, n->arg[holds(f, n->arg[0]) ? 1 : 2]);
    default: break;
  }
  uint64_t a = value_of(f, n->arg[0]);
  if (n->arg[1] < 0) return function((enum px_op)n->op, a);
  return combine((enum px_op)n->op, a, value_of(f, n->arg[1]));
}

/* -- stages -- */

static bool next(const struct program_tensor *t, int first, int end, int64_t at[PROGRAM_AXES]) {
  for (int i = end - 1; i >= first; i--) {
    if (++at[i] < t->axes[i].size) return true;
    at[i] = 0;
  }
  return false;
}

/* What a reduction has seen. */
struct reduction {
  uint64_t sum, hashes, first; /* sum of the elements, of their hashes */
  uint64_t points;
  bool equal; /* all elements */
};

static void add_point(struct reduction *r, uint64_t a) {
  if (!r->points++) *r = (struct reduction){.first = a, .points = 1, .equal = true};
  r->sum = plus(r->sum, a);
  r->hashes = plus(r->hashes, reduced(mix(6, a)));
  r->equal = r->equal && a == r->first;
}

/* An extreme of several elements is a random symmetric map: chosen by the order it would nearly
 * always be positive, and its relu itself. */
static uint64_t reduced_to(enum program_reducer reducer, const struct reduction *r) {
  if (reducer == REDUCE_SUM) return r->sum;
  if (reducer == REDUCE_MEAN) return times(r->sum, inverse(r->points));
  return r->equal ? r->first : reduced(mix(7 + (uint64_t)reducer, r->hashes));
}

static uint64_t element(struct field_run *f, const struct program_tensor *t) {
  int end = t->rank + t->reductions;
  struct reduction r = {0};
  if (t->reducer == REDUCE_NONE) return value_of(f, t->body);
  for (int i = t->rank; i < end; i++) f->at[i] = 0;
  do add_point(&r, value_of(f, t->body));
  while (next(t, t->rank, end, f->at));
  return reduced_to(t->reducer, &r);
}

static void run_stage(struct field_run *f, int tensor) {
  const struct program_tensor *t = &f->p->tensors.data[tensor];
  int64_t flat = 0;
  for (int i = 0; i < t->rank; i++) f->at[i] = 0;
  do f->values[tensor][flat++] = element(f, t);
  while (next(t, 0, t->rank, f->at));
}

static void fill(struct field_run *f, int tensor, uint64_t key) {
  int64_t count = program_elements(f->p, tensor);
  for (int64_t i = 0; i < count; i++) f->values[tensor][i] = reduced(mix(key, (uint64_t)i));
}

static uint64_t key_of(const struct field_run *f, int tensor) {
  int64_t count = program_elements(f->p, tensor);
  uint64_t key = mix(4, (uint64_t)count);
  for (int64_t i = 0; i < count; i++) key = mix(key, f->values[tensor][i]);
  return key;
}

/* The key of a weight that contracts this tensor. */
static uint64_t weight_key(const struct field_run *f, int weight, int contracted) {
  const struct program_tensor *t = &f->p->tensors.data[weight];
  uint64_t key = key_of(f, contracted);
  for (int i = 0; i < t->rank; i++) key = mix(key, (uint64_t)t->axes[i].size);
  return key;
}

/* -- a kernel -- */

/* The nodes with weights, in order, and the keys of those that were filled. */
struct weighted {
  int node[KERNEL_NODES_MAX], count, filled;
  uint64_t key[KERNEL_NODES_MAX];
};

static void fill_weight(struct field_run *f, const struct kernel *k, const int *tensors,
                        struct weighted *w, int tensor) {
  int contracted = tensors[k->nodes[w->node[w->filled]].in[0]];
  uint64_t key = weight_key(f, tensor, contracted), equal = 0;
  for (int i = 0; i < w->filled; i++) equal += w->key[i] == key;
  w->key[w->filled++] = key;
  fill(f, tensor, mix(key, equal));
}

static uint64_t run(const struct kernel *k, const struct program *p, const int *tensors) {
  struct field_run f = {.p = p};
  struct weighted w = {.count = 0};
  for (int i = 0; i < k->count; i++)
    if (node_row(&k->nodes[i])->facts & FACT_WEIGHTS) w.node[w.count++] = i;
  f.values = mem_alloc((size_t)p->tensors.count * sizeof *f.values);
  for (int t = 0; t < p->tensors.count; t++) {
    f.values[t] = mem_alloc((size_t)program_elements(p, t) * sizeof **f.values);
    if (!p->tensors.data[t].is_input)
      run_stage(&f, t);
    else if (t == p->inputs.data[0])
      fill(&f, t, 5);
    else
      fill_weight(&f, k, tensors, &w, t);
  }
  uint64_t key = key_of(&f, p->outputs.data[0]);
  for (int t = 0; t < p->tensors.count; t++) mem_free(f.values[t]);
  mem_free(f.values);
  return key;
}

/* -- bindings -- */

static const struct small {
  int64_t g, h, w, kh, kw;
  int64_t each;  /* C/G at least: not G */
  int64_t least; /* factor of a free size */
} smalls[2] = {{2, 5, 4, 3, 3, 3, 2}, {3, 4, 7, 3, 1, 2, 3}};

/* The least x at these sizes: a multiple of every denominator. */
static bool visit_least(void *data, int node, const struct dim *d) {
  struct sizes *s = data, ones = *s;
  (void)node;
  int x = dim_variable(d, NULL);
  int64_t num, den;
  if (x < 0 || x >= VARIABLES) return true;
  for (int v = 0; v < VARIABLES; v++) ones.value[SIZE_X0 + v] = 1;
  if (!dim_ratio(d, &ones, &num, &den)) return false;
  int64_t *value = &s->value[SIZE_X0 + x];
  *value = *value / gcd64(*value, den) * den;
  return *value <= SIZE_LIMIT;
}

static bool is_taken(const struct sizes *s, int64_t value, int x) {
  int64_t c = s->value[SIZE_C], g = s->value[SIZE_G];
  bool taken = value == c || value == g || value == c / g;
  for (int v = 0; v < x; v++) taken |= value == s->value[SIZE_X0 + v];
  return taken;
}

static void spread(const struct kernel *k, struct sizes *s, int64_t least) {
  for (int x = 0; x < VARIABLES; x++) {
    int64_t one = s->value[SIZE_X0 + x], factor = least;
    if (!(kernel_variables(k) >> x & 1)) continue;
    while (is_taken(s, one * factor, x)) factor++;
    s->value[SIZE_X0 + x] = one * factor;
  }
}

static bool bind(const struct kernel *k, const struct small *small, struct binding *out) {
  canvas_context ctx;
  int64_t stride = kernel_uses(k, SIZE_S) ? 2 : 1;
  for (int64_t i = small->each; i < CHANNELS_TRIES; i++) {
    struct target t = {.name = "small",
                       .cin = small->g * i,
                       .cout = small->g * i,
                       .h = small->h * stride,
                       .w = small->w * stride,
                       .kh = small->kh,
                       .kw = small->kw,
                       .stride = stride,
                       .groups = 1,
                       .dilation = 1};
    *out = (struct binding){.target = t};
    target_sizes(&t, k, &out->sizes, &out->copies);
    out->sizes.value[SIZE_G] = small->g;
    for (int x = 0; x < VARIABLES; x++)
      out->sizes.value[SIZE_X0 + x] = kernel_variables(k) >> x & 1;
    if (!kernel_each_dim(k, visit_least, &out->sizes)) continue;
    spread(k, &out->sizes, small->least);
    if (binding_check(&ctx, k, out, ELEMENTS_MOST, true) == CANVAS_OK) return true;
  }
  return false;
}

static bool value_at(const struct kernel *k, const struct small *small, uint64_t *out) {
  canvas_context ctx;
  struct binding b;
  struct program *p;
  int tensors[KERNEL_NODES_MAX];
  if (!bind(k, small, &b) || lower_nodes(&ctx, k, &b, IMAGES, &p, tensors) != CANVAS_OK)
    return false;
  *out = run(k, p, tensors);
  program_free(p);
  return true;
}

bool kernel_value(const struct kernel *k, struct hash *out) {
  return value_at(k, &smalls[0], &out->high) && value_at(k, &smalls[1], &out->low);
}
