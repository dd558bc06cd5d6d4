/* Edits of programs: an edit makes a program into another one with the same meaning.
 *
 * A schedule never adds a stage; an edit does. The result is an ordinary program, which prints as
 * text. The head of each file shows program text before -> after.
 *
 *     edit                        what it does                                 file
 *     `cache Y as YC`             write cache: YC computes Y, and Y copies YC  program_rebuild.c
 *     `cache X in Y as XC`        read cache: XC copies X, and Y reads XC      program_rebuild.c
 *     `pack W as WP [k/16, k%16]` changes the layout: all later stages read WP program_rebuild.c
 *     `inline P, Q`               puts the expressions into the consumers      program_rebuild.c
 *     `rfactor Y k 16 as YP`      splits the reduction into 16 partial ones    program_rebuild.c
 *     `overlap P in Y h 8 as PO`  stores P in overlapping tiles of 8 rows of Y program_rebuild.c
 *     `turn P w as PT`            transposes: axis w is the innermost of PT    program_rebuild.c
 *     `type X bf16`               changes the data type that X is stored in    program_rebuild.c
 *     `border Y`                  multiplies inside the zero padding only      program_border.c
 *     `border Y as Z`             the same; Z sums the products of the padding program_border.c
 *     `outline Y exp(X[c]) as E`  E computes this value of Y, and Y loads it   program_outline.c
 *     `columns Y X[h+kh] as XC`   im2col: the same, h and kh stay two axes     program_outline.c
 *     `reciprocal Y V[n] as D`    replaces a division by a product with D      program_reciprocal.c
 *     `straight Y X[(w+20)%56] w` one load per affine piece of the index       program_straight.c
 *     `merge axes`                fuses axes that are adjacent in every tensor program_merge.c
 *     `normalize conditions`      writes index conditions with < and <= only   program_conditions.c
 *     `winograd Y, Z 4`           Winograd convolution in tiles of 4x4 or 2x2  program_winograd.c
 *
 * Which edits change finite results, and how:
 * - `type` rounds stored elements; `winograd` rounds differently and spreads inf and nan over a
 *   tile. The text of the program then has `winograd 4` after its name.
 * - `reciprocal` adds one rounding per division. It is legal only for values that are proved to
 *   have a normal reciprocal in f32.
 * - `border Y` without a name: an inf or nan that the padding multiplies by 0 gives 0 instead of
 *   nan.
 * - `rfactor` changes the order of a sum.
 *
 * An index of a layout is a sum of digits of axes (co, co/32, co%32, co/4%8). Each digit is
 * multiplied by the product of the digits after it, as in `(ci*3+kh)*3+kw`. All digits together
 * give back every axis. `NAME:index` names the axis of the layout. Where digits overshoot an axis
 * (co/32 of 70), the layout is padded with zeros.
 */
#ifndef CANVAS_REWRITE_PROGRAM_EDIT_H
#define CANVAS_REWRITE_PROGRAM_EDIT_H

#include "program/program.h"

/* The program after the edit, verified; `p` does not change. The error message gives line and
 * column of the edit's text, or names the rule that the resulting program breaks. */
canvas_status program_edit(canvas_context *ctx, const struct program *p, const char *text,
                           size_t length, struct program **out);
/* The program after the edit, not verified: the caller has to call program_verify. */
canvas_status program_edit_unverified(canvas_context *ctx, const struct program *p,
                                      const char *text, size_t length, struct program **out);

/* ---- which edits made a program ---- */

/* Records in `to` the edits of `from`, and one more. program_edit does this itself. */
void program_note_edit(struct program *to, const struct program *from, const char *text);
/* The texts of the edits that made `p` of `given`, one per line; NULL if `p` does not stem from
 * `given`. */
const char *program_edits_since(const struct program *p, const struct program *given);

/* What untrusted edits (of a tuning log) may do beside edits that keep every value. */
struct replay_rules {
  int winograd; /* largest tile of Winograd's convolution; 0: none */
};
enum { REPLAY_EDITS = 512, REPLAY_BYTES = 1 << 18 };
/* The program after the edits, one per line. CANVAS_BAD_INPUT: an edit does not fit the program, or
 * it changes values: `type`, `border Y` without a name, `winograd` beyond the rules. */
canvas_status program_replay(canvas_context *ctx, const struct program *p, const char *edits,
                             const struct replay_rules *rules, struct program **out);

/* ---- edits as functions; each records the text of its edit ---- */

/* Applies `winograd` with tiles of 2 or 4 to every convolution that allows it; NULL if none
 * does. */
struct program *program_with_winograd(const struct program *p, int tile);

/* Inlines every stage that only moves data: one load, or a constant chosen by index conditions.
 * Where an output only copies a stage that nothing else loads, the output computes it. */
canvas_status program_inline_data_movement(canvas_context *ctx, const struct program *p,
                                           struct program **out);

/* `outline`, `columns` and `reciprocal` of the value `node` of a stage's expression. For
 * program_reciprocal the value is a divisor for which has_reciprocal holds (program_rebuild.h). */
canvas_status program_outline(canvas_context *ctx, const struct program *p, int stage, int node,
                              const char *name, struct program **out);
canvas_status program_columns(canvas_context *ctx, const struct program *p, int stage, int node,
                              const char *name, struct program **out);
canvas_status program_reciprocal(canvas_context *ctx, const struct program *p, int stage, int node,
                                 const char *name, struct program **out);

/* `straight`: the load `node` of a stage, one index of which depends on the axis alone, becomes one
 * load per affine piece of that index. NULL where program_straight.c finds no pieces worth it. */
struct program *program_split_load(const struct program *p, int stage, int node, int axis);

/* `turn`: stage `name` replaces a stage without reductions and has one of its axes innermost. NULL
 * if the stage cannot be inlined. Not verified: the caller has to call program_verify. */
struct program *program_transposed(const struct program *p, int stage, int axis, const char *name);

/* `merge axes`: fuses axes that are adjacent wherever they occur, inputs and outputs included, but
 * never the first axis of the first output (the batch). Memory layouts stay the same. NULL if there
 * are none. */
struct program *program_merge_axes(const struct program *p);

#endif
