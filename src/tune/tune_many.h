/* Several programs under one budget: each has a search of its own, and before each batch of trials it is
 * decided which of them goes on (task_gradient.h). */
#ifndef CANVAS_TUNE_TUNE_MANY_H
#define CANVAS_TUNE_TUNE_MANY_H

#include "tune/tuner.h"

struct tune_task {
  const struct program *program;
  double weight;      /* how often it runs: above 0 */
  struct tuned tuned; /* as of tune(); of a task that failed nothing but numbers */
  canvas_status status;
  char message[MESSAGE_SIZE];
};

/* trials and seconds of `options` are those of all together; of the trials as many as the method takes for
 * each unless given. Each task has a status of its own. The answer is the worst of them that is not
 * CANVAS_NONE, with its message. */
canvas_status tune_many(canvas_context *ctx, struct tune_task *tasks, int count,
                        const struct machine *machine, const struct tune_options *options);

#endif
