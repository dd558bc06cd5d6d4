/* Schedules: text, numbers for their loops, the default one, and the check against a program. */
#include <stdlib.h>

#include "api/handle.h"
#include "bind/loop_tree.h"

canvas_status canvas_schedule_parse(canvas_context *ctx, const char *text, size_t length,
                                    canvas_schedule **out) {
  struct schedule *s;
  TRY(schedule_parse(ctx, text, length, &s));
  *out = (canvas_schedule *)s;
  return CANVAS_OK;
}

void canvas_schedule_free(canvas_schedule *schedule) {
  schedule_free((struct schedule *)schedule);
}

char *canvas_schedule_print(const canvas_schedule *schedule) {
  struct buf out = {0};
  schedule_print(schedule_of(schedule), &out);
  return buf_take(&out);
}

canvas_status canvas_schedule_set(canvas_context *ctx, canvas_schedule *schedule,
                                  const char *numbers) {
  return schedule_set(ctx, (struct schedule *)schedule, numbers);
}

canvas_status canvas_schedule_default(canvas_context *ctx, const canvas_program *program,
                                      canvas_schedule **out) {
  (void)ctx;
  *out = (canvas_schedule *)schedule_default(program_of(program), true, NULL);
  return CANVAS_OK;
}

/* ---- the check ----------------------------------------------------------------------------- */

static char *hole_names(const struct loop_tree *tree) {
  struct buf out = {0};
  buf_puts(&out, "");
  for (int i = 0; i < tree->schedule->levels.count; i++)
    if (tree->holes[i])
      buf_printf(&out, "%s%s", out.length ? ", " : "", tree->schedule->levels.data[i].name);
  return buf_take(&out);
}

struct counter {
  const struct loop_tree *tree;
  bool *seen; /* by level */
  canvas_schedule_facts *facts;
  int unknown; /* levels without an extent, holes included */
};

static void count_loop(struct counter *c, const struct schedule_loop *loop) {
  c->facts->loops++;
  for (int i = 0; i < loop->count; i++) {
    int level = loop->level[i];
    c->unknown += !c->seen[level] && !c->tree->extents[level];
    c->seen[level] = true;
  }
}

static void count_below(struct counter *c, int node) {
  const struct schedule_node *nodes = c->tree->schedule->nodes.data;
  for (int child = nodes[node].first; child >= 0; child = nodes[child].next) {
    if (nodes[child].kind == NODE_LOOP)
      count_loop(c, &nodes[child].loop);
    else
      c->facts->stages++;
    count_below(c, child);
  }
}

static canvas_schedule_facts count_all(const struct loop_tree *tree) {
  canvas_schedule_facts facts = {.holes = tree->open};
  struct counter c = {tree, mem_alloc((size_t)tree->schedule->levels.count + 1), &facts, 0};
  count_below(&c, 0);
  free(c.seen);
  facts.following = c.unknown - tree->open;
  return facts;
}

canvas_status canvas_schedule_check(canvas_context *ctx, const canvas_program *program,
                                    const canvas_schedule *schedule, canvas_schedule_facts *facts,
                                    char **holes) {
  struct loop_tree *tree;
  TRY(loop_tree_bind(ctx, program_of(program), schedule_of(schedule), NULL, &tree));
  *facts = count_all(tree);
  *holes = hole_names(tree);
  loop_tree_free(tree);
  return CANVAS_OK;
}

canvas_status canvas_schedule_warnings(canvas_context *ctx, const canvas_program *program,
                                       const canvas_schedule *schedule, char **out) {
  struct loop_tree *tree;
  struct buf text = {0};
  TRY(loop_tree_bind(ctx, program_of(program), schedule_of(schedule), NULL, &tree));
  buf_puts(&text, "");
  loop_tree_print_warnings(tree, &text);
  loop_tree_free(tree);
  *out = buf_take(&text);
  return CANVAS_OK;
}
