/* Prints the predicted time as a table, by stage and in total. See schedule_cost.h. */
#include <string.h>

#include "base/number.h"
#include "cost/schedule_cost.h"

enum { COLUMNS = 7, WIDTH = 9 };

static const char *const names[COLUMNS] = {"time", "compute", "loads", "waits",
                                           "L2",   "L3",      "memory"};

static void print_time(double seconds, struct buf *out) {
  char text[WIDTH + 1];
  text_seconds(text, sizeof text, seconds);
  buf_printf(out, "%*s", WIDTH, text);
}

static void print_row(const char *name, int width, const struct cost_parts *p, struct buf *out) {
  const double times[COLUMNS] = {p->seconds, p->compute, p->loads, p->waits,
                                 p->l2,      p->l3,      p->memory};
  buf_printf(out, "%-*s", width, name);
  for (int i = 0; i < COLUMNS; i++) print_time(times[i], out);
  buf_puts(out, "\n");
}

static const char *name_of(const struct loop_tree *tree, int stage) {
  return tree->program->tensors.data[tree->stages[stage].tensor].name;
}

void cost_print(const struct loop_tree *tree, const struct rates *rates,
                const struct schedule_cost *cost, struct buf *out) {
  int width = (int)strlen("predicted");
  for (int i = 0; i < tree->count; i++) {
    int length = (int)strlen(name_of(tree, i));
    width = length > width ? length : width;
  }
  buf_printf(out, "%-*s", width, "predicted");
  for (int i = 0; i < COLUMNS; i++) buf_printf(out, "%*s", WIDTH, names[i]);
  buf_puts(out, "\n");
  for (int i = 0; i < tree->count; i++) print_row(name_of(tree, i), width, &cost->stages[i], out);
  print_row("all", width, &cost->all, out);
  buf_printf(out, "one thread, at rates %s\n",
             rates->measured ? "measured on this machine" : "likely for such a machine");
}
