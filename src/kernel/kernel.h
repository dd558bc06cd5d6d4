/* The micro-DAG of a kernel: nodes in topological order, the input first, the output last.
 *
 * kernel_add makes every node and applies the shape rule of its primitive, so that shapes are
 * always consistent; kernel_verify checks whether the kernel is finished. Sizes are symbolic: C, H,
 * W, KH and KW come from a target, G and the values of x0..x15 from a binding.
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

struct kernel *kernel_new(const char *name); /* has the input node, named "a" */
struct kernel *kernel_copy(const struct kernel *k);
void kernel_free(struct kernel *k);

static inline const struct row *node_row(const struct node *n) {
  return &primitive_rows[n->op];
}
static inline const struct shape *node_input(const struct kernel *k, const struct node *n, int i) {
  return &k->nodes[n->in[i]].shape;
}
/* The shape of one copy of the node's weight, outputs first; false: no weight. */
bool node_weight(const struct kernel *k, int node, struct shape *out);

/* Why the node cannot be added to k (a clause), or NULL with its shape in *shape. */
const char *kernel_shape_of(const struct kernel *k, const struct node *n, struct shape *shape);
/* Appends a node; the name "" selects the next free one of a, b, ..., z, aa, ... */
canvas_status kernel_add(canvas_context *ctx, struct kernel *k, const struct node *n);
/* Replaces variable x by `by` in attributes and shapes, without checks. */
void kernel_substitute(struct kernel *k, int x, const struct dim *by);
/* Renumbers the variables in order of first use: x0, x1, ... */
void kernel_renumber(struct kernel *k);

/* Applies every shape rule again, since a substitution may change what a node means. NULL: all
 * shapes and conditions hold; else why *node is illegal. */
const char *kernel_recheck(const struct kernel *k, int *node);
/* Checks that the kernel is finished and legal: it ends in an output, every node is used,
 * kernel_recheck finds nothing. */
canvas_status kernel_verify(canvas_context *ctx, const struct kernel *k);
/* Calls `visit` for every dim that must be whole: shapes, then conditions, node by node. Stops and
 * returns false once `visit` does. */
bool kernel_each_dim(const struct kernel *k,
                     bool (*visit)(void *data, int node, const struct dim *d), void *data);
unsigned kernel_variables(const struct kernel *k); /* mask of the x that occur */
bool kernel_uses(const struct kernel *k, enum size s);
bool kernel_has_weights(const struct kernel *k);
/* Whether the node owns a matrix of weights that makes channels and something other than data
 * movement (group, shift, unfold, subsample, ...) lies between it and `out`. */
bool node_is_inner(const struct kernel *k, int node);
/* What each number of the node's weight is at first; NAN: a random one. */
double node_initial(const struct node *n);
bool kernel_has_inner_weights(const struct kernel *k);
bool kernel_needs_fixed_hw(const struct kernel *k); /* a weight's shape depends on H or W */
int kernel_primitives(const struct kernel *k);      /* number of nodes without input and output */

/* What the layers that a kernel serves have along H and W, as masks of roles. */
struct neighbours {
  unsigned pixels;  /* some layer has several pixels */
  unsigned windows; /* some layer has several pixels and a window K of several */
};
void neighbours_add(struct neighbours *images,
                    const struct sizes *at); /* those of one more layer */

/* What a node depends on: the pixels of the input relative to its own, along each spatial axis (bit
 * 32 is its own, none: a constant; pixels that are S apart count as neighbours; a fold or a softmax
 * along the axis depends on all, and so does what does not read an input at its own place), and of
 * which channels, in 48ths: those it depends on, and those that a matrix of weights has mixed. `of` has
 * the reach of every earlier node. */
#define CHANNELS_ALL ((UINT64_C(1) << 48) - 1)
struct reach {
  uint64_t h, w;
  uint64_t channels, mixed;
  bool in_order; /* the channels stand as in the input */
};
struct reach node_reach(const struct kernel *k, int node, struct neighbours images,
                        const struct reach *of);
/* The axes along which several pixels must be seen and are not: a lone shift only translates. */
unsigned reach_missing(const struct reach *r, struct neighbours images);
/* NULL if the kernel depends on neighbours along both spatial axes and mixes all channels by
 * weights, at layers with windows; else why not, as an error message. */
const char *kernel_reach(const struct kernel *k);
/* The same for these layers: neighbours are required along the axes of images.windows alone, and
 * there a window k=K is one. */
const char *kernel_reach_on(const struct kernel *k, struct neighbours images);

/* -- text (kernel_text.c) -- */
/* Parses one kernel: `canvas 1`, `kernel NAME`, nodes, `out NODE`. Stops after the `out` line. */
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
/* Equal for isomorphic kernels and, up to collisions of 128 bits, different for others. Names,
 * numbers of x, the order of independent nodes and of commutative inputs of equal shape are
 * ignored. *decided (may be NULL) is false for a kernel so symmetric that the search for its
 * canonical form was stopped: then only the same text of it has the same hash. */
struct hash kernel_hash(const struct kernel *k, bool *decided);
/* The same with another limit of search steps, for tests; 0 is the usual one. With `sizes` the values of
 * the variables and of G count, too: an isomorphism takes each variable to one of the same value. */
struct hash kernel_hash_within(const struct kernel *k, const struct sizes *sizes, int steps,
                               bool *decided);
bool hash_equal(struct hash a, struct hash b);
struct hash hash_add(struct hash h, uint64_t value); /* of a sequence, from {0, 0} on */

/* -- picture (spell/dot.c and spell/picture.c draw it) and cost (cost.c) -- */
struct cost {
  int64_t macs;   /* multiply-accumulates of contractions: half of the FLOPs of FlopCounterMode */
  int64_t params; /* weights; for a binding also scales and shifts of norms */
  int64_t activations; /* elements written by nodes that compute */
  int64_t elementwise; /* other scalar operations */
  int64_t bytes;       /* bytes read and written in fp32 by nodes that compute, weights once */
};
/* Cost of the kernel alone for one sample; false: a dim is not whole or a number exceeds 2^62. */
bool kernel_cost(const struct kernel *k, const struct sizes *sizes, struct cost *out);
bool cost_add(struct cost *sum, const struct cost *c, int64_t times); /* false on overflow */

#endif
