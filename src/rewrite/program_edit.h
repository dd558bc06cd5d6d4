/* Edits: a program becomes another that means the same, so that a schedule can lay out what it needs.
 * A schedule never introduces a stage; these do, and print as program text like any other:
 *
 *     cache Y as CC        CC computes what Y did, and Y copies it: a write cache
 *     cache X in Y as XC   XC copies X, and Y reads XC: a read cache
 *     pack W as WP [co/32, ci, kh, kw, co%32]
 *                          WP holds W in another layout, one index of W's axes per axis (or
 *                          NAME:index); all later stages read it
 *     inline P, Q          the expression of P stands in the place of every load of it, and that of Q; a sum only
 *                          in that of a stage that does nothing but copy it
 *     rfactor Y k 16 as YP YP has one axis more, of 16 partial sums over every 16th place of k, and Y
 *                          adds them up: lanes of a vector can run along the reduction
 *     border Y             Y multiplies what a condition of indices chooses only where that is no literal
 *                          0: an inf or nan beside a 0 shows as 0 then, and not as nan
 *     border Y as Z        ... and Z holds the sums of the products with 0, which Y adds up: nan as before
 *     overlap P in Y h 8 as PO
 *                          PO holds, for each 8 places of Y's axis h, all that Y reads of P for them:
 *                          rows that two of them read are there twice; P is gone if only Y read it
 *     outline Y exp(X[c]) as E
 *                          E computes this value of Y's expression, wherever it occurs there, and Y loads it. Its
 *                          axes are those that occur in the value; two that occur only together, as h and kh in
 *                          `h+kh-1`, are one axis: a border becomes a padded image
 *     columns Y X[h+kh] as XC
 *                          ... with an axis for each that occurs: what a window reads is there once for each of
 *                          its places, the columns of an image
 *     reciprocal Y sqrt(V[n] + 0.00001) as D
 *                          D is 1 divided by the value, and Y multiplies by D where it divided by it: one rounding
 *                          more; only where the value is proved to have a reciprocal in fp32
 *     straight Y X[(w+20)%56] w
 *                          this load of Y, one index of which depends on the axis w alone, becomes one for each of
 *                          few straight pieces of it, or one for most of it beside what it was
 *     turn P w as PT       PT is P with its axis w behind the others, and P is gone
 *     merge axes           axes that stand beside each other wherever they occur are one, but for the first output's
 *                          first axis: tensors have fewer axes and lie in memory as before
 *     normalize conditions conditions of indices are of < and <=, and hold where something is computed
 *     type X bf16          how X is stored: changes finite results, by rounding
 *     winograd Y, Z 4      Y, a convolution with windows of 3x3, is computed with fewer products, in tiles of
 *                          4x4 (or 2x2): changes finite results, by rounding, and spreads inf and nan over
 *                          a tile. The program says `winograd 4` after its name then
 *
 * An index of a layout is a sum of digits of axes (co, co/32, co%32, co/4%8), each times the product of
 * those after it, such as `(ci*3+kh)*3+kw` or `kh*3+kw`; all digits together give back every axis. Where
 * they overshoot (co/32 of 70), the layout is filled with zeros.
 */
#ifndef CANVAS_REWRITE_PROGRAM_EDIT_H
#define CANVAS_REWRITE_PROGRAM_EDIT_H

#include "program/program.h"

/* The program after the edit, verified; `p` stays as it is. The error message of a rejection has line and
 * column of the edit's text, or says what is wrong with the program it would give. */
canvas_status program_edit(canvas_context *ctx, const struct program *p, const char *text,
                           size_t length, struct program **out);
/* ... not verified yet: who keeps it does that (program_verify). */
canvas_status program_edit_unverified(canvas_context *ctx, const struct program *p,
                                      const char *text, size_t length, struct program **out);

/* ---- which edits made a program ---- */

/* The edits of `from`, and one more, are those of `to`. Edits of texts do this themselves. */
void program_note_edit(struct program *to, const struct program *from, const char *text);
/* The texts of the edits that made it of `given`, a line each; NULL: it was not made of that. */
const char *program_edits_since(const struct program *p, const struct program *given);

/* What edits that a stranger may have written are let do beside what keeps every value: */
struct replay_rules {
  int winograd; /* tiles of Winograd's convolution up to this; 0: none */
};
enum { REPLAY_EDITS = 512, REPLAY_BYTES = 1 << 18 };
/* The program after the edits, one in each line. CANVAS_BAD_INPUT: one of them is none of this program, or changes
 * values: `type`, `border Y` without a name, `winograd` beyond the rules. */
canvas_status program_replay(canvas_context *ctx, const struct program *p, const char *edits,
                             const struct replay_rules *rules, struct program **out);

/* ---- edits by hand, whose texts are as above ---- */

/* Every convolution that the edit `winograd` takes, with tiles of 2 or 4; NULL where there is none. */
struct program *program_with_winograd(const struct program *p, int tile);

/* Stages that only move data, one load, or a number where the indices say so, are inlined; and what
 * an output only copies is computed by the output, where nothing else loads it. */
canvas_status program_inline_data_movement(canvas_context *ctx, const struct program *p,
                                           struct program **out);

/* `outline`, `columns` and `reciprocal`, of the value `node` of a stage's expression; the last of a divisor that
 * has_reciprocal (program_rebuild.h). */
canvas_status program_outline(canvas_context *ctx, const struct program *p, int stage, int node,
                              const char *name, struct program **out);
canvas_status program_columns(canvas_context *ctx, const struct program *p, int stage, int node,
                              const char *name, struct program **out);
canvas_status program_reciprocal(canvas_context *ctx, const struct program *p, int stage, int node,
                                 const char *name, struct program **out);

/* The load `node` of a stage, one of whose indices depends on the axis alone, as a load for each of few straight
 * pieces of it (index_pieces.h), or for the one that is most of it beside what it was; NULL where there are none. */
struct program *program_split_load(const struct program *p, int stage, int node, int axis);

/* A stage without reductions, `name` in its place, with one of its axes behind the others; NULL where that cannot be. It
 * is not verified: who keeps it does that (program_verify). */
struct program *program_transposed(const struct program *p, int stage, int axis, const char *name);

/* Axes beside each other that are so wherever they occur, in inputs and outputs, too, are one, but for the first
 * output's first axis: tensors have fewer axes and lie in memory as before. NULL where there are none. */
struct program *program_merge_axes(const struct program *p);

#endif
