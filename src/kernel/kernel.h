/* The micro-DAG of a kernel: nodes in topological order, the input first, the output last.
 *
 * Every node is made by kernel_add, which applies its primitive's shape rule, so that a kernel in
 * memory has consistent shapes at any time; kernel_verify says whether it is finished. Sizes are
 * symbolic: C, H, W, KH, KW belong to a target, G and the values of x0..x15 to a binding.
 */
#ifndef CANVAS_KERNEL_KERNEL_H
#define CANVAS_KERNEL_KERNEL_H

#include "kernel/primitive.h"

enum { KERNEL_NODES_MAX = 64, NODE_NAME_SIZE = 32, KERNEL_NAME_SIZE = 64 };

struct node {
  enum primitive op;
  int in[2]; /* indices of earlier nodes; -1 where unused */
  struct attrs attrs;
  struct shape shape;
  char name[NODE_NAME_SIZE];
};

struct kernel {
  char name[KERNEL_NAME_SIZE];
  int count;
  struct node nodes[KERNEL_NODES_MAX];
};

struct kernel *kernel_new(const char *name); /* holds the input node, named "a" */
struct kernel *kernel_copy(const struct kernel *k);
void kernel_free(struct kernel *k);

const struct row *node_row(const struct node *n);
const struct shape *node_input(const struct kernel *k, const struct node *n, int i);
/* The shape of one copy of the node's weight, its outputs first; false where it owns none. */
bool node_weight(const struct kernel *k, int node, struct shape *out);

/* Why the node could not be added to k (a clause), or NULL with its shape in *shape. */
const char *kernel_shape_of(const struct kernel *k, const struct node *n, struct shape *shape);
/* Appends; the name "" gives the next free one of a, b, ..., z, aa, ... */
canvas_status kernel_add(canvas_context *ctx, struct kernel *k, const struct node *n);
/* Puts `by` for variable x everywhere: attributes and shapes. Does not check. */
void kernel_substitute(struct kernel *k, int x, const struct dim *by);
/* Renumbers the variables in order of first use: x0, x1, ... */
void kernel_renumber(struct kernel *k);

/* Applies every shape rule again, as a substitution may have changed what a node means: NULL if all
 * shapes and conditions hold, else why *node is illegal. */
const char *kernel_recheck(const struct kernel *k, int *node);
/* Finished and legal: ends in an output, every node is used, kernel_recheck finds nothing. */
canvas_status kernel_verify(canvas_context *ctx, const struct kernel *k);
/* Calls `visit` for every dim that must be whole: shapes, then conditions, node by node. Stops and
 * returns false as soon as `visit` does. */
bool kernel_each_dim(const struct kernel *k,
                     bool (*visit)(void *data, int node, const struct dim *d), void *data);
unsigned kernel_variables(const struct kernel *k); /* a bit per x that occurs */
bool kernel_uses(const struct kernel *k, enum size s);
bool kernel_has_weights(const struct kernel *k);
/* Whether the node owns weights and its value is not what the kernel hands on: between the node and
 * `out` stands more than primitives that only move data (group, shift, unfold, subsample). */
bool node_is_inner(const struct kernel *k, int node);
bool kernel_has_inner_weights(const struct kernel *k);
bool kernel_needs_fixed_hw(const struct kernel *k); /* a weight's shape holds H or W */
int kernel_primitives(const struct kernel *k);      /* nodes, input and output not counted */

/* What a node has seen of the input: the pixels it reads relative to its own, along each spatial
 * axis (bit 32 is its own; behind a stride its pixels are S apart and count as one), and whether an fc has mixed all channels on the way to it. Folds and
 * softmaxes see the whole image but tell no neighbour from another: they do not count. `of` holds
 * the reach of every earlier node. */
struct reach {
  uint64_t h, w;
  bool mixed;
};
struct reach node_reach(const struct kernel *k, int node, const struct reach *of);
bool reach_along(uint64_t offsets); /* more than one pixel */
/* NULL if the kernel sees neighbours along both spatial axes (more than one pixel: a lone shift only
 * moves the image) and mixes all channels with weights; else the error message why not. */
const char *kernel_reach(const struct kernel *k);
/* The same for images that have no neighbours along an axis: there none must be seen. */
struct neighbours {
  bool h, w;
};
const char *kernel_reach_on(const struct kernel *k, struct neighbours images);

/* -- text (kernel_text.c) -- */
/* One kernel: `canvas 1`, `kernel NAME`, nodes, `out NODE`. Stops after the `out` line. */
canvas_status kernel_parse(struct lexer *lx, struct kernel **out);
void kernel_print(const struct kernel *k, struct buf *out);
/* The same below the line of the version: a text of several kernels has that line once. */
canvas_status kernel_parse_body(struct lexer *lx, struct kernel **out);
void kernel_print_version(struct buf *out);
void kernel_print_body(const struct kernel *k, struct buf *out);
void node_print(const struct kernel *k, int node, struct buf *out); /* without name and shape */

/* -- identity (kernel_hash.c) -- */
struct hash {
  uint64_t high, low;
};
/* Equal for isomorphic kernels and, up to collisions of 128 bits, different for others: names,
 * numbering of x, order of independent nodes and swapped commutative inputs of equal shape do not
 * count. *decided (NULL: not asked for) is false for a kernel so symmetric that the search for its
 * canonical form was given up: only the same kernel written the same way has its hash. */
struct hash kernel_hash(const struct kernel *k, bool *decided);
/* The same with another limit of search steps, for tests. */
struct hash kernel_hash_within(const struct kernel *k, int steps, bool *decided);
bool hash_equal(struct hash a, struct hash b);
struct hash hash_add(struct hash h, uint64_t value); /* of a sequence, from {0, 0} on */

/* -- picture (spell/dot.c and spell/picture.c draw it) and cost (cost.c) -- */
struct cost {
  int64_t macs;        /* multiply-accumulates of contractions: half of FlopCounterMode's FLOPs */
  int64_t params;      /* weights, and of a binding the scales and shifts of norms */
  int64_t activations; /* elements written by nodes that compute */
  int64_t elementwise; /* other scalar operations */
  int64_t bytes;       /* fp32 read and written by nodes that compute, weights once */
};
/* Of the bare kernel, one sample; false where a dim is not whole or a number passes 2^62. */
bool kernel_cost(const struct kernel *k, const struct sizes *sizes, struct cost *out);
bool cost_add(struct cost *sum, const struct cost *c, int64_t times); /* false on overflow */

#endif
