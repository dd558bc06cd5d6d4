/* How a search begins and ends; between the two a method runs. */
#ifndef CANVAS_TUNE_SEARCH_OPEN_H
#define CANVAS_TUNE_SEARCH_OPEN_H

#include "tune/tuner.h"

/* `options` without NULL and 0 but those that mean none. To be closed in any case. The compiler is opened
 * only for a method that measures. */
canvas_status search_open(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct tune_options *options,
                          struct search *s);
void search_close(struct search *s);

#endif
