/* Chooses the program that a shared budget is best spent on: the gradient of Ansor's task
 * scheduler.
 *
 *     weight * (0.2 * gain per trial of the last batches + 0.8 * expected gain of the next)
 *
 * The expected gain is the larger of two guesses: the time falls as 1/trials, or it reaches half
 * the speed of the fastest similar program. The program with the steepest fall is next.
 */
#ifndef CANVAS_TUNE_TASK_GRADIENT_H
#define CANVAS_TUNE_TASK_GRADIENT_H

#include <stdbool.h>

enum { TASK_WINDOW = 3 };

struct task_state {
  double weight; /* how often the program runs */
  double flops;
  double expected;            /* predicted seconds of the default, used before there are trials */
  int trials;                 /* number of trials; programs without any come first, the longest of
                                 them before others */
  double best;                /* best seconds; INFINITY: nothing was correct */
  double before[TASK_WINDOW]; /* `best` before each of the last batches, the oldest first */
  int trials_before[TASK_WINDOW]; /* `trials` before each of the last batches; 0: no such batch */
  int similar;                    /* programs with the same number are similar */
  bool ended;                     /* no more candidates */
};

/* Expected change in seconds by a trial, times the weight: 0 or less; -INFINITY: comes first. */
double task_gradient(const struct task_state *tasks, int count, int task);
/* The task with the smallest gradient; -1: all have ended. */
int task_next(const struct task_state *tasks, int count);
/* Updates the state after a batch. */
void task_note(struct task_state *t, int trials, double best);

#endif
