/* What known kernels teach about drawing (draws=learned): which primitive follows which, and on which
 * of the tensors.
 *
 * Of every node of a known kernel is counted: its kind (the primitive and its attributes but sizes),
 * in three contexts: none, what made its input, and what made that. The weight of an application is
 * the share of its kind in the narrowest context, times how often a tensor like its inputs is read.
 * A context that was met less often counts less: shares are smoothed by those of the next wider one
 * (a hierarchical Dirichlet prior, MacKay and Peto 1995). No weight is 0.
 */
#ifndef CANVAS_SAMPLE_PRIOR_H
#define CANVAS_SAMPLE_PRIOR_H

#include "base/lexer.h"
#include "kernel/kernel.h"

enum { KNOWN_KERNELS = 28, PRIOR_KERNELS_MAX = 1024 };
extern const char *const known_kernels[KNOWN_KERNELS]; /* simple ones, without `canvas 1` */

struct prior;
struct prior *prior_new(void); /* knows nothing */
void prior_free(struct prior *p);
/* Counts a finished kernel and keeps a copy. */
void prior_add(struct prior *p, const struct kernel *k);
/* All kernels of a text, as files hold them, with `canvas 1` before the first or before each. */
canvas_status prior_add_text(struct lexer *lx, struct prior *p);
/* All of known_kernels but one. */
canvas_status prior_add_known(canvas_context *ctx, struct prior *p, const char *without);
/* Whether there is a known kernel of this name. */
bool prior_is_known(const char *name, int length);
int prior_count(const struct prior *p);
const struct kernel *prior_kernel(const struct prior *p, int i);
/* Weights, above 0, of `count` applications to an unfinished kernel; consumers[i] nodes read node i. */
void prior_weights(struct prior *p, const struct kernel *k, const int *consumers,
                   const struct candidate *all, int count, double *out);

#endif
