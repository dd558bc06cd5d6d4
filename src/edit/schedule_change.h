/* Helpers of the files that change schedules. They work on a copy of a schedule; the caller binds
 * the copy afterwards, which checks it. */
#ifndef CANVAS_EDIT_SCHEDULE_CHANGE_H
#define CANVAS_EDIT_SCHEDULE_CHANGE_H

#include "schedule/schedule.h"

/* Whether a stage inside the node is indexed by the level. */
bool change_names(const struct schedule *s, int node, int level);

/* Returns the copy without loops that hold no stage and levels that have no loop; frees
 * `changed`. */
struct schedule *change_tidy(struct schedule *changed);

/* Splits a level: y  ->  y, inner  in all loops, axes and layouts; false if a list would get too
 * long. */
bool change_split(struct schedule *s, int level, int inner);

void change_detach(struct schedule *s, int node);
void change_attach(struct schedule *s, int node, int parent,
                   int before); /* -1: as the last child */

/* Adds a copy of the loop as the last child of `node`; with node -1, detached. Returns its node. */
int change_open_again(struct schedule *s, const struct schedule_loop *loop, int node);

#endif
