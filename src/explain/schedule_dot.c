/* Prints a bound schedule as a picture for Graphviz. See explain.h.
 *
 * The loops are a tree with the stages as leaves. A run of perfectly nested loops is one box with a
 * row per loop, coloured by its mark. Blue edges show data that flows from inputs and between
 * stages. Below are the splits: an axis above its loops, with the stages that split it so.
 */
#include <stdlib.h>
#include <string.h>

#include "bind/bind.h"
#include "explain/explain.h"

/* Head and styles of the picture. Names consist of letters, digits and _. */
static const char head[] =
    "  node [shape=plain, fontname=\"Helvetica\", fontsize=11];\n"
    "  edge [arrowsize=0.6];\n";

static const char *colour(unsigned marks) {
  if (marks & LOOP_PARA) return "#ffd9a8";
  if (marks & LOOP_VEC) return "#bfe3b4";
  if (marks & LOOP_UNROLL) return "#f5eea0";
  return "#f2f2f2";
}

static const struct schedule_node *node_at(const struct loop_tree *tree, int node) {
  return &tree->schedule->nodes.data[node];
}

static const struct program_tensor *tensor_at(const struct loop_tree *tree, int tensor) {
  return &tree->program->tensors.data[tensor];
}

static void print_extent(const struct bound_loop *loop, struct buf *out) {
  if (loop->extent)
    buf_printf(out, "%s%lld", loop->dyn ? "&le;" : "", (long long)loop->extent);
  else
    buf_puts(out, "?");
}

/* ---- the tree ------------------------------------------------------------------------------ */

static void print_row(const struct loop_tree *tree, int node, struct buf *out) {
  const struct schedule_loop *loop = &node_at(tree, node)->loop;
  buf_printf(out, "<TR><TD ALIGN=\"LEFT\" BGCOLOR=\"%s\">", colour(loop->marks));
  schedule_loop_text(tree->schedule, loop, out);
  buf_puts(out, "</TD><TD ALIGN=\"RIGHT\">");
  print_extent(&tree->loops[node], out);
  buf_puts(out, "</TD></TR>");
}

/* The last loop of a run: the first one that contains a stage or several loops. */
static int print_run(const struct loop_tree *tree, int node, struct buf *out) {
  const struct schedule_node *n = node_at(tree, node);
  print_row(tree, node, out);
  if (n->first != n->last || node_at(tree, n->first)->kind == NODE_LEAF) return node;
  return print_run(tree, n->first, out);
}

static void print_stage(const struct loop_tree *tree, int stage, struct buf *out) {
  const struct bound_stage *s = &tree->stages[stage];
  const struct program_tensor *t = tensor_at(tree, s->tensor);
  buf_printf(out,
             "  s%d [label=<<TABLE BORDER=\"%d\" STYLE=\"ROUNDED\" CELLBORDER=\"0\" "
             "COLOR=\"#2a5db0\"><TR><TD><B>%s</B></TD></TR><TR><TD><FONT POINT-SIZE=\"9\">",
             s->tensor, s->is_output ? 2 : 1, t->name);
  if (s->is_output) buf_puts(out, "output");
  for (int i = 0; i < s->dims && !s->is_output; i++)
    buf_printf(out, "%s%s %lld", i ? " &times; " : "", t->axes[s->layout[i].axis].name,
               (long long)s->layout[i].extent);
  if (!s->dims && !s->is_output) buf_puts(out, "one value");
  if (s->recomputed > 1) buf_printf(out, "<BR/>%lld times", (long long)s->recomputed);
  buf_puts(out, "</FONT></TD></TR></TABLE>>];\n");
}

static void print_children(const struct loop_tree *tree, int node, int from, struct buf *out);

static void print_child(const struct loop_tree *tree, int node, int from, struct buf *out) {
  if (node_at(tree, node)->kind == NODE_LEAF) {
    int stage = 0;
    while (tree->stages[stage].node != node) stage++;
    print_stage(tree, stage, out);
    buf_printf(out, "  n%d -> s%d;\n", from, tree->stages[stage].tensor);
    return;
  }
  buf_printf(out, "  n%d [label=<<TABLE BORDER=\"0\" CELLBORDER=\"1\" CELLSPACING=\"0\">", node);
  int last = print_run(tree, node, out);
  buf_printf(out, "</TABLE>>];\n  n%d -> n%d;\n", from, node);
  print_children(tree, last, node, out);
}

/* Prints the boxes and stages below a node; `from` is the box that the edges leave. */
static void print_children(const struct loop_tree *tree, int node, int from, struct buf *out) {
  for (int child = node_at(tree, node)->first; child >= 0; child = node_at(tree, child)->next)
    print_child(tree, child, from, out);
}

/* ---- what flows ---------------------------------------------------------------------------- */

static void print_flow(const struct loop_tree *tree, int to, int expr, bool *drawn,
                       struct buf *out) {
  const struct program *p = tree->program;
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0) print_flow(tree, to, n->arg[i], drawn, out);
  if (n->op != PX_LOAD) return;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    print_flow(tree, to, p->indices.data[n->first + i], drawn, out);
  if (drawn[n->tensor]) return;
  drawn[n->tensor] = true;
  bool input = p->tensors.data[n->tensor].is_input;
  buf_printf(out, "  s%d -> s%d [color=\"#2a5db0\"%s];\n", n->tensor, to,
             input ? ", style=dashed" : ", constraint=false");
}

static void print_flows(const struct loop_tree *tree, struct buf *out) {
  size_t size = (size_t)tree->program->tensors.count + 1;
  bool *drawn = mem_alloc(size);
  for (int i = 0; i < tree->count; i++) {
    const struct program_tensor *t = tensor_at(tree, tree->stages[i].tensor);
    memset(drawn, 0, size);
    print_flow(tree, tree->stages[i].tensor, t->body, drawn, out);
    for (int j = t->rank; j < t->rank + t->reductions; j++) {
      if (t->axes[j].low < 0) continue;
      print_flow(tree, tree->stages[i].tensor, t->axes[j].low, drawn, out);
      print_flow(tree, tree->stages[i].tensor, t->axes[j].high, drawn, out);
    }
  }
  mem_free(drawn);
}

static void print_inputs(const struct loop_tree *tree, struct buf *out) {
  for (int i = 0; i < tree->program->inputs.count; i++) {
    int tensor = tree->program->inputs.data[i];
    const struct program_tensor *t = tensor_at(tree, tensor);
    buf_printf(out, "  s%d [shape=ellipse, color=\"#2a5db0\", label=\"%s", tensor, t->name);
    for (int j = 0; j < t->rank; j++)
      buf_printf(out, "%s%lld", j ? " &times; " : "\\n", (long long)t->axes[j].size);
    buf_puts(out, "\"];\n");
  }
}

/* ---- splits -------------------------------------------------------------------------------- */

struct split {
  const char *name;
  int64_t size;
  const struct schedule_axis *text;
};

static struct split split_at(const struct loop_tree *tree, int stage, int at) {
  const struct bound_stage *s = &tree->stages[stage];
  const struct program_tensor *t = tensor_at(tree, s->tensor);
  const struct schedule_axis *text = &node_at(tree, s->node)->leaf.axes.data[at];
  const char *name = text->axis ? text->axis : tree->schedule->levels.data[text->level[0]].name;
  int axis = 0;
  while (strcmp(t->axes[axis].name, name) != 0) axis++;
  return (struct split){name, t->axes[axis].size, text};
}

static bool same_split(struct split a, struct split b) {
  return strcmp(a.name, b.name) == 0 && a.size == b.size && a.text->count == b.text->count &&
         memcmp(a.text->level, b.text->level, (size_t)a.text->count * sizeof *a.text->level) == 0;
}

static bool has_split(const struct loop_tree *tree, int stage, struct split split) {
  for (int i = 0; i < node_at(tree, tree->stages[stage].node)->leaf.axes.count; i++)
    if (same_split(split_at(tree, stage, i), split)) return true;
  return false;
}

static void print_split(const struct loop_tree *tree, struct split split, struct buf *out) {
  bool first = true;
  int columns = split.text->count;
  buf_printf(out,
             "<TABLE BORDER=\"0\" CELLBORDER=\"1\" CELLSPACING=\"0\"><TR><TD COLSPAN=\"%d\"><B>%s"
             "</B> %lld</TD></TR><TR>",
             columns, split.name, (long long)split.size);
  for (int i = 0; i < columns; i++) {
    buf_printf(out, "<TD>%s ", tree->schedule->levels.data[split.text->level[i]].name);
    struct bound_loop loop = {.extent = tree->extents[split.text->level[i]]};
    print_extent(&loop, out);
    buf_puts(out, "</TD>");
  }
  buf_printf(out, "</TR><TR><TD COLSPAN=\"%d\" BORDER=\"0\"><FONT POINT-SIZE=\"9\">", columns);
  for (int i = 0; i < tree->count; i++) {
    if (!has_split(tree, i, split)) continue;
    buf_printf(out, "%s%s", first ? "" : ", ", tensor_at(tree, tree->stages[i].tensor)->name);
    first = false;
  }
  buf_puts(out, "</FONT></TD></TR></TABLE>");
}

/* Whether an earlier stage has the same split. */
static bool is_drawn(const struct loop_tree *tree, int stage, struct split split) {
  for (int i = 0; i < stage; i++)
    if (has_split(tree, i, split)) return true;
  return false;
}

/* Prints the splits; an axis with a single loop needs none. */
static void print_splits(const struct loop_tree *tree, struct buf *out) {
  int count = 0;
  for (int i = 0; i < tree->count; i++)
    for (int j = 0; j < node_at(tree, tree->stages[i].node)->leaf.axes.count; j++) {
      struct split split = split_at(tree, i, j);
      if (split.text->count < 2 || is_drawn(tree, i, split)) continue;
      buf_puts(out, count++ ? "</TD><TD>"
                            : "  splits [label=<<TABLE BORDER=\"0\" CELLSPACING=\"12\"><TR><TD>");
      print_split(tree, split, out);
    }
  if (count) buf_puts(out, "</TD></TR></TABLE>>];\n");
}

/* Prints the program's name, escaped: it may contain any printable character. */
static void print_name(const struct loop_tree *tree, struct buf *out) {
  buf_puts(out, "\"");
  for (const char *c = tree->program->name; *c; c++) {
    if (*c == '"' || *c == '\\') buf_puts(out, "\\");
    buf_bytes(out, c, 1);
  }
  buf_puts(out, "\"");
}

void schedule_dot(const struct loop_tree *tree, struct buf *out) {
  buf_puts(out, "digraph ");
  print_name(tree, out);
  buf_printf(out, " {\n%s  n0 [shape=none, label=", head);
  print_name(tree, out);
  buf_puts(out, "];\n");
  print_inputs(tree, out);
  print_children(tree, 0, 0, out);
  print_flows(tree, out);
  print_splits(tree, out);
  buf_puts(out, "}\n");
}
