/* Forward and backward pass of a small network, trained by Adadelta (Zeiler, 2012). See mlp.h. */
#include "tune/mlp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const float DECAY = 0.95f, EPSILON = 1e-6f;

/* A weight with Adadelta's running means of squared gradients and steps. */
struct weight {
  float value, gradients, steps;
};

struct layer {
  int in, out;
  struct weight *weights; /* `out` rows of `in` weights and a bias */
  float *values;          /* outputs, after relu except in the last layer */
  float *errors;          /* d loss / d values */
};

struct mlp {
  struct layer layer[MLP_LAYERS];
  const float *input;
};

static size_t weights_of(const struct layer *l) {
  return (size_t)l->out * (size_t)(l->in + 1);
}

struct mlp *mlp_new(int inputs, int outputs, struct random *r) {
  struct mlp *m = mem_alloc(sizeof *m);
  for (int i = 0; i < MLP_LAYERS; i++) {
    struct layer *l = &m->layer[i];
    l->in = i ? MLP_WIDTH : inputs;
    l->out = i + 1 < MLP_LAYERS ? MLP_WIDTH : outputs;
    l->weights = mem_alloc(weights_of(l) * sizeof *l->weights);
    l->values = mem_alloc((size_t)l->out * sizeof *l->values);
    l->errors = mem_alloc((size_t)l->out * sizeof *l->errors);
    for (size_t j = 0; j < weights_of(l); j++)
      if (j % (size_t)(l->in + 1) != (size_t)l->in)
        l->weights[j].value = (float)(random_normal(r) * sqrt(2.0 / l->in));
  }
  return m;
}

void mlp_free(struct mlp *m) {
  for (int i = 0; m && i < MLP_LAYERS; i++) {
    mem_free(m->layer[i].weights);
    mem_free(m->layer[i].values);
    mem_free(m->layer[i].errors);
  }
  mem_free(m);
}

void mlp_copy(struct mlp *to, const struct mlp *from) {
  for (int i = 0; i < MLP_LAYERS; i++)
    memcpy(to->layer[i].weights, from->layer[i].weights,
           weights_of(&from->layer[i]) * sizeof *to->layer[i].weights);
}

static void forward(struct mlp *m, const float *in) {
  m->input = in;
  for (int i = 0; i < MLP_LAYERS; i++) {
    struct layer *l = &m->layer[i];
    for (int o = 0; o < l->out; o++) {
      const struct weight *w = l->weights + (size_t)o * (size_t)(l->in + 1);
      float sum = w[l->in].value;
      for (int j = 0; j < l->in; j++) sum += w[j].value * in[j];
      l->values[o] = sum > 0 || i + 1 == MLP_LAYERS ? sum : 0;
    }
    in = l->values;
  }
}

void mlp_run(struct mlp *m, const float *in, float *out) {
  const struct layer *last = &m->layer[MLP_LAYERS - 1];
  forward(m, in);
  memcpy(out, last->values, (size_t)last->out * sizeof *out);
}

static void step(struct weight *w, float gradient) {
  w->gradients = DECAY * w->gradients + (1 - DECAY) * gradient * gradient;
  float by = -sqrtf(w->steps + EPSILON) / sqrtf(w->gradients + EPSILON) * gradient;
  w->steps = DECAY * w->steps + (1 - DECAY) * by * by;
  w->value += by;
}

/* Computes the errors of the layer before, and updates the layer's own weights. */
static void backward(struct layer *l, struct layer *before, const float *in) {
  if (before) memset(before->errors, 0, (size_t)before->out * sizeof *before->errors);
  for (int o = 0; o < l->out; o++) {
    struct weight *w = l->weights + (size_t)o * (size_t)(l->in + 1);
    float error = l->errors[o];
    if (error == 0) continue;
    for (int j = 0; j < l->in; j++) {
      if (before && in[j] > 0) before->errors[j] += error * w[j].value;
      if (in[j] != 0) step(&w[j], error * in[j]);
    }
    step(&w[l->in], error);
  }
}

float mlp_learn(struct mlp *m, const float *in, int output, float wanted) {
  struct layer *last = &m->layer[MLP_LAYERS - 1];
  forward(m, in);
  float error = last->values[output] - wanted;
  memset(last->errors, 0, (size_t)last->out * sizeof *last->errors);
  last->errors[output] = 2 * error;
  for (int i = MLP_LAYERS - 1; i >= 0; i--)
    backward(&m->layer[i], i ? &m->layer[i - 1] : NULL, i ? m->layer[i - 1].values : in);
  return error * error;
}
