/* Targets, bindings and packs.
 *
 * A target is a layer to replace. A binding gives a kernel all sizes at one target: inside the
 * kernel C = min(C_in, C_out), H and W are the layer's output sizes ceil(H/stride), and the kernel
 * runs in max(C_in, C_out)/C copies with weights of their own (paper figure 2): side by side where
 * C_out is larger, on groups of the input whose results are averaged where C_in is. A pack is a
 * kernel and its bindings: it says everything but the weights' values.
 */
#ifndef CANVAS_KERNEL_PACK_H
#define CANVAS_KERNEL_PACK_H

#include "base/memory.h"
#include "kernel/kernel.h"

enum { TARGET_NAME_SIZE = 128, TARGETS_MAX = 4096 };
#define SIZE_LIMIT (INT64_C(1) << 24)            /* of one size */
#define ELEMENTS_LIMIT_DEFAULT (INT64_C(1) << 25) /* of one tensor, per sample */

struct target {
  char name[TARGET_NAME_SIZE];
  int64_t cin, cout, h, w; /* h, w of the layer's input */
  int64_t kh, kw, stride, groups;
};
struct targets {
  VEC(struct target);
};

struct binding {
  struct target target;
  struct sizes sizes; /* G, C, KH, KW, H, W and the x of the kernel: what the kernel sees */
  int64_t copies;
};
struct pack {
  struct kernel *kernel;
  VEC(struct binding);
};

/* -- targets (target.c) -- */
/* Lines `name C_in C_out H W kernel stride groups`, or "C,H,W;C,H,W" (dense 3x3, stride 1). */
canvas_status targets_parse(canvas_context *ctx, const char *text, size_t length,
                            struct targets *out);
void targets_print(const struct targets *t, struct buf *out);
void targets_free(struct targets *t);
/* Checks the sizes of one target: positive, within limits, odd kernel, one of C_in, C_out a multiple
 * of the other. */
canvas_status target_check(canvas_context *ctx, const struct target *t);
/* The convolution that is replaced: macs and params (no bias), activations, bytes. */
struct cost target_cost(const struct target *t);
/* Sizes of the kernel at this target, G and x still 0. */
void target_sizes(const struct target *t, struct sizes *sizes, int64_t *copies);
int64_t targets_common_channels(const struct targets *t); /* gcd of all min(C_in, C_out) */

/* -- packs (pack.c) -- */
struct pack *pack_new(const struct kernel *k); /* a copy of k, no bindings yet */
void pack_free(struct pack *p);
canvas_status pack_bind(canvas_context *ctx, struct pack *p, const struct binding *b);
/* Every dim and condition whole, tensors within the limit, copies with weights (unless exempt). */
canvas_status binding_check(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                            int64_t elements_limit, bool exempt);
/* "C=64,H=56,W=56,G=4,x0=64": C or Cin and Cout, KH, KW or K (default 3), stride, name. */
canvas_status binding_parse_at(canvas_context *ctx, const char *text, size_t length,
                               struct binding *out);
canvas_status pack_parse(canvas_context *ctx, const char *text, size_t length, struct pack **out);
void pack_print(const struct pack *p, struct buf *out);
/* Of one binding, copies, pooling and averaging included; of all bindings. */
bool binding_cost(const struct kernel *k, const struct binding *b, struct cost *out);
bool pack_cost(const struct pack *p, struct cost *out);
void binding_print(const struct kernel *k, const struct binding *b, struct buf *out);

#endif
