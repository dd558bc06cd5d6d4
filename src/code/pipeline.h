/* From a bound schedule to finished code: the tree is built, then the passes of one table run in
 * order.
 *
 * code.h lists what each pass does. A build with CANVAS_VERIFY_PASSES (tests,
 * CMAKE_BUILD_TYPE=Debug) verifies the tree after each pass and names the pass in the message;
 * every build verifies the finished tree.
 */
#ifndef CANVAS_CODE_PIPELINE_H
#define CANVAS_CODE_PIPELINE_H

#include "bind/loop_tree.h"
#include "code/code.h"

struct code_pass {
  const char *name;           /* for messages and `canvas compile --after` */
  void (*run)(struct code *); /* changes a verified tree into a verified tree */
  const char *keeps; /* one sentence: what the pass requires or keeps, beside those rules */
};
extern const struct code_pass code_passes[]; /* in order; the last row has no name */

/* The code of a bound schedule after the pass `after`: NULL after all passes, "build" before the
 * first. The code is yours until code_free. CANVAS_BAD_INPUT: a pass that is not known, a loop
 * without a number (tree->open_holes), or code that becomes too large. */
canvas_status pipeline_run(canvas_context *ctx, const struct loop_tree *tree, const char *after,
                           struct code **out);

/* The passes of a table on code that is built, up to `after` as above. Fails where a pass breaks
 * the tree. */
canvas_status pipeline_apply(canvas_context *ctx, const struct code_pass *passes, const char *after,
                             struct code *c);

#endif
