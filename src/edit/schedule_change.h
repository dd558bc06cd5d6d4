/* What the files that change schedules share. All of it works on a copy that is checked afterwards. */
#ifndef CANVAS_EDIT_SCHEDULE_CHANGE_H
#define CANVAS_EDIT_SCHEDULE_CHANGE_H

#include "schedule/schedule.h"

/* A stage in the node names the level. */
bool change_names(const struct schedule *s, int node, int level);

/* What is left of a changed copy, which is freed: loops with stages, levels with loops. */
struct schedule *change_tidy(struct schedule *changed);

/* y  ->  y, inner  in all loops, axes and layouts; false where there is no room. */
bool change_split(struct schedule *s, int level, int inner);

void change_detach(struct schedule *s, int node);
void change_attach(struct schedule *s, int node, int parent, int before); /* -1: as the last */

/* A loop like this one as the last child of `node`, or with node -1 of nobody. */
int change_open_again(struct schedule *s, const struct schedule_loop *loop, int node);

#endif
