/* Prints a bound schedule as a table. See explain.h. */
#include "explain/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/saturating.h"
#include "bind/bind.h"
#include "bind/features.h"
#include "cost/schedule_cost.h"
#include "program/program_cost.h"

/* ---- tables: cells in rows, the first column to the left, the others to the right
 * -------------- */

enum { COLUMNS = 9 };

struct table {
  int columns;
  struct {
    VEC(char *);
  } cells;
};

static void add_cell(struct table *t, struct buf *text) {
  if (!text->text) buf_puts(text, "");
  VEC_PUSH(&t->cells, buf_take(text));
}

static void add_text(struct table *t, const char *text) {
  struct buf cell = {0};
  buf_puts(&cell, text);
  add_cell(t, &cell);
}

static void add_header(struct table *t, const char *const *names) {
  for (t->columns = 0; names[t->columns]; t->columns++) add_text(t, names[t->columns]);
}

static void print_row(const struct table *t, int row, const int *width, struct buf *out) {
  for (int i = 0; i < t->columns; i++) {
    const char *cell = t->cells.data[row * t->columns + i];
    bool last = i == t->columns - 1;
    int pad = width[i] - (int)strlen(cell);
    if (i) buf_printf(out, "  %*s", last ? 0 : pad, "");
    buf_puts(out, cell);
    if (!i) buf_printf(out, "%*s", pad, "");
  }
  while (out->length && out->text[out->length - 1] == ' ') out->text[--out->length] = '\0';
  buf_puts(out, "\n");
}

static void print_table(struct table *t, struct buf *out) {
  int width[COLUMNS] = {0};
  for (int i = 0; i < t->cells.count; i++) {
    int length = (int)strlen(t->cells.data[i]);
    if (length > width[i % t->columns]) width[i % t->columns] = length;
  }
  for (int i = 0; i < t->cells.count / t->columns; i++) print_row(t, i, width, out);
  for (int i = 0; i < t->cells.count; i++) mem_free(t->cells.data[i]);
  mem_free(t->cells.data);
}

/* ---- numbers ------------------------------------------------------------------------------- */

static void add_count(struct table *t, int64_t count) {
  struct buf cell = {0};
  buf_printf(&cell, "%lld", (long long)count);
  add_cell(t, &cell);
}

static void print_bytes(struct buf *out, int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = (double)bytes;
  int unit = 0;
  while (amount >= 1024) amount /= 1024, unit++;
  buf_printf(out, unit && amount < 10 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
}

static void add_bytes(struct table *t, int64_t bytes) {
  struct buf cell = {0};
  print_bytes(&cell, bytes);
  add_cell(t, &cell);
}

/* Formats a count: 9999, 12.3 k, 48.3 G. */
static void add_amount(struct table *t, int64_t count) {
  static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
  struct buf cell = {0};
  double amount = (double)count;
  int unit = 0;
  while (count >= 10000 && amount >= 1000) amount /= 1000, unit++;
  buf_printf(&cell, unit ? "%.1f%s" : "%.0f%s", amount, units[unit]);
  add_cell(t, &cell);
}

static void add_ratio(struct table *t, int64_t a, int64_t b) {
  struct buf cell = {0};
  double ratio = b ? (double)a / (double)b : 0;
  buf_printf(&cell, ratio < 100 ? "%.2f" : "%.0f", ratio);
  add_cell(t, &cell);
}

/* ---- loops --------------------------------------------------------------------------------- */

void schedule_loop_text(const struct schedule *s, const struct schedule_loop *loop,
                        struct buf *out) {
  buf_puts(out, loop->count > 1 ? "{" : "");
  for (int i = 0; i < loop->count; i++)
    buf_printf(out, "%s%s", i ? ", " : "", s->levels.data[loop->level[i]].name);
  buf_puts(out, loop->count > 1 ? "}" : "");
  schedule_print_marks(loop, out);
}

struct explainer {
  const struct loop_tree *tree;
  const struct features *f; /* NULL if the tree has open holes */
  struct table *t;
};

static void add_fit(const struct explainer *e, int node) {
  const struct machine *m = &e->tree->machine;
  int64_t bytes = e->f->loops[node].bytes;
  add_text(e->t, bytes <= m->l1 ? "L1" : bytes <= m->l2 ? "L2" : "memory");
}

static void add_steps(const struct explainer *e, int node) {
  struct buf cell = {0};
  const struct bound_loop *loop = &e->tree->loops[node];
  if (loop->extent)
    buf_printf(&cell, "%s%lld", loop->dyn ? "<=" : "", (long long)loop->extent);
  else
    buf_puts(&cell, "?");
  add_cell(e->t, &cell);
}

static void add_body(const struct explainer *e, int node) {
  if (!e->f) return;
  add_count(e->t, e->f->loops[node].iterations);
  add_bytes(e->t, e->f->loops[node].bytes);
  add_fit(e, node);
}

static void add_leaf(const struct explainer *e, int node, int depth) {
  struct buf cell = {0};
  buf_printf(&cell, "%*s@%s", 2 * depth, "", e->tree->schedule->nodes.data[node].leaf.stage);
  add_cell(e->t, &cell);
  for (int i = 1; i < e->t->columns; i++) add_text(e->t, "");
}

static void add_loop(const struct explainer *e, int node, int depth) {
  struct buf cell = {0};
  buf_printf(&cell, "%*s", 2 * depth, "");
  schedule_loop_text(e->tree->schedule, &e->tree->schedule->nodes.data[node].loop, &cell);
  add_cell(e->t, &cell);
  add_steps(e, node);
  add_body(e, node);
}

static void add_children(const struct explainer *e, int node, int depth) {
  const struct schedule_node *nodes = e->tree->schedule->nodes.data;
  for (int child = nodes[node].first; child >= 0; child = nodes[child].next) {
    if (nodes[child].kind == NODE_LEAF) {
      add_leaf(e, child, depth);
    } else {
      add_loop(e, child, depth);
      add_children(e, child, depth + 1);
    }
  }
}

static void print_loops(const struct loop_tree *tree, const struct features *f, struct buf *out) {
  static const char *const all[] = {"loop", "steps", "times", "touched", "fits in", NULL};
  static const char *const open[] = {"loop", "steps", NULL};
  struct table t = {0};
  struct explainer e = {tree, f, &t};
  add_header(&t, f ? all : open);
  if (f) {
    add_text(&t, "all");
    add_text(&t, "");
    add_body(&e, 0);
  }
  add_children(&e, 0, 0);
  print_table(&t, out);
}

/* ---- stages -------------------------------------------------------------------------------- */

/* Prints storage: "8 vector registers of 16", "1 register", "32 KiB on the stack". */
static void print_storage(const struct storage *s, struct buf *out) {
  if (s->kind == STORAGE_NAMED) {
    long long variables = storage_variables(s);
    buf_printf(out, "%lld %sregister%s", variables, s->lanes > 1 ? "vector " : "",
               variables > 1 ? "s" : "");
    if (s->lanes > 1) buf_printf(out, " of %d", s->lanes);
    return;
  }
  print_bytes(out, storage_bytes(s));
  buf_puts(out, s->kind == STORAGE_STACK  ? " on the stack"
                : s->kind == STORAGE_HEAP ? " on the heap"
                                          : " output");
}

/* Prints the buffer of a stage: "[k:576][yi:14] 32 KiB on the stack, sums: 8 registers". */
static void add_buffer(const struct loop_tree *tree, const struct bound_stage *s, struct table *t) {
  const struct program_tensor *tensor = &tree->program->tensors.data[s->tensor];
  struct buf cell = {0};
  for (int i = 0; i < s->dims && !s->dead; i++) {
    const struct buffer_axis *d = &s->layout[i];
    buf_printf(&cell, "[%s:%lld", tensor->axes[d->axis].name, (long long)d->extent);
    if (d->padded_extent > d->extent) buf_printf(&cell, " of %lld", (long long)d->padded_extent);
    buf_puts(&cell, "]");
  }
  buf_puts(&cell, s->dims && !s->dead ? " " : "");
  if (s->dead)
    buf_puts(&cell, "not computed: nothing reads it");
  else
    print_storage(&s->value, &cell);
  if (s->sum.kind != STORAGE_NONE) {
    buf_puts(&cell, ", sums: ");
    print_storage(&s->sum, &cell);
  }
  add_cell(t, &cell);
}

static void add_known(struct table *t, int64_t count) {
  if (count)
    add_count(t, count);
  else
    add_text(t, "");
}

static void add_stage(const struct loop_tree *tree, const struct features *f, int stage,
                      struct table *t) {
  const struct bound_stage *s = &tree->stages[stage];
  const struct stage_features *numbers = &f->stages[stage];
  add_text(t, tree->program->tensors.data[s->tensor].name);
  add_amount(t, numbers->flops);
  add_count(t, s->dead ? 0 : s->recomputed);
  add_count(t, numbers->copies);
  add_known(t, numbers->registers);
  add_bytes(t, numbers->into_l1);
  add_bytes(t, numbers->into_l2);
  add_ratio(t, numbers->flops, numbers->into_l2);
  add_buffer(tree, s, t);
}

static void add_totals(const struct features *f, struct table *t) {
  add_text(t, "all");
  add_amount(t, f->all.flops);
  add_text(t, "");
  add_count(t, f->all.copies);
  add_text(t, "");
  add_bytes(t, f->all.into_l1);
  add_bytes(t, f->all.into_l2);
  add_ratio(t, f->all.flops, f->all.into_l2);
  add_text(t, "");
}

static void print_stages(const struct loop_tree *tree, const struct features *f, struct buf *out) {
  static const char *const names[] = {"stage",   "FLOPs",   "computed",   "in code", "registers",
                                      "into L1", "into L2", "FLOPs/byte", "buffer",  NULL};
  struct table t = {0};
  add_header(&t, names);
  for (int i = 0; i < tree->count; i++) add_stage(tree, f, i, &t);
  add_totals(f, &t);
  print_table(&t, out);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void print_head(const struct loop_tree *tree, struct buf *out) {
  const struct machine *m = &tree->machine;
  buf_printf(out, "schedule %s%sof program %s\n", tree->schedule->name,
             tree->schedule->name[0] ? " " : "", tree->program->name);
  buf_printf(out, "machine: vectors of %d bytes, %d registers, ", m->vector_bytes, m->registers);
  print_bytes(out, m->l1);
  buf_puts(out, " L1, ");
  print_bytes(out, m->l2);
  buf_puts(out, " L2\n\n");
}

static canvas_status explain_time(canvas_context *ctx, const struct loop_tree *tree,
                                  const struct rates *rates, struct buf *out) {
  struct schedule_cost cost;
  TRY(cost_of_stages(ctx, tree, rates, &cost));
  buf_puts(out, "\n");
  cost_print(tree, rates, &cost, out);
  cost_free(&cost);
  return CANVAS_OK;
}

canvas_status schedule_explain(canvas_context *ctx, const struct loop_tree *tree,
                               const struct rates *rates, struct buf *out) {
  struct features f;
  print_head(tree, out);
  if (tree->warnings.count) {
    loop_tree_print_warnings(tree, out);
    buf_puts(out, "\n");
  }
  if (tree->open_holes) {
    print_loops(tree, NULL, out);
    buf_printf(out, "\n%d hole%s: give them numbers to see the rest\n", tree->open_holes,
               tree->open_holes > 1 ? "s" : "");
    return CANVAS_OK;
  }
  canvas_status status = features_of(ctx, tree, &f);
  if (status == CANVAS_OK) {
    print_loops(tree, &f, out);
    buf_puts(out, "\n");
    print_stages(tree, &f, out);
  }
  features_free(&f);
  return status == CANVAS_OK ? explain_time(ctx, tree, rates, out) : status;
}
