/* Loads, runs, checks and times candidates in a child process.
 *
 *     load -> run over poison -> compare with the expected outputs
 *          -> run over other poison, malloc poisoned both times -> same outputs, all written
 *          -> warm up (unless a run takes 20 ms) -> timed samples -> same outputs
 *
 * Tensors are checked next to inaccessible memory but timed away from it (block_new_timed).
 *
 * With one thread, processor time is measured, which other work disturbs little. With several it is
 * wall-clock time, and the first run uses one thread, to show that results do not depend on their
 * number. A sample is one call, or as many as take 20 us. Median and quartiles are of `repeats`
 * samples, or of fewer within `timing` seconds (at least five, if `seconds` allow). The child can
 * only read inputs and expected values, and its results are validated.
 *
 * For close comparisons candidates are timed interleaved: one child keeps all candidates that were
 * right and runs them one after another, round after round, so that disturbances affect all alike.
 *
 * A child judges many candidates, since forking a large process takes as long as a small candidate.
 * It ends at the first failure. A failure counts only if it was the child's first candidate, so
 * that nothing an earlier candidate did can fail a later one.
 */
#ifndef CANVAS_RUN_MEASURE_H
#define CANVAS_RUN_MEASURE_H

#include "run/expected.h"
#include "run/verdict.h"

/* 0 selects the default given in the comment. */
struct measure_limits {
  double seconds; /* processor seconds of a candidate, per thread: 10 */
  double wall;    /* wall-clock seconds: CHILD_WALL times `seconds` */
  int64_t memory; /* bytes in addition to the tensors: 1 GiB */
  double timing;  /* seconds of timed samples: 1 */
  int repeats;    /* samples, 1 to 1000: 30 */
  int threads;    /* threads of parallel loops from the second run on: 1 */
  double until;   /* clock_wall time by which everything ends: none */
  bool early;     /* stops after five samples if all are 1.25 times the best median so far, after
                     one at twice the best */
  double best;    /* best median in seconds before the first candidate: none */
  int64_t
      cold;   /* bytes of cold copies (cold_bytes), for a second time, verdict.cold: not measured */
  int rounds; /* interleaved rounds of all correct candidates: none */
  double *times;       /* seconds of a run, by item, then by round; others stay unchanged */
  int rounds_least;    /* rounds that run regardless of rounds_until */
  double rounds_until; /* clock_wall time by which further rounds must end: none */
};

/* The load-time part of a candidate: NAME_prepare takes some inputs and `bytes` of memory; NAME
 * takes the rest, that memory and the outputs. Both are checked, only NAME is timed. */
struct measure_prepare {
  int64_t bytes;
  const bool *prepare, *rest; /* by input: passed to NAME_prepare; passed to NAME */
};

struct measure_item {
  const char *path;                      /* path of a shared object, which items may share */
  const char *function;                  /* as in its struct source */
  const struct measure_prepare *prepare; /* NULL: none */
  bool winograd;                         /* it is compared with expected.wide */
};

/* Updates limits->best with a verdict. */
void measure_best(struct measure_limits *limits, const struct verdict *verdict);

/* Fills a verdict for each item. Another status than CANVAS_OK: no child could be started. */
canvas_status measure(canvas_context *ctx, const struct expected *e,
                      const struct measure_item *items, int count,
                      const struct measure_limits *limits, struct verdict *verdicts);

#endif
