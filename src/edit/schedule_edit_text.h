/* Edits of a bound schedule as text, one edit per text. */
#ifndef CANVAS_EDIT_SCHEDULE_EDIT_TEXT_H
#define CANVAS_EDIT_SCHEDULE_EDIT_TEXT_H

#include "edit/schedule_edit.h"

/*     split LOOP INT                 merge OUTER INNER           extent LOOP INT|open|?
 *     reorder LOOP                   group LOOP {MARK}           ungroup LOOP
 *     mark LOOP {MARK} [pf INT]      tail LOOP mask|peel|none
 *     move STAGE to LOOP|root [before STAGE]
 *     keep STAGE NAME {, NAME} [reg|l1|heap]                       stream STAGE
 *
 * LOOP is the name of a loop, with `of STAGE` if several loops have it. MARK is para, vec, unroll
 * or fold. Each calls the function edit_... of schedule_edit.h; errors give line and column of the
 * edit. */
canvas_status schedule_edit_text(canvas_context *ctx, const struct loop_tree *tree,
                                 const char *text, size_t length, struct loop_tree **out);

#endif
