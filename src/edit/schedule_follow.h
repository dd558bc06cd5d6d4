/* The schedule of a program that was edited (rewrite/program_edit.h): what it said of the stages that
 * are left, and a place for those that are new.
 *
 *     cache Y as CC        CC stands where Y did; Y, a copy, in loops of its own after it
 *     cache X in Y as XC   XC stands at the root before Y; pack W as WP: before the first consumer
 *                          where these compute X themselves, X stands at the root before that
 *     inline P             P is gone; a copy Y of a P that reduces has the loops of P, or, where these
 *                          do not fit its axes, those of P that reduce within its own
 *     rfactor Y k 16 as YP YP stands where Y did, its lanes a loop of 16 within k; Y, which adds them
 *                          up, after the loops that reduced. Both loops over the lanes are vectors
 *                          where nothing around or in them forbids it
 *     overlap P in Y h 8 as PO
 *                          PO stands in Y's loop over tiles of 8, which is made if there is none, and
 *                          P is gone if only Y read it; where that cannot be, PO is at the root
 *     winograd Y 4         none: the loops of Y are none of its transforms
 */
#ifndef CANVAS_EDIT_SCHEDULE_FOLLOW_H
#define CANVAS_EDIT_SCHEDULE_FOLLOW_H

#include "bind/loop_tree.h"

/* The schedule after the edit of tree->program, legal for what program_edit makes of that, and yours; or
 * the context says why there is none. Every number of the tree is known. */
canvas_status schedule_follow(canvas_context *ctx, const struct loop_tree *tree, const char *edit,
                              size_t length, struct schedule **out);

#endif
