/* Expected outputs of a program on random inputs: computed once, compared with each candidate's.
 *
 * Inputs come from program_fill, rounded to their types. The interpreter evaluates elements
 * (places.h) for `spot` seconds, which is enough for small outputs. Otherwise a compiled reference
 * (reference.h) gives all elements and bounds. It must agree with the interpreter on every
 * evaluated element, to a thousandth of the rounding bound of fp32. Without a valid reference the
 * interpreter continues for `seconds`: to all elements of a small output, `samples` of a large one.
 * `count` has the number of known elements.
 *
 * Winograd's convolution (program_edit.h) is the only edit that rounds more than a reordered sum.
 * If it is permitted, its candidates are compared with the values of the original program under a
 * wider bound: that of the program plus that of program_with_winograd's result.
 */
#ifndef CANVAS_RUN_EXPECTED_H
#define CANVAS_RUN_EXPECTED_H

#include "program/program.h"
#include "run/block.h"
#include "run/verdict.h"

/* 0 or NULL selects the default given in the comment. */
struct expected_options {
  uint64_t seed;
  int64_t whole;                   /* largest output, in elements, that is evaluated as a whole:
                                      65536 */
  int64_t samples;                 /* evaluated elements of a larger output: 4096 */
  double seconds;                  /* seconds of the interpreter for all outputs: 30 */
  double spot;                     /* seconds of these before a reference is compiled: 0.5 */
  const struct compiler *compiler; /* compiles the reference; NULL: only interpret */
  int winograd; /* largest tile of the edit `winograd` permitted to candidates, 2 or 4; 0: none */
};

struct expected_output {
  char name[PROGRAM_NAME];
  enum program_dtype dtype;
  int64_t elements;
  int rank;
  int64_t sizes[PROGRAM_AXES];
  struct block memory;  /* memory with zones that a checked candidate writes to */
  struct block timed;   /* memory of a timed candidate: `memory`, or a copy if small */
  int64_t count;        /* number of known elements */
  int64_t *at;          /* their row-major indices; NULL: all elements in order */
  double *want, *bound; /* expected values and allowed distances from them */
  struct block known;   /* storage of at, want and bound */
};

struct expected {
  int inputs, outputs;
  struct block *input; /* inputs of checked candidates: reading past the end crashes */
  struct block *timed; /* inputs of timed candidates: `input`, or a copy if small */
  struct expected_output *output;
  struct expected_output
      *wide;    /* outputs for candidates made by `winograd`, with the wider bound; shares `memory`;
                   NULL: none */
  int winograd; /* largest permitted tile, as in the options */
  size_t bytes; /* bytes of inputs and outputs */
  char without[MESSAGE_SIZE]; /* why there is no reference; "": there is one, or none was needed */
};

canvas_status expected_new(canvas_context *ctx, const struct program *p,
                           const struct expected_options *options, struct expected **out);
void expected_free(struct expected *e); /* NULL is fine */

/* Makes everything except the outputs' memory read-only in this process. */
void expected_seal(const struct expected *e);

/* expected_poison fills the outputs with a pattern before a run. expected_compare judges them after
 * it: FAILED_NOT, or FAILED_WRONG with the first wrong element. */
void expected_poison(const struct expected *e, int pattern);
void expected_compare(const struct expected *e, int pattern, bool winograd, struct verdict *v);

/* Copies the outputs of a timed run to `memory`, where the other functions read them. */
void expected_take_timed(const struct expected *e);

/* Judges a second run over the other pattern: all elements must be written and equal to `first`,
 * copies of the first run's outputs. */
void expected_repeat(const struct expected *e, unsigned char *const *first, struct verdict *v);

#endif
