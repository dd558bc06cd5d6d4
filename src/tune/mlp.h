/* A small fully connected network, for values that a search learns (method_q.c).
 *
 * Three hidden layers of 64 with relu and a linear output, trained by Adadelta on one output at a
 * time.
 */
#ifndef CANVAS_TUNE_MLP_H
#define CANVAS_TUNE_MLP_H

#include "base/random.h"

enum { MLP_WIDTH = 64, MLP_LAYERS = 4 };

struct mlp;

struct mlp *mlp_new(int inputs, int outputs, struct random *r); /* He initialisation */
void mlp_free(struct mlp *m);                                   /* NULL is fine */
void mlp_copy(struct mlp *to, const struct mlp *from);          /* same shape */
void mlp_run(struct mlp *m, const float *in, float *out);
/* One training step of out[output] towards `wanted`; returns the squared error before it. */
float mlp_learn(struct mlp *m, const float *in, int output, float wanted);

#endif
