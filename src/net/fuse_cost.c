/* Predicts and caches the time of programs under default schedules. See fuse_cost.h. */
#include "net/fuse_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autoschedule/default.h"
#include "prepare/prepare_cost.h"

struct fuse_costs fuse_costs_open(const struct machine *machine) {
  struct fuse_costs c = {.machine = *machine};
  c.machine.cores = 1; /* cores and memory depend on the container, results must not */
  c.machine.memory = INT64_C(4) << 30;
  c.rates = rates_likely(&c.machine);
  return c;
}

void fuse_costs_close(struct fuse_costs *c) {
  for (int i = 0; i < c->texts.count; i++) mem_free(c->texts.data[i]);
  mem_free(c->texts.data);
  mem_free(c->seconds.data);
  name_table_free(&c->table);
}

/* Predicted seconds of the bound tree, without the part that is computed at load time. */
static double bound_seconds(const struct fuse_costs *c, const struct loop_tree *tree) {
  canvas_context ctx;
  struct cost_parts cost;
  return prepare_cost(&ctx, tree, &c->rates, &cost) == CANVAS_OK ? cost.seconds : INFINITY;
}

static double predict(const struct fuse_costs *c, const struct program *p) {
  canvas_context ctx;
  struct default_bound made;
  if (default_bind(&ctx, p, &c->machine, &made) != CANVAS_OK) return INFINITY;
  double seconds = bound_seconds(c, made.tree);
  loop_tree_free(made.tree);
  schedule_free(made.schedule);
  program_free(made.edited);
  return seconds;
}

double fuse_cost(struct fuse_costs *c, const struct program *p) {
  struct buf text = {0};
  program_print(p, &text);
  const char *body = strchr(strchr(text.text, '\n') + 1, '\n'); /* skips the program's name */
  char *key = mem_strdup(body);
  buf_free(&text);
  int known = name_table_find(&c->table, key, strlen(key));
  if (known >= 0) {
    mem_free(key);
    return c->seconds.data[known];
  }
  double seconds = predict(c, p);
  name_table_add(&c->table, key, c->seconds.count);
  VEC_PUSH(&c->texts, key);
  VEC_PUSH(&c->seconds, seconds);
  return seconds;
}
