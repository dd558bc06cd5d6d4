/* Targets, bindings and packs.
 *
 * A target is a layer to replace. A binding gives a kernel all sizes at one target. Inside the
 * kernel C is the greatest common divisor of C_in and C_out (of a projected target it is C_out: a 1x1
 * convolution without a bias brings the input there first), and H and W are the layer's output sizes
 * ceil(H/stride), as the input is pooled by the stride. In a kernel that uses S they are the layer's
 * input sizes, and S is the stride. An even window counts as the next smaller odd one, and all windows
 * take the target's dilation. The kernel runs in (C_in/C)*(C_out/C) copies with weights of their own,
 * one for each pair of a block of C inputs and a block of C outputs; a block of outputs is the mean of
 * its copies (paper figure 2, which has one block on one of the sides). Copy r reads block r mod
 * (C_in/C) and is part of block r / (C_in/C). A pack gives each target a kernel with its sizes, or
 * keeps the convolution: everything except the values of weights. One kernel for all targets is the
 * common case, a list of length 1.
 *
 * A pack may state that every inner weight (node_is_inner) is followed by a normalisation in
 * training. For inference it is folded: the weight is scaled, and the node gets a bias, one number
 * per copy and output of the weight.
 */
#ifndef CANVAS_KERNEL_PACK_H
#define CANVAS_KERNEL_PACK_H

#include "base/memory.h"
#include "base/name_table.h"
#include "kernel/kernel.h"

enum { TARGET_NAME_SIZE = 128, TARGETS_MAX = 4096 };
#define SIZE_LIMIT             (INT64_C(1) << 24) /* limit of one size */
#define ELEMENTS_LIMIT_DEFAULT (INT64_C(1) << 25) /* limit of a tensor per sample, with copies */
#define ELEMENTS_LIMIT_MAX     (INT64_C(1) << 40) /* largest value of that option */

struct target {
  char name[TARGET_NAME_SIZE];
  int64_t cin, cout, h, w; /* h and w are those of the layer's input */
  int64_t kh, kw, stride, groups, dilation;
  int64_t
      projected; /* 1: a learned 1x1 projection to C_out channels stands before the kernel; else 0 */
};
struct targets {
  VEC(struct target);
};

enum norm {
  NORM_NONE,
  NORM_BATCH /* BatchNorm over batch and pixels, then a scale and a shift */
};
struct binding {
  struct target target;
  struct sizes sizes; /* sizes inside the kernel: G, C, KH, KW, H, W, S and its x */
  int64_t copies;
  enum norm norm; /* equal in all bindings of a pack; NORM_NONE if no weight is inner */
};
/* A kernel with the bindings of the targets that it replaces, and the next kernel. */
struct pack {
  struct kernel *kernel;
  VEC(struct binding);
  struct pack *next; /* the next kernel of the same text and its targets; NULL after the last */
  /* of the first of a list only */
  struct targets kept;      /* targets that keep their convolution */
  struct pack *last;        /* the last kernel of the list */
  struct name_table names;  /* all targets by name: 1 if the target is kept, 0 if it is bound */
  struct arena names_texts; /* what `names` borrows, as bindings move in memory */
};

/* -- targets (target.c) -- */
/* Parses lines `name C_in C_out H W kernel stride groups dilation projected`, or "C,H,W;C,H,W" (dense 3x3,
 * stride 1). */
canvas_status targets_parse(canvas_context *ctx, const char *text, size_t length,
                            struct targets *out);
void targets_print(const struct targets *t, struct buf *out);
void targets_free(struct targets *t);
/* Parses a name of letters, digits and _ . : / + -, which are safe in every text and in generated
 * code. */
canvas_status target_name_parse(struct lexer *lx, char out[TARGET_NAME_SIZE]);
/* Checks the sizes of one target: positive, within limits, groups dividing C_in and C_out. */
canvas_status target_check(canvas_context *ctx, const struct target *t);
/* Whether two targets differ at most in their names. */
bool target_same(const struct target *a, const struct target *b);
/* Cost of the replaced convolution: macs and params (no bias), activations, bytes. */
struct cost target_cost(const struct target *t);
/* Sizes of a kernel at this target, with G and x 0, and its number of copies. S is the stride if the
 * kernel uses S, else 1 and the input is pooled; k NULL: a kernel without S. */
void target_sizes(const struct target *t, const struct kernel *k, struct sizes *sizes,
                  int64_t *copies);
/* The same of a kernel that uses S, or does not. */
void target_sizes_as(const struct target *t, bool strided, struct sizes *sizes, int64_t *copies);
int64_t target_channels(const struct target *t);          /* C: gcd(C_in, C_out), projected C_out */
int64_t target_in_blocks(const struct target *t);         /* C_in/C, projected 1 */
int64_t target_out_blocks(const struct target *t);        /* C_out/C */
int64_t target_pixels(const struct target *t);            /* of one channel of the layer's output */
int64_t targets_common_channels(const struct targets *t); /* gcd of all channels */

/* -- bindings (binding.c) -- */
/* Checks that every dim and condition is whole, G | C, every tensor and weight (all copies) is
 * within the limit, and that there are weights if C_out has several blocks, since copies would be
 * equal otherwise (unless exempt). */
canvas_status binding_check(canvas_context *ctx, const struct kernel *k, const struct binding *b,
                            int64_t elements_limit, bool exempt);
/* Cost of one binding for one sample, including copies, pooling, projection and averaging; false:
 * beyond 2^62. */
bool binding_cost(const struct kernel *k, const struct binding *b, struct cost *out);
/* Cost of the projection of one sample; all 0 if there is none. */
struct cost projection_cost(const struct binding *b);
/* Elements that a node writes, parameters that it owns (weights, and scales and shifts of its norm)
 * and its macs, over all copies; false: beyond 2^62, or a dim is not whole. */
struct node_use {
  int64_t written, owned, macs;
};
bool node_measure(const struct kernel *k, const struct binding *b, int node, struct node_use *out);
/* The stride by which the input is average-pooled before the kernel: 1 if the kernel uses S. */
int64_t binding_pooling(const struct binding *b);
/* The layout of a node's weight: copies, then the axes of node_weight. Returns the number of axes,
 * 0 without weights. */
enum { WEIGHT_AXES = AXES_MAX + 1 };
int weight_shape(const struct kernel *k, const struct binding *b, int node,
                 int64_t out[WEIGHT_AXES]);
bool node_is_normed(const struct kernel *k, const struct binding *b, int node);

/* -- packs (pack.c) -- */
struct pack *pack_new(const struct kernel *k); /* copies k, without bindings */
void pack_free(struct pack *p);
/* Appends b to the last kernel of the list. b has the target, G (if the kernel uses it) and exactly
 * the x of the kernel; all other sizes follow. Checks with ELEMENTS_LIMIT_MAX and exempt, so that
 * solutions of wider options can be parsed. */
canvas_status pack_bind(canvas_context *ctx, struct pack *p, const struct binding *b);
/* Appends another kernel, a copy, which pack_bind binds from now on. */
void pack_add(struct pack *p, const struct kernel *k);
/* The target keeps its convolution. A target is bound or kept once. */
canvas_status pack_keep(canvas_context *ctx, struct pack *p, const struct target *t);
int pack_kernels(const struct pack *p);
int pack_bindings(const struct pack *p); /* of all kernels; bindings are numbered in this order */
/* The kernel of a numbered binding, *index within its own bindings; NULL past the last. */
const struct pack *pack_of_binding(const struct pack *p, int *index);
struct pack *pack_part(const struct pack *p, int kernel); /* a copy: one kernel, its bindings */
/* What identifies a kernel of a list among the others: isomorphic kernels are equal. */
struct pack_kernel {
  struct hash hash;
  bool decided; /* as kernel_hash reports it */
  int first;    /* place of the first equal kernel of the list; its own place if there is none */
  int before;   /* number of equal kernels at earlier places */
};
/* By place: pack_kernels(p) rows, which the caller frees by mem_free. */
struct pack_kernel *pack_identify(const struct pack *p);
/* That of the kernel; of several kernels or kept targets, of what each target has. */
struct hash pack_hash(const struct pack *p, bool *decided);
/* Appends what makes two packs different, such as "target 'a' has different kernels"; nothing if
 * they are equal target by target: in isomorphic kernels with equal sizes and norms, or kept in both.
 * CANVAS_NONE if a kernel is too symmetric to decide; `steps`: as for kernel_hash_within
 * (pack_compare.c). */
canvas_status pack_compare(canvas_context *ctx, const struct pack *a, const struct pack *b,
                           int steps, struct buf *out);
enum norm pack_norm(const struct pack *p);                  /* of the first kernel */
canvas_status norm_parse(struct lexer *lx, enum norm *out); /* parses `batch` or `none` */
bool pack_cost(const struct pack *p, struct cost *out);     /* of all targets; false: beyond 2^62 */
/* Parses "C=64,H=56,W=56,G=4,x0=64" (commas or blanks): C or Cin and Cout, H and W of the layer's
 * input; optionally K or KH and KW (3), stride (1), groups (1), dilation (1), name (t0), norm (none).
 * pack_bind checks G and x. */
canvas_status binding_parse_at(canvas_context *ctx, const char *text, size_t length,
                               struct binding *out);
canvas_status pack_parse(canvas_context *ctx, const char *text, size_t length, struct pack **out);
void pack_print(const struct pack *p, struct buf *out);
void binding_print(const struct kernel *k, const struct binding *b, struct buf *out); /* a line */

#endif
