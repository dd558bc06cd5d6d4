/* A kernel as a picture in Graphviz's language: data flows from top to bottom, each box shows a
 * node's line of text and its shape; what owns weights is filled, what only moves data is dashed.
 */
#include "spell/spell.h"

static const char *style(const struct node *n) {
  unsigned facts = node_row(n)->facts;
  if (facts & FACT_WEIGHTS) return ", style=\"filled,rounded\", fillcolor=\"#dbe7f5\"";
  return facts & FACT_MOVES ? ", style=\"dashed,rounded\"" : ", style=\"rounded\"";
}

void spell_dot(const struct kernel *k, struct buf *out) {
  buf_printf(out, "digraph \"%s\" {\n", k->name);
  buf_puts(out, "  node [shape=box, fontname=\"Helvetica\", fontsize=11];\n");
  buf_puts(out, "  edge [arrowsize=0.7];\n");
  for (int i = 0; i < k->count; i++) {
    const struct node *n = &k->nodes[i];
    buf_printf(out, "  n%d [label=\"", i);
    if (*n->name) buf_printf(out, "%s = ", n->name);
    node_print(k, i, out);
    buf_puts(out, "\\n[");
    shape_print(&n->shape, out);
    buf_printf(out, "]\"%s];\n", style(n));
  }
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++)
      buf_printf(out, "  n%d -> n%d;\n", k->nodes[i].in[j], i);
  buf_puts(out, "}\n");
}
