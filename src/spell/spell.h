/* Kernels as texts for others: a PyTorch module, pictures. */
#ifndef CANVAS_SPELL_SPELL_H
#define CANVAS_SPELL_SPELL_H

#include "kernel/pack.h"
#include "program/program.h"

struct spelling;

/* of[i] scales the initial weights of wi of a kernel, in node order. */
struct gains {
  double of[KERNEL_NODES_MAX];
};

/* One self-contained Python text: imports and for each kernel of the pack a class `Kernel_<16 digits
 * of the hash>(nn.Module)` that holds every binding (none: it cannot be instantiated); for several
 * kernels or kept targets also KERNELS, a dict from targets to classes. `gains`: of each kernel;
 * NULL = all 1. `patterns`: whole runs of nodes as one operator of PyTorch where there is one
 * (patterns.c); the results are the same. The same pack gives the same bytes. */
canvas_status spell_torch(canvas_context *ctx, const struct pack *p, const struct gains *gains,
                          bool patterns, struct buf *out);

/* A Python function `name` that defines the program in TVM's tensor expressions, one te.compute per
 * stage, and returns its inputs and outputs. CANVAS_BAD_INPUT for what they cannot hold: reductions
 * whose bounds depend on data or on other axes. */
canvas_status spell_tvm(canvas_context *ctx, const struct program *p, const char *name,
                        struct buf *out);

/* Sums over indices as in a paper, a line for each node that computes; `latex`: comments and an align*
 * environment for each kernel. */
void spell_formula(const struct pack *p, bool latex, struct buf *out);
/* Those of `head`, lines of comments, and of `lines`, what spell_formula writes as text. */
void latex_of_formula(const char *head, const char *lines, struct buf *out);

/* Graphviz: a box per node with its line of text and its shape. */
void spell_dot(const struct kernel *k, struct buf *out);

/* SVG, laid out here: the same kernel gives the same bytes. */
void spell_svg(const struct kernel *k, struct buf *out);
/* The same for a pack: of several kernels or kept targets each different kernel with its targets. */
void spell_pack_svg(const struct pack *p, struct buf *out);

/* -- patterns.c -- */
struct pattern;
/* The first pattern that spells `node` together with nodes before it, or NULL; reads[0] is the
 * source, the node that its text reads instead of the node's input, reads[1] a second one or -1. */
const struct pattern *pattern_find(const struct spelling *s, int node, int reads[2]);
void pattern_spell(const struct pattern *p, struct spelling *s, int node, int source);

#endif
