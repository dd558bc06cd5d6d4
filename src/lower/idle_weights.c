/* Which weights cannot matter on a small image: see idle_weights.h.
 *
 *   small sizes    few channels and groups, such that the same dims are 1 as at the given sizes
 *   two passes     in which max and min are smooth: a number that matters in neither is idle
 *   many passes    as the kernel is, until each number has mattered in one; a weight of which no
 *                  number matters in a third of them is idle, too
 */
#include "lower/idle_weights.h"

#include <stdio.h>

#include "base/saturating.h"
#include "lower/gradients.h"
#include "lower/lower.h"

enum { FEW_CHANNELS = 4, FEW_GROUPS = 2, C_TRIES = 64, WIDE = 8 };
/* Passes: smooth ones; as the kernel is, at least and at most; those after which it shows whether a
 * weight dies as a whole, for more than OUT_MOST of so many random weights: a ReLU of a lone number
 * on a lone pixel does for half of them. */
enum { SMOOTH = 2, FIRST = 8, PASSES = 256, ENOUGH = 32, OUT_MOST = 10 };
/* Large kernels get fewer passes, but ENOUGH: so many operations in all. */
#define OPERATIONS_MAX (1 << 26)
#define ELEMENTS_MAX   (INT64_C(1) << 16) /* of one tensor of the test */

/* -- where it is tested -- */

/* How far the pixels that a node reads lie before and behind its own, along one axis, in pixels of
 * the kernel's input. */
struct span {
  int64_t before, behind;
};

static struct span span_of(const struct kernel *k, const struct node *n, enum role axis,
                           const struct sizes *at, const struct span *of) {
  struct span s = {0, 0};
  const struct row *row = node_row(n);
  for (int j = 0; j < row->arity; j++) {
    s.before = int_max(s.before, of[n->in[j]].before);
    s.behind = int_max(s.behind, of[n->in[j]].behind);
  }
  if (!(row->facts & FACT_SEES) || !(n->attrs.over >> axis & 1)) return s;
  int64_t by = n->attrs.amount, window = by ? by : at->value[axis == ROLE_H ? SIZE_KH : SIZE_KW];
  const struct shape *a = node_input(k, n, 0);
  bool shift = row->attributes & ATTR_SHIFT;
  int64_t side = window / 2 * int_max(n->attrs.dilation, 1) * int_max(at->dilation, 1);
  int64_t pixel = dim_uses(&a->axis[shape_find(a, axis)].dim, SIZE_S) ? at->value[SIZE_S] : 1;
  s.before += pixel * (shift ? int_max(by, 0) : side);
  s.behind += pixel * (shift ? int_max(-by, 0) : side);
  return s;
}

/* The longest of these: how many pixels apart a node reads. */
static int64_t longest(const struct kernel *k, enum role axis, const struct sizes *at) {
  struct span of[KERNEL_NODES_MAX];
  int64_t most = 0;
  for (int i = 0; i < k->count; i++) {
    of[i] = span_of(k, &k->nodes[i], axis, at, of);
    most = int_max(most, of[i].before + of[i].behind);
  }
  return most;
}

bool idle_tested(const struct kernel *k, const struct sizes *at) {
  int64_t h = at->value[SIZE_H], w = at->value[SIZE_W], s = at->value[SIZE_S];
  return h / s <= FEW_PIXELS || w / s <= FEW_PIXELS || longest(k, ROLE_H, at) >= h ||
         longest(k, ROLE_W, at) >= w;
}

/* -- small sizes -- */

struct comparison {
  const struct sizes *large;
  struct sizes *small;
};

/* Makes the dim whole at the small sizes by its variable, if it has one. */
static bool visit_whole(void *data, int node, const struct dim *d) {
  struct sizes *small = ((struct comparison *)data)->small;
  int64_t num, den;
  int x = dim_variable(d, NULL);
  (void)node;
  if (!dim_ratio(d, small, &num, &den)) return false;
  if (den == 1) return true;
  if (x < 0 || x >= VARIABLES) return false;
  int64_t *value = &small->value[SIZE_X0 + x];
  return !__builtin_mul_overflow(*value, den, value) && *value <= ELEMENTS_MAX;
}

/* An axis of 1 stays one, any other does not become one. */
static bool visit_alike(void *data, int node, const struct dim *d) {
  const struct comparison *c = data;
  int64_t large, small;
  (void)node;
  if (!dim_value(d, c->large, &large) || !dim_value(d, c->small, &small)) return false;
  return (large == 1) == (small == 1);
}

/* Pixels of an image on which the kernel has room: of its output WIDE, or what a node reads. */
static int64_t few_pixels(const struct kernel *k, enum role axis, const struct sizes *at) {
  int64_t s = at->value[SIZE_S], size = at->value[axis == ROLE_H ? SIZE_H : SIZE_W];
  return int_min(size, int_max(WIDE, longest(k, axis, at) / s + 1) * s);
}

/* The sizes at C = channels; false where they are not legal or not alike. */
static bool shrink(const struct kernel *k, const struct sizes *at, int64_t channels,
                   struct binding *out) {
  const int64_t *v = at->value;
  struct target t = {.name = "small",
                     .stride = v[SIZE_S],
                     .groups = 1,
                     .kh = v[SIZE_KH],
                     .kw = v[SIZE_KW],
                     .dilation = int_max(at->dilation, 1)};
  int64_t copies;
  t.cin = t.cout = channels;
  t.h = few_pixels(k, ROLE_H, at);
  t.w = few_pixels(k, ROLE_W, at);
  *out = (struct binding){.target = t, .copies = 1};
  target_sizes(&t, k, &out->sizes, &copies);
  out->sizes.value[SIZE_G] = v[SIZE_G] == v[SIZE_C] ? channels : int_min(v[SIZE_G], FEW_GROUPS);
  for (int x = SIZE_X0; x < SIZES; x++) out->sizes.value[x] = int_min(v[x], FEW_CHANNELS);
  struct comparison c = {at, &out->sizes};
  return kernel_each_dim(k, visit_whole, &c) && kernel_each_dim(k, visit_alike, &c);
}

static bool is_light(const struct kernel *k, const struct binding *b) {
  canvas_context ctx;
  return binding_check(&ctx, k, b, ELEMENTS_MAX, true) == CANVAS_OK;
}

static bool small_sizes(const struct kernel *k, const struct sizes *at, struct binding *out) {
  int64_t c = at->value[SIZE_C], step = c < FEW_CHANNELS ? c : 1;
  for (int64_t i = step == c ? 1 : FEW_CHANNELS; i <= C_TRIES && i * step <= c; i++)
    if (shrink(k, at, i * step, out) && is_light(k, out)) return true;
  *out = (struct binding){.sizes = *at, .copies = 1};
  out->target = (struct target){.name = "small", .cin = c, .cout = c, .groups = 1};
  out->target.dilation = int_max(at->dilation, 1);
  out->target.stride = at->value[SIZE_S];
  out->target.h = at->value[SIZE_H];
  out->target.w = at->value[SIZE_W];
  out->target.kh = at->value[SIZE_KH];
  out->target.kw = at->value[SIZE_KW];
  return is_light(k, out);
}

/* -- the test -- */

struct test {
  const struct program *p;
  struct gradients *g;
  int count;                 /* numbers of all weights */
  bool *now, *ever;          /* by number: mattered in this pass, in any */
  int out[KERNEL_NODES_MAX]; /* by weight: passes in which none of its numbers mattered */
};

static int first_idle(const struct test *t) {
  for (int i = 0; i < t->count; i++)
    if (!t->ever[i]) return i;
  return -1;
}

/* The weight that holds a number; -1 of -1. */
static int weight_of(const struct program *p, int64_t number) {
  int weight = -1;
  while (number >= 0) number -= program_elements(p, p->inputs.data[1 + ++weight]);
  return weight;
}

static void pass(struct test *t, int index, bool smooth) {
  for (int i = 0; i < t->count; i++) t->now[i] = false;
  gradients_pass(t->g, (uint64_t)index, smooth, t->now);
  for (int w = 0, i = 0; i < t->count; w++) {
    bool any = false;
    for (int64_t left = program_elements(t->p, t->p->inputs.data[1 + w]); left > 0; left--, i++) {
      any |= t->now[i];
      t->ever[i] |= t->now[i];
    }
    t->out[w] += !any;
  }
}

static int most_often_out(const struct test *t) {
  int most = 0;
  for (int w = 1; w < t->p->inputs.count - 1; w++)
    if (t->out[w] > t->out[most]) most = w;
  return most;
}

/* The smooth passes; the first idle weight, or -1. */
static int run_smooth(struct test *t) {
  for (int i = 0; i < SMOOTH; i++) {
    pass(t, i, true);
    if (first_idle(t) < 0) return -1;
  }
  return weight_of(t->p, first_idle(t));
}

static int run_as_it_is(struct test *t) {
  int passes = OPERATIONS_MAX / (gradients_operations(t->g) + 1);
  passes = (int)int_max(ENOUGH, int_min(PASSES, passes));
  for (int i = 0; i < t->count; i++) t->ever[i] = false;
  for (int w = 0; w < KERNEL_NODES_MAX; w++) t->out[w] = 0;
  for (int i = 1; i <= passes; i++) {
    pass(t, i, false);
    int worst = most_often_out(t);
    if (i == ENOUGH && t->out[worst] > OUT_MOST) return worst;
    if (i >= FIRST && first_idle(t) < 0 && (i >= ENOUGH || !t->out[worst])) return -1;
  }
  return weight_of(t->p, first_idle(t));
}

/* By weight: it is added, or multiplies a constant. */
static void list_apart(const struct kernel *k, bool apart[KERNEL_NODES_MAX]) {
  bool constant[KERNEL_NODES_MAX] = {false};
  int weights = 0;
  for (int i = 1; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    constant[i] = node_row(n)->family == &family_coords;
    bool inputs = true;
    for (int j = 0; j < node_row(n)->arity; j++) inputs = inputs && constant[n->in[j]];
    constant[i] |= inputs;
    if (node_row(n)->facts & FACT_WEIGHTS)
      apart[weights++] = constant[i] || n->op == PRIMITIVE_BIAS;
  }
}

static int idle_in(const struct program *p, const bool *apart) {
  struct test t = {.p = p, .g = gradients_new(p, apart)};
  t.count = gradients_numbers(t.g);
  t.now = mem_alloc((size_t)t.count);
  t.ever = mem_alloc((size_t)t.count);
  int idle = run_smooth(&t);
  if (idle < 0) idle = run_as_it_is(&t);
  mem_free(t.now);
  mem_free(t.ever);
  gradients_free(t.g);
  return idle;
}

/* A kernel that is being drawn has no names yet, and a program needs them. */
static struct kernel *named(const struct kernel *k) {
  struct kernel *copy = kernel_copy(k);
  for (int i = 0; i < copy->count; i++) snprintf(copy->nodes[i].name, NODE_NAME_SIZE, "n%d", i);
  snprintf(copy->name, sizeof copy->name, "k");
  return copy;
}

static int test(const struct kernel *k, const struct sizes *at) {
  canvas_context ctx;
  struct binding small;
  struct program *p;
  if (!small_sizes(k, at, &small)) return 0; /* nothing shows that they matter */
  if (lower_binding(&ctx, k, &small, 1, &p) != CANVAS_OK) return 0;
  bool apart[KERNEL_NODES_MAX];
  list_apart(k, apart);
  int idle = idle_in(p, apart);
  program_free(p);
  return idle;
}

int idle_weight(const struct kernel *k, const struct sizes *at) {
  if (!kernel_has_weights(k) || !idle_tested(k, at)) return -1;
  struct kernel *copy = named(k);
  int idle = test(copy, at);
  kernel_free(copy);
  return idle;
}

canvas_status binding_check_idle(canvas_context *ctx, const struct kernel *k,
                                 const struct binding *b) {
  int weight = idle_weight(k, &b->sizes);
  if (weight < 0) return CANVAS_OK;
  return fail(ctx, CANVAS_NONE,
              "target '%s': on its image of %lldx%lld not every number of weight w%d of kernel "
              "'%s' can change the output",
              b->target.name, (long long)b->sizes.value[SIZE_H], (long long)b->sizes.value[SIZE_W],
              weight, k->name);
}
