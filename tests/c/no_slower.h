// Default schedules are held to the predicted time that they had.
#ifndef CANVAS_TESTS_NO_SLOWER_H
#define CANVAS_TESTS_NO_SLOWER_H

#include "autoschedule/default.h"
#include "check.h"
#include "cost/schedule_cost.h"
#include "program/program.h"

// A compiler may round the sums of the prediction in another order.
static const double TIMES_ROUNDED = 1.005;

// Microseconds of a legal schedule, at the likely rates of its machine.
static inline double predicted(canvas_context *ctx, const struct loop_tree *tree,
                               const char *label) {
  const struct rates rates = rates_likely(&tree->machine);
  struct schedule_cost cost;
  CHECK_INT(cost_of(ctx, tree, &rates, &cost), CANVAS_OK, label);
  return 1e6 * cost.seconds;
}

// Prints what is wrong: a schedule that is predicted to be slower than `most`, or a text that does not hold `shows`.
static inline bool no_slower(const char *label, double time, double most, const char *text,
                             const char *shows) {
  bool slower = !(time <= TIMES_ROUNDED * most), other = shows && !strstr(text, shows);
  if (slower) print_error("predicted: %.4g us, at most %.4g before:\n", time, most);
  if (other) print_error("\"%s\" is not in\n", shows);
  if (slower || other) print_error("%s\n%s\n", label, text);
  return !slower && !other;
}

// The same of the default schedule of p, which is legal and not the fallback.
static inline bool default_no_slower(canvas_context *ctx, const struct program *p,
                                     const struct machine *machine, const char *label, double most,
                                     const char *shows) {
  struct default_bound made;
  if (default_bind(ctx, p, machine, &made) != CANVAS_OK) fail_msg("%s: %s", label, ctx->message);
  struct buf text = {0};
  program_print(made.edited ? made.edited : p, &text);
  schedule_print(made.schedule, &text);
  bool good = no_slower(label, predicted(ctx, made.tree, label), most, text.text, shows);
  bool chosen = !strcmp(made.schedule->name, "heuristic");
  if (!chosen) print_error("the schedule is a fallback:\n%s\n", text.text);
  buf_free(&text);
  loop_tree_free(made.tree);
  schedule_free(made.schedule);
  program_free(made.edited);
  return good && chosen;
}

#endif
