/* Prints a change that was made without a text as the text of its edit, so that program_edit.c can
 * repeat it:
 *
 *     CHANGE_OUTLINE of node exp(X[c]) in Y, name E    ->    outline Y exp(X[c]) as E
 */
#include "rewrite/program_rebuild.h"

static const char *name_of(const struct change *c, int tensor) {
  return c->from->tensors.data[tensor].name;
}

/* Prints ` A, B, C`, the chosen tensors. */
static void print_names(const struct change *c, bool (*chosen)(const struct change *, int),
                        struct buf *out) {
  const char *between = " ";
  for (int i = 0; i < c->from->tensors.count; i++)
    if (chosen(c, i)) {
      buf_printf(out, "%s%s", between, name_of(c, i));
      between = ", ";
    }
}

static bool is_inlined(const struct change *c, int tensor) {
  return c->inlined[tensor];
}

static bool is_convolution(const struct change *c, int tensor) {
  return c->winograd[tensor].tile > 0;
}

static int tile_of(const struct change *c) {
  int tile = 0;
  for (int i = 0; i < c->from->tensors.count; i++)
    if (c->winograd[i].tile) tile = c->winograd[i].tile;
  return tile;
}

/* Prints ` Y X[c, w+1]`, a stage and a value of it. */
static void print_value(const struct change *c, struct buf *out) {
  buf_printf(out, " %s ", name_of(c, c->consumer));
  program_print_expr(c->from, c->node, out);
}

void change_print(const struct change *c, struct buf *out) {
  switch (c->kind) {
    case CHANGE_INLINE:
      buf_puts(out, "inline");
      print_names(c, is_inlined, out);
      break;
    case CHANGE_OUTLINE:
    case CHANGE_RECIPROCAL:
      buf_puts(out, c->kind == CHANGE_RECIPROCAL ? "reciprocal"
                    : c->columns                 ? "columns"
                                                 : "outline");
      print_value(c, out);
      buf_printf(out, " as %s", c->name);
      break;
    case CHANGE_STRAIGHT:
      buf_puts(out, "straight");
      print_value(c, out);
      buf_printf(out, " %s", c->from->tensors.data[c->consumer].axes[c->pieces.axis].name);
      break;
    case CHANGE_TRANSPOSE:
      buf_printf(out, "turn %s %s as %s", name_of(c, c->tensor),
                 c->from->tensors.data[c->tensor].axes[c->axis].name, c->name);
      break;
    case CHANGE_WINOGRAD:
      buf_puts(out, "winograd");
      print_names(c, is_convolution, out);
      buf_printf(out, " %d", tile_of(c));
      break;
    default: break; /* the other kinds are only made from a text, which the change keeps */
  }
}
