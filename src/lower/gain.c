/* Gains from one interpretation. With independent weights of variance g^2/fan_in an fc's output has
 * the mean square g^2 * mean(input^2), so the gain is 1/rms(input): the input is all that must be
 * evaluated before the weight is scaled, and no stage is evaluated twice. Where what follows the
 * last fc (products, exp) still leaves the output far from 1, the last gain takes the rest, if that
 * is not too much: what hardly varies because a constant is larger (min, max) can only be moved by
 * weights that saturate everything between.
 */
#include "lower/gain.h"

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "lower/lower.h"
#include "program/interpret.h"

#define LAST_MOST 30 /* of the correction for what follows the last fc */

enum { SAMPLES = 256, SMALL_HW = 6, SMALL_C = 16, SMALL_G = 4, C_TRIES = 64 };

/* The least x at these sizes: multiples of every denominator (Theorem 1: one x per dim). */
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

bool gain_small_binding(canvas_context *ctx, const struct kernel *k, const struct sizes *like,
                        struct binding *out) {
  unsigned used = kernel_variables(k);
  int64_t g = like->value[SIZE_G] < SMALL_G ? like->value[SIZE_G] : SMALL_G;
  if (g < 1) g = 1;
  for (int i = 1; i <= C_TRIES; i++) {
    int64_t c = (SMALL_C + g - 1) / g * g * i;
    struct target t = {.name = "small",
                       .cin = c,
                       .cout = c,
                       .h = SMALL_HW * like->value[SIZE_S],
                       .w = SMALL_HW * like->value[SIZE_S],
                       .kh = like->value[SIZE_KH],
                       .kw = like->value[SIZE_KW],
                       .stride = like->value[SIZE_S],
                       .groups = 1,
                       .dilation = 1};
    *out = (struct binding){.target = t};
    target_sizes(&t, k, &out->sizes, &out->copies);
    out->sizes.value[SIZE_G] = g;
    for (int x = 0; x < VARIABLES; x++) out->sizes.value[SIZE_X0 + x] = used >> x & 1;
    if (!kernel_each_dim(k, visit_least, &out->sizes)) continue;
    for (int x = 0; x < VARIABLES; x++) {
      int64_t *value = &out->sizes.value[SIZE_X0 + x];
      if (used >> x & 1 && *value < 8) *value *= (8 + *value - 1) / *value;
    }
    if (binding_check(ctx, k, out, INT64_C(1) << 18, true) == CANVAS_OK) return true;
  }
  return false;
}

struct trial {
  const struct kernel *k;
  struct program *p;
  struct interpreter *in;
  double *inputs[KERNEL_NODES_MAX + 1]; /* X, w0, w1, ... */
  int stage[KERNEL_NODES_MAX];
};

static void trial_free(struct trial *t) {
  interpreter_free(t->in);
  for (int i = 0; i <= KERNEL_NODES_MAX; i++) mem_free(t->inputs[i]);
  program_free(t->p);
}

static canvas_status trial_open(canvas_context *ctx, struct trial *t, const struct binding *b) {
  struct random r;
  TRY(lower_nodes(ctx, t->k, b, 1, &t->p, t->stage));
  random_open(&r, 0, RANDOM_GAIN, 0);
  for (int i = 0; i < t->p->inputs.count; i++) {
    int64_t n = program_elements(t->p, t->p->inputs.data[i]);
    t->inputs[i] = mem_try((size_t)n, sizeof(double));
    if (!t->inputs[i]) return fail(ctx, CANVAS_IO, "no memory to estimate gains");
    for (int64_t j = 0; j < n; j++) t->inputs[i][j] = random_normal(&r);
  }
  struct interpreter_limits limits = {.bytes = (size_t)256 << 20, .steps = UINT64_C(1) << 28};
  return interpreter_new(ctx, t->p, (const double *const *)t->inputs, &limits, &t->in);
}

/* Mean and mean square of evenly spread elements of a node's result. */
static canvas_status moments(struct trial *t, int node, double *mean, double *square) {
  int64_t flat[SAMPLES], elements = program_elements(t->p, t->stage[node]);
  double value[SAMPLES];
  int count = elements < SAMPLES ? (int)elements : SAMPLES;
  for (int i = 0; i < count; i++) flat[i] = elements * i / count;
  TRY(interpreter_elements(t->in, t->stage[node], count, flat, value));
  *mean = *square = 0;
  for (int i = 0; i < count; i++) {
    *mean += value[i] / count;
    *square += value[i] * value[i] / count;
  }
  return CANVAS_OK;
}

static double correction(double size) {
  if (!(size > 0) || !isfinite(size) || (size > 0.5 && size < 2)) return 1;
  double gain = fmin(fmax(1 / size, 1e-6), 1e6);
  double unit = pow(10, floor(log10(gain)) - 2);
  return round(gain / unit) * unit; /* three digits: it is printed */
}

static void scale_weight(struct trial *t, int weight, double factor) {
  int64_t n = program_elements(t->p, t->p->inputs.data[1 + weight]);
  for (int64_t j = 0; j < n; j++) t->inputs[1 + weight][j] *= factor;
}

static void fill_weight(struct trial *t, int weight, double value) {
  int64_t n = program_elements(t->p, t->p->inputs.data[1 + weight]);
  for (int64_t j = 0; j < n; j++) t->inputs[1 + weight][j] = value;
}

/* Weights per output element: the weight's elements over its first axis. */
static double fan_in(const struct trial *t, int weight) {
  int tensor = t->p->inputs.data[1 + weight];
  return (double)program_elements(t->p, tensor) / (double)t->p->tensors.data[tensor].axes[0].size;
}

/* One pass; `last` multiplies the gain of the last weight. *size = what comes out. */
static canvas_status pass(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                          double last, double gains[KERNEL_NODES_MAX], double *size) {
  struct trial t = {.k = k};
  double mean, square;
  int weight = 0, weights = 0, random = -1; /* the last that is random at first */
  for (int i = 0; i < k->count; i++)
    if (node_row(&k->nodes[i])->facts & FACT_WEIGHTS) {
      if (isnan(node_initial(&k->nodes[i]))) random = weights;
      weights++;
    }
  canvas_status status = trial_open(ctx, &t, b);
  for (int i = 0; i < k->count && status == CANVAS_OK; i++) {
    if (!(node_row(&k->nodes[i])->facts & FACT_WEIGHTS)) continue;
    double initial = node_initial(&k->nodes[i]);
    gains[weight] = 1;
    if (!isnan(initial)) {
      fill_weight(&t, weight++, initial);
      continue;
    }
    status = moments(&t, k->nodes[i].in[0], &mean, &square);
    if (status != CANVAS_OK) break;
    gains[weight] = correction(sqrt(square)) * (weight == random ? last : 1);
    scale_weight(&t, weight, gains[weight] / sqrt(fan_in(&t, weight)));
    weight++;
  }
  if (status == CANVAS_OK) status = moments(&t, k->count - 1, &mean, &square);
  *size = sqrt(fmax(square - mean * mean, 0));
  trial_free(&t);
  return status;
}

canvas_status gain_estimate(canvas_context *ctx, const struct kernel *k, const struct pack *p,
                            double gains[KERNEL_NODES_MAX]) {
  struct binding b;
  double size = 1, retried, second[KERNEL_NODES_MAX];
  for (int i = 0; i < KERNEL_NODES_MAX; i++) gains[i] = second[i] = 1;
  if (!kernel_has_weights(k) || !p->count) return CANVAS_OK;
  if (!gain_small_binding(ctx, k, &p->data[0].sizes, &b)) return CANVAS_OK;
  TRY(pass(ctx, k, &b, 1, gains, &size));
  double last = size > 0.1 && size < 10 ? 1 : correction(size);
  if (last == 1 || last > LAST_MOST) return CANVAS_OK;
  TRY(pass(ctx, k, &b, last, second, &retried));
  bool better = fabs(log(retried + 1e-30)) < fabs(log(size + 1e-30));
  for (int i = 0; better && i < KERNEL_NODES_MAX; i++) gains[i] = second[i];
  return CANVAS_OK;
}
