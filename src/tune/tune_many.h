/* Tunes several programs under one budget. Each has its own search; before each batch of trials
 * task_gradient.h chooses which one continues. */
#ifndef CANVAS_TUNE_TUNE_MANY_H
#define CANVAS_TUNE_TUNE_MANY_H

#include "tune/tuner.h"

struct tune_task {
  const struct program *program;
  double weight;      /* how often it runs, above 0 */
  struct tuned tuned; /* result of tune(); of a failed task only numbers are set */
  canvas_status status;
  char message[MESSAGE_SIZE];
};

/* `options` has trials and seconds for all tasks together; trials default to the method's number
 * for each. Each task has its own status. Returns the first status that is neither CANVAS_OK nor
 * CANVAS_NONE, with its message. */
canvas_status tune_many(canvas_context *ctx, struct tune_task *tasks, int count,
                        const struct machine *machine, const struct tune_options *options);

#endif
