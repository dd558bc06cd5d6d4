/* Candidates in a child: each loaded, run, compared with the interpreter, and only then timed.
 *
 *     load -> run over the first poison -> compare with what is expected
 *          -> run over the second, malloc's memory poisoned both times -> the same, all written
 *          -> warm up (not what takes 20 ms) -> timed samples -> the outputs are still the same
 *
 * Tensors are checked beside memory that nobody may touch and timed where there is none near (block_new_timed).
 *
 * Time is processor time of the thread, the only one that runs: other work on the machine moves it
 * little. Of several threads it is wall-clock; the first run is one thread's then, so that all others
 * show that the result does not depend on their number. A sample is one call, or as many as take 20 us
 * together; median and quartiles are of `repeats` samples, of fewer where they would take longer than
 * `timing` (five at least, or as many as there is time for within `seconds`). The child may only read
 * inputs and expected values, and its answer is checked before it is believed.
 *
 * What shall be compared closely is timed by turns: one child keeps all candidates that were right so far, and
 * they run one after the other, round after round, so that what moves the clock moves all of them.
 *
 * A child serves one candidate after the other, as a fork of a large process takes as long as a small
 * candidate. It ends with the first that fails, and a failure counts only in a child that has served no
 * other: whatever a candidate did before it was noticed costs nobody else.
 */
#ifndef CANVAS_RUN_MEASURE_H
#define CANVAS_RUN_MEASURE_H

#include "run/expected.h"
#include "run/verdict.h"

/* 0: what stands behind. */
struct measure_limits {
  double seconds; /* of processor time of a candidate, for each thread: 10 */
  double wall;    /* by the clock: CHILD_WALL times `seconds` */
  int64_t memory; /* bytes beside the tensors: 1 GiB */
  double timing;  /* seconds for the timed samples: 1 */
  int repeats;    /* samples: 30; 1 to 1000 */
  int threads;    /* that parallel loops run on from the second run on: 1 */
  double until;   /* a time of clock_wall by which all ends: none */
  bool early;     /* five samples are enough where each is a quarter above the best median so far,
                     one where it is twice that */
  double best;    /* ... which was this before the first: none */
  int64_t
      cold; /* bytes to rotate through (cold_bytes), for a second time, in verdict.cold: not taken */
  int turns; /* rounds in which all that are right are timed by turns, the second round backwards, ...: none */
  double *times; /* ... seconds of a run, by item, then by round; those that were not taken stay */
  int turns_least;    /* so many of them whatever the time is; ... */
  double turns_until; /* ... others that end by this time of clock_wall: all */
};

/* What a candidate prepares before it runs: NAME_prepare takes some of the inputs and memory of so many
 * bytes, NAME others, that memory and the outputs. Both are checked, NAME alone is timed. */
struct measure_prepare {
  int64_t bytes;
  const bool *prepare, *rest; /* by input */
};

struct measure_item {
  const char *path;                      /* of a shared object, which several may share */
  const char *function;                  /* as of its struct source */
  const struct measure_prepare *prepare; /* NULL: nothing */
  bool winograd;                         /* its bound is the wide one of what is expected */
};

/* `best` after another verdict. */
void measure_best(struct measure_limits *limits, const struct verdict *verdict);

/* A verdict for each. A status other than CANVAS_OK: no child could be started. */
canvas_status measure(canvas_context *ctx, const struct expected *e,
                      const struct measure_item *items, int count,
                      const struct measure_limits *limits, struct verdict *verdicts);

#endif
