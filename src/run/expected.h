/* What a program's outputs have to be, on inputs of its own: worked out once, and compared with what each
 * candidate writes.
 *
 * Inputs are random (program_fill), stored as their types store them. The interpreter evaluates elements
 * (places.h) for `spot` seconds. A small output is done by then. Else a compiled reference
 * (reference.h) gives all elements and their bounds; it has to agree with the interpreter on every element
 * that was evaluated, to a thousandth of what rounding in fp32 explains. Where there is no reference,
 * or it does not agree, the interpreter goes on: for `seconds`, to the whole of a small output and
 * `samples` elements of a large one. How many are known is always told.
 *
 * Winograd's convolution (program_edit.h) is the one edit that rounds beyond another order of sums, so code
 * of it is held to another bound, where that is asked for: the values are those of the program as it was
 * given, and the bound is the program's plus that of what program_with_winograd makes of it, worked out by the same
 * rules. Of a candidate nothing is asked but whether it is such a one.
 */
#ifndef CANVAS_RUN_EXPECTED_H
#define CANVAS_RUN_EXPECTED_H

#include "program/program.h"
#include "run/block.h"
#include "run/verdict.h"

/* 0: what stands behind. */
struct expected_options {
  uint64_t seed;
  int64_t whole;                   /* elements of an output that is evaluated whole: 65536 */
  int64_t samples;                 /* of a larger one: 4096 */
  double seconds;                  /* for the interpreter, all outputs together: 30 */
  double spot;                     /* of these before a reference is compiled: 0.5 */
  const struct compiler *compiler; /* that compiles it; NULL: the interpreter alone */
  int winograd; /* 2 or 4: candidates may be what the edit `winograd` makes with tiles up to that; 0: none */
};

struct expected_output {
  char name[PROGRAM_NAME];
  enum program_dtype dtype;
  int64_t elements;
  int rank;
  int64_t sizes[PROGRAM_AXES];
  struct block memory; /* for a candidate to write to where it is checked, with zones around */
  struct block
      timed;     /* ... and where it is timed: `memory`, or a place of its own for a small one */
  int64_t count; /* elements that are known ... */
  int64_t *at;   /* ... their flat places (NULL: all elements in their order), */
  double *want, *bound; /* values, and how far from them code may be */
  struct block known;   /* where these three lie */
};

struct expected {
  int inputs, outputs;
  struct block *input; /* where candidates are checked: nothing can be read past their ends */
  struct block *timed; /* the same values where they are timed: `input`, or a copy of a small one */
  struct expected_output *output;
  struct expected_output
      *wide;    /* the same for candidates made by `winograd`, with the bound of that added
                                   to that of the program; NULL: there is none. Shares `memory` */
  int winograd; /* the largest tile that is permitted, as in the options */
  size_t bytes; /* of all tensors */
  char
      without[MESSAGE_SIZE]; /* why there is no reference; "" if there is one, or none was needed */
};

canvas_status expected_new(canvas_context *ctx, const struct program *p,
                           const struct expected_options *options, struct expected **out);
void expected_free(struct expected *e); /* NULL is fine */

/* Everything but the outputs' memory becomes read-only in this process. */
void expected_seal(const struct expected *e);

/* The outputs, poisoned with `pattern`, get ready for a run; then the verdict on what a run made of
 * them: FAILED_NOT or FAILED_WRONG with the first wrong element. */
void expected_poison(const struct expected *e, int pattern);
void expected_compare(const struct expected *e, int pattern, bool winograd, struct verdict *v);

/* What a timed run made of the outputs, to where the others look at it. */
void expected_take_timed(const struct expected *e);

/* Verdict on a second run, over the other pattern, beside a copy of what the first made of each
 * output: the same, and everything written. */
void expected_repeat(const struct expected *e, unsigned char *const *first, struct verdict *v);

#endif
