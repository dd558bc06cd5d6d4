/* What a family's `torch` hook works with: the body of `template` under construction.
 *
 * The result of a node is a Python local of shape [N, axes of the node's shape], named as in the
 * kernel text. Sizes are spelled as they are printed there, with the locals N, C, H, W, G, KH, KW,
 * x0, ...: `C/G` is `C // G`. spell/torch.c declares those that were used.
 */
#ifndef CANVAS_PRIMITIVE_SPELLING_H
#define CANVAS_PRIMITIVE_SPELLING_H

#include "base/memory.h"
#include "kernel/kernel.h"

/* Bits of `sizes` below that stand for N and for the dilation of the target, D. */
enum {
  SPELLING_NAME = NODE_NAME_SIZE + 16,
  SPELLING_BATCH = 1 << SIZES,
  SPELLING_DILATION = 1 << (SIZES + 1)
};

struct spelling {
  const struct kernel *k;
  struct buf *out;                    /* lines of `template` */
  struct arena arena;                 /* strings below and those that the functions return */
  const char *name[KERNEL_NODES_MAX]; /* the local that holds each node's result */
  int weight[KERNEL_NODES_MAX];       /* i of self.wi; -1 where a node has none */
  bool normed;                        /* inner weights have a norm: self.normi and self.bi */
  bool dilated;                       /* windows are dilated by D, the target's */
  unsigned sizes;                     /* a bit per size whose local was used, and those above */
};

void spelling_open(struct spelling *s, const struct kernel *k, bool normed, struct buf *out);
void spelling_close(struct spelling *s);

/* A string that lives as long as the spelling. */
const char *spelling_text(struct spelling *s, const char *format, ...) PRINTF_LIKE(2, 3);
/* One line of `template`: eight blanks, the text, a line break. */
void spelling_line(struct spelling *s, const char *format, ...) PRINTF_LIKE(2, 3);

/* "C // G", "3 * x0"; for a number its digits. */
const char *spelling_dim(struct spelling *s, const struct dim *d);
/* "N, G, C // G, H, W": the batch and the axes [first, first + count) of a shape. */
const char *spelling_axes(struct spelling *s, const struct shape *shape, int first, int count);
const char *spelling_shape(struct spelling *s, const struct shape *shape);
/* "(1, 2)" or "1": positions of the axes with these roles in the tensor, the batch counted. */
const char *spelling_dims(struct spelling *s, const struct shape *shape, unsigned roles);
/* The local of node i, reshaped to [N, `axes`] (comma-separated) unless it has that shape. */
const char *spelling_reshaped(struct spelling *s, int i, const struct shape *to);
/* The left side of a broadcast as PyTorch repeats it by itself: the right side's axes, 1 where the
 * left has none. False where it does not line up with the right side's axes. */
bool spelling_spread(const struct shape *left, const struct shape *right, struct shape *out);
/* The groups of an fc's input (1 without a group axis), what one output element contracts, ... */
struct dim spelling_groups(const struct shape *a);
struct dim spelling_contracted(const struct shape *a);
/* "self.w0[copy]", the weight of an fc node. */
const char *spelling_weight(struct spelling *s, int node);
/* The weight, reshaped to `rank` dims unless the parameter has that shape. */
const char *spelling_weight_as(struct spelling *s, int node, int rank, const struct dim *dims);
bool spelling_is_normed(const struct spelling *s, int node);
/* ", self.b0[copy]", the bias of an fc node as the last argument of its operator; "" without norm. It
 * is None until the norm is folded. */
const char *spelling_bias(struct spelling *s, int node);
/* The lines that add the bias, where the operator takes none. */
void spelling_add_bias(struct spelling *s, int node);
/* The line that normalises the result of an fc node. Both: nothing without norm. */
void spelling_normalise(struct spelling *s, int node);
/* The distance between neighbours in a window, for the node's own dilation (0: 1): "2", "D",
 * "2 * D"; "" for 1. */
const char *spelling_apart(struct spelling *s, int dilation);
/* The padding of a window along one axis, its half times that distance: "1" or "KH // 2 * D". */
const char *spelling_half(struct spelling *s, const struct dim *window, int dilation);
/* A slice from the i-th neighbour of a window on, one for each window of an axis of `size` pixels:
 * "i:i + H", "i * 2:i * 2 + H:S". */
const char *spelling_slice(struct spelling *s, const char *i, const struct dim *size,
                           const struct dim *stride, int dilation);
/* A local of its own for an intermediate value: the node's name and a suffix. */
const char *spelling_local(struct spelling *s, int node, const char *suffix);

#endif
