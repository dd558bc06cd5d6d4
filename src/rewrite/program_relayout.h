/* A program whose inputs and outputs lie in other layouts, and which computes the same elements. */
#ifndef CANVAS_REWRITE_PROGRAM_RELAYOUT_H
#define CANVAS_REWRITE_PROGRAM_RELAYOUT_H

#include "rewrite/program_layout.h"

/* `text[tensor]` is the layout of a tensor as program_edit.h has them, `[n, c/16, h, w, c%16]`, of its own axes, or
 * NULL: as it is. Only of f32, f64 and bf16, and only layouts without places that hold nothing. Every load and the
 * definition of the tensor are rewritten, and a sum over an axis of which a layout has parts becomes a sum over the
 * parts, in the same order. CANVAS_BAD_INPUT says what is wrong with a layout. */
canvas_status program_relayout(canvas_context *ctx, const struct program *p,
                               const char *const *text, struct program **out);

#endif
