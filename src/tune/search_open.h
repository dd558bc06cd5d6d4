/* Opens and closes a search; in between a method runs. */
#ifndef CANVAS_TUNE_SEARCH_OPEN_H
#define CANVAS_TUNE_SEARCH_OPEN_H

#include "tune/tuner.h"

/* `options` are completed: NULL and 0 mean none. Call search_close in any case. The compiler is
 * opened only for methods that measure. */
canvas_status search_open(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct tune_options *options,
                          struct search *s);
void search_close(struct search *s);

#endif
