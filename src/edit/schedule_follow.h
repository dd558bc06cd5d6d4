/* Adapts a schedule to an edit of its program (rewrite/program_edit.h): remaining stages keep their
 * loops, and new stages get a place.
 *
 *   cache Y as CC         CC takes the place of Y; the copy Y gets own loops after it
 *   cache X in Y as XC    XC goes to the root before Y. If Y's loops compute X, X moves to the root
 *                         first
 *   pack W as WP          WP goes to the root before its first consumer
 *   inline P              P goes away. If P reduces, its copy Y takes the loops of P; if they do
 *                         not fit, Y keeps its loops and gets the reduction loops of P inside
 *   rfactor Y k 16 as YP  YP takes the place of Y, with a loop of 16 lanes inside k. Y, which adds
 *                         the lanes, goes behind the reduction loops. Both lane loops are vector
 *                         loops unless a loop around or inside forbids it
 *   overlap P in Y h 8 as PO
 *                         PO goes into Y's loop over tiles of 8, which is made if there is none; if
 *                         that is not legal, to the root. P goes away if only Y loads it
 *   winograd Y 4          no schedule follows: the loops of Y do not fit its transforms
 */
#ifndef CANVAS_EDIT_SCHEDULE_FOLLOW_H
#define CANVAS_EDIT_SCHEDULE_FOLLOW_H

#include "bind/loop_tree.h"

/* The schedule that follows the edit of tree->program: legal for the edited program, and owned by
 * the caller. On failure the context has the reason. The tree has no open holes. */
canvas_status schedule_follow(canvas_context *ctx, const struct loop_tree *tree, const char *edit,
                              size_t length, struct schedule **out);

#endif
