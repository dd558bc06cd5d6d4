/* A program that computes the same elements with its tensors in other layouts. With X in the layout
 * [n, c/16, h, c%16] and Y in [n, h, o]:
 *
 *     in X f32 [n:2, c:32, h:3]
 *     Y[n:2, o:4, h:3] = X[n, c, h] * W[o, c] // sum c:32
 * ->
 *     in X f32 [n:2, c_o:2, h:3, c_i:16]
 *     Y[n:2, h:3, o:4] = X[n, c_o, h, c_i] * W[o, c_o*16+c_i] // sum c_o:2, c_i:16
 */
#ifndef CANVAS_REWRITE_PROGRAM_RELAYOUT_H
#define CANVAS_REWRITE_PROGRAM_RELAYOUT_H

#include "rewrite/program_layout.h"

/* `text[tensor]` is the layout of the tensor in the syntax of program_edit.h; NULL keeps the tensor
 * as it is. The tensor is of f32, f64 or bf16, and the layout has no padding. A reduction over an
 * axis that a layout splits becomes a reduction over its parts, in the same order. CANVAS_BAD_INPUT
 * reports what is wrong with a layout. */
canvas_status program_relayout(canvas_context *ctx, const struct program *p,
                               const char *const *text, struct program **out);

#endif
