/* Which of several programs a shared budget is best spent on: the gradient of Ansor's task scheduler.
 *
 *     weight * (0.2 * what the last batches gained per trial + 0.8 * what the next ones may)
 *
 * What they may gain is the least of two guesses: the time falls as 1/trials, or it comes to half of the speed
 * of the fastest similar program. The program with the steepest fall is next. */
#ifndef CANVAS_TUNE_TASK_GRADIENT_H
#define CANVAS_TUNE_TASK_GRADIENT_H

#include <stdbool.h>

enum { TASK_WINDOW = 3 };

struct task_state {
  double weight; /* how often the program runs */
  double flops;
  double expected;            /* seconds of the default by the model, before there are trials */
  int trials;                 /* so far; 0: it comes first, the longest of these before others */
  double best;                /* seconds; INFINITY: nothing was correct */
  double before[TASK_WINDOW]; /* ... the batches before, the oldest first, and ... */
  int trials_before[TASK_WINDOW]; /* ... the trials then; a batch that was not: 0 */
  int similar;                    /* programs of one number are similar */
  bool ended;                     /* it has no more to try */
};

/* Seconds that a trial is expected to change, times its weight: 0 or less; -INFINITY: it comes first. */
double task_gradient(const struct task_state *tasks, int count, int task);
/* The task with the least gradient; -1: all have ended. */
int task_next(const struct task_state *tasks, int count);
/* After a batch. */
void task_note(struct task_state *t, int trials, double best);

#endif
