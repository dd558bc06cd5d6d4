/* Rules of drawing: what most poor kernels break and few good ones (docs/reports/draws.md has the
 * price of each). A row of the table is a rule; the sampler checks rules while a kernel grows and once it
 * is finished; mutation and reports list the names of the rules that a kernel breaks.
 */
#ifndef CANVAS_SAMPLE_RULES_H
#define CANVAS_SAMPLE_RULES_H

#include "kernel/pack.h"

enum rule {
  RULE_UNBOUNDED_PRODUCT,
  RULE_FC_ON_FC,
  RULE_ON_INPUT,
  RULE_NONLINEAR,
  RULE_FIXED_SIZE,
  RULE_BYTES,
  RULE_COUNT
};

enum { BENDING_LEAST = 3 }; /* kernels of fewer primitives keep RULE_NONLINEAR as they are */

struct rules {
  unsigned on;   /* a bit per rule */
  int64_t bytes; /* of RULE_BYTES: thousandths of what dense convolutions move */
};

/* What a rule looks at: a kernel at layers, where every size has its value. */
struct judged {
  const struct kernel *k;
  const struct binding *layers;
  const int64_t *times; /* how many equal layers each stands for; NULL: one */
  int count;
  const struct rules *rules;
};
struct rule_row {
  const char *name, *meaning;
  bool (*broken)(const struct judged *j);
};
extern const struct rule_row rule_rows[RULE_COUNT];

/* The name of the first rule that a finished kernel breaks, or NULL. Its free sizes count as about
 * C/2 (free_sizes.h). times[i]: how many layers are as targets->data[i]; NULL: one. */
const char *rules_broken(const struct rules *rules, const struct kernel *k,
                         const struct targets *targets, const int64_t *times, int64_t g);
/* A bit for each rule that is broken at these layers: those of a pack, whose sizes are solved. */
unsigned rules_broken_at(const struct rules *rules, const struct kernel *k,
                         const struct binding *layers, int count);
/* Whether node `node`, the newest of a kernel that grows, breaks a rule whatever comes next. */
bool rules_break_at(const struct rules *rules, const struct kernel *k, int node);

/* -- RULE_BYTES -- */
int64_t rules_dense_bytes(const struct target *t); /* that the dense convolution moves */
/* The most bytes that a kernel may move where dense convolutions move so many. */
int64_t rules_bytes_most(const struct rules *rules, int64_t dense);

/* -- what rules ask of nodes -- */
bool node_bends(const struct node *n); /* an element-wise function that is not linear */
/* The node whose data this one shows: past groups, and past shifts too if `moved`. */
int node_source(const struct kernel *k, int node, bool moved);
/* Whether the row's column `not after` lists the word. */
bool row_not_after(const struct row *row, const char *word);

#endif
