/* What known kernels teach about drawing (draws=learned): which primitive follows which, and on which
 * of the tensors.
 *
 * Of every node of a known kernel is counted: its kind (the primitive and its attributes but sizes),
 * in the contexts of what made its inputs. The weight of an application is the share of its kind in its
 * longest context, smoothed by the shorter ones (Witten and Bell 1991: the less often a context was met,
 * the less it says), times how often a tensor like its inputs is read. No weight is 0.
 */
#ifndef CANVAS_SAMPLE_LEARNED_H
#define CANVAS_SAMPLE_LEARNED_H

#include "base/lexer.h"
#include "kernel/kernel.h"

enum { KNOWN_KERNELS = 28, LEARNED_KERNELS_MAX = 1024 };
extern const char *const known_kernels[KNOWN_KERNELS]; /* texts without `canvas 1` */

struct learned;
struct learned *learned_new(void); /* knows nothing */
void learned_free(struct learned *l);
/* Counts a finished kernel and keeps a copy. */
void learned_add(struct learned *l, const struct kernel *k);
/* All kernels of a text, as files hold them, with `canvas 1` before the first or before each. */
canvas_status learned_add_text(struct lexer *lx, struct learned *l);
/* All of known_kernels but one. */
canvas_status learned_add_known(canvas_context *ctx, struct learned *l, const char *without);
/* Whether there is a known kernel of this name. */
bool learned_is_known(const char *name, int length);
int learned_count(const struct learned *l);
const struct kernel *learned_kernel(const struct learned *l, int i);
/* Weights, above 0, of `count` applications to an unfinished kernel; consumers[i] nodes read node i. */
void learned_weights(struct learned *l, const struct kernel *k, const int *consumers,
                     const struct candidate *all, int count, double *out);

#endif
