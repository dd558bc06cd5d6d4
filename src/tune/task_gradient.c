/* Computes the gradient of a shared budget. See task_gradient.h. */
#include "tune/task_gradient.h"

#include <math.h>

static const double ALPHA = 0.2, BETA = 2;

/* Change in seconds per trial over the last batches; 0 or less. */
static double backward(const struct task_state *t) {
  for (int i = 0; i < TASK_WINDOW; i++)
    if (t->trials_before[i] > 0 && t->trials > t->trials_before[i] && isfinite(t->before[i]))
      return (t->best - t->before[i]) / (t->trials - t->trials_before[i]);
  return 0;
}

/* FLOPs per second of the fastest similar program. */
static double similar_speed(const struct task_state *tasks, int count, int task) {
  double most = 0;
  for (int i = 0; i < count; i++)
    if (i != task && tasks[i].similar == tasks[task].similar && isfinite(tasks[i].best))
      most = fmax(most, tasks[i].flops / tasks[i].best);
  return most;
}

static double forward(const struct task_state *tasks, int count, int task) {
  const struct task_state *t = &tasks[task];
  double fall = -t->best / t->trials, speed = similar_speed(tasks, count, task);
  return speed > 0 ? fmin(fall, BETA * t->flops / speed - t->best) : fall;
}

double task_gradient(const struct task_state *tasks, int count, int task) {
  const struct task_state *t = &tasks[task];
  if (!t->trials) return -INFINITY;
  if (!isfinite(t->best)) return 0;
  return t->weight * (ALPHA * backward(t) + (1 - ALPHA) * fmin(0, forward(tasks, count, task)));
}

static bool takes_longer(const struct task_state *a, const struct task_state *b) {
  return !a->trials && !b->trials && a->weight * a->expected > b->weight * b->expected;
}

int task_next(const struct task_state *tasks, int count) {
  int next = -1;
  double least = 0;
  for (int i = 0; i < count; i++) {
    if (tasks[i].ended) continue;
    double gradient = task_gradient(tasks, count, i);
    bool longer = next >= 0 && takes_longer(&tasks[i], &tasks[next]);
    if (next >= 0 && gradient >= least && !longer) continue;
    next = i;
    least = gradient;
  }
  return next;
}

void task_note(struct task_state *t, int trials, double best) {
  for (int i = 0; i + 1 < TASK_WINDOW; i++) {
    t->before[i] = t->before[i + 1];
    t->trials_before[i] = t->trials_before[i + 1];
  }
  t->before[TASK_WINDOW - 1] = t->best;
  t->trials_before[TASK_WINDOW - 1] = t->trials;
  t->trials = trials;
  t->best = best;
}
