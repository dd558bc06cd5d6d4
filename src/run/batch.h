/* Judges many candidates of one program: compiles, checks and times each.
 *
 * Several candidates share a file. While one file is measured, another process compiles the next.
 * Processor time is measured, which this disturbs little; for exact times measure candidates of one
 * file in a call of their own.
 *
 * Whatever a candidate or the compiler does, only its own verdict changes, and the call ends in
 * time.
 */
#ifndef CANVAS_RUN_BATCH_H
#define CANVAS_RUN_BATCH_H

#include "run/compiler.h"
#include "run/measure.h"

struct batch_candidate {
  const char *text;                      /* C code; NULL: none, its verdict exists already */
  const char *function;                  /* function as emit_c writes it: inputs, then outputs */
  const struct measure_prepare *prepare; /* the load-time part, a second function; NULL: none */
  bool winograd;                         /* as in struct measure_item */
};

struct batch_options {
  int together;   /* candidates per file; 0: 20 */
  bool separate;  /* one file for each, all measured together; `limits.rounds` interleaves them */
  double seconds; /* seconds for all candidates; others get FAILED_TIMEOUT; 0: no limit */
  struct measure_limits limits;
};

/* Another status than CANVAS_OK: the cache or the system fails, and nothing is judged. */
canvas_status batch_run(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                        const struct batch_candidate *candidates, int count,
                        const struct batch_options *options, struct verdict *verdicts);

/* Compiles one candidate into the cache, for a batch_run with `separate`. */
canvas_status batch_compile(canvas_context *ctx, const struct compiler *c, const struct expected *e,
                            const struct batch_candidate *candidate);

#endif
