/* Many candidates of one program: each compiled, checked and timed, each with a verdict.
 *
 * So many go into one file for the compiler; while those of one file are measured the next is compiled,
 * in a process beside. Time is processor time, which that moves little, but what shall be timed as well
 * as can be is timed in a call of its own, of one file.
 *
 * Whatever a candidate or the compiler does, its verdict says so, the others are judged as if it were
 * not there, and all of it ends in time.
 */
#ifndef CANVAS_RUN_BATCH_H
#define CANVAS_RUN_BATCH_H

#include "run/compiler.h"
#include "run/measure.h"

struct batch_candidate {
  const char *text; /* C; NULL: none, its verdict is there already */
  const char
      *function; /* in it, as emit_c writes one: a pointer for each input, then each output */
  const struct measure_prepare *prepare; /* NULL: nothing; else it is two functions */
  bool winograd;                         /* as of its struct measure_item */
};

struct batch_options {
  int together;   /* candidates per file that is compiled; 0: 20 */
  bool apart;     /* each is in a file of its own, and all are measured together: by turns, if
                     limits.turns says so */
  double seconds; /* for all; what is not judged by then has FAILED_TIMEOUT; 0: no limit */
  struct measure_limits limits;
};

/* A status other than CANVAS_OK: the cache or the system fails, nothing is judged. */
canvas_status batch_run(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                        const struct batch_candidate *candidates, int count,
                        const struct batch_options *options, struct verdict *verdicts);

/* Compiles one, so that batch_run finds it compiled where it is apart. */
canvas_status batch_compile(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                            const struct batch_candidate *candidate);

#endif
