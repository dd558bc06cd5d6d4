/* What is known of indices where a pass stands in a tree: the ranges of the counters around, and
 * sums that are not negative. It decides comparisons of indices.
 *
 *     1 <= h + kh        is the sum  h + kh - 1 >= 0
 *     with kh in 0..3 and the fact h - 1 >= 0 it is true
 */
#ifndef CANVAS_CODE_CODE_FACTS_H
#define CANVAS_CODE_CODE_FACTS_H

#include "code/code.h"

enum { FACT_TERMS = 8, FACT_FORMS = 2 };

/* coef*expr + ... + constant; the expressions are counters, and quotients and remainders of them.
 */
struct fact_sum {
  struct affine_term term[FACT_TERMS];
  int count;
  int64_t constant;
};

enum fact_truth { FACT_UNKNOWN, FACT_FALSE, FACT_TRUE };

struct fact_range {
  bool known;
  int64_t low, high; /* both included */
};

struct fact_counter {
  int depth; /* of its loop, the outermost has 1; 0: no loop around counts it */
  struct fact_range range;
};

struct facts {
  const struct code *c;
  struct {
    VEC(struct fact_counter);
  } counters; /* by variable */
  struct {
    VEC(struct fact_sum);
  } sums; /* >= 0 */
};

/* A comparison of indices as sums: it holds where all of them are >= 0, or, `negated`, where not
 * all. */
struct fact_comparison {
  struct fact_sum sum[FACT_FORMS];
  int count;
  bool negated;
};

void facts_open(struct facts *f, const struct code *c);
void facts_close(struct facts *f);

/* All values of an index; not known of one that is computed in a way that code.h does not know. */
struct fact_range facts_range(const struct facts *f, int expr);
/* sum + coef*term, where no part of it passes 2^62. */
struct fact_range fact_range_add(struct fact_range sum, struct fact_range term, int64_t coef);
struct fact_range facts_range_of_sum(const struct facts *f, const struct fact_sum *sum);

/* False for what is no comparison of indices, or one of other things than counters. */
bool facts_compare(const struct facts *f, int expr, struct fact_comparison *out);
enum fact_truth facts_decide_sum(const struct facts *f, const struct fact_sum *sum);
enum fact_truth facts_decide(const struct facts *f, int expr); /* any condition */

/* sum >= 0 is a fact, or else sum < 0, until facts_forget of what was there before. */
void facts_assume(struct facts *f, const struct fact_sum *sum, bool holds);
void facts_assume_condition(struct facts *f, int expr, bool holds);
int facts_mark(const struct facts *f);
void facts_forget(struct facts *f, int mark);

/* The depth of the innermost loop that it depends on; lanes do not count. */
int facts_depth(const struct facts *f, int expr);

#endif
