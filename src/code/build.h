/* A bound schedule -> the tree of code.h, as the schedule orders it; the passes of pipeline.h follow.
 * build_parts.h lists the files that build it. */
#ifndef CANVAS_CODE_BUILD_H
#define CANVAS_CODE_BUILD_H

#include "bind/loop_tree.h"
#include "code/code.h"

/* The code is yours until code_free. CANVAS_BAD_INPUT: a loop has no number (tree->open_holes), or
 * an expression or the code becomes too large. */
canvas_status code_build(canvas_context *ctx, const struct loop_tree *tree, struct code **out);

#endif
