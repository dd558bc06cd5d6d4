/* Loads: an unconditional load has to stay in its tensor for all data. A load under a condition
 * that does not prove this is marked in tree->guarded: code checks the index first.
 */
#include "bind/bind.h"

static void print_end(int64_t end, struct buf *text) {
  if (end == INT64_MIN || end == INT64_MAX)
    buf_puts(text, "no bound");
  else
    buf_printf(text, "%lld", (long long)end);
}

/* Prints " (line 4, column 9 of the program)". */
static void print_place(const struct px_node *load, struct buf *text) {
  if (load->line)
    buf_printf(text, " (line %d, column %d of the program)", load->line, load->column);
}

static canvas_status out_of_range(const struct binder *b, const struct bound_stage *stage,
                                  const struct unsafe_load *escape) {
  const struct px_node *load = &b->p->nodes.data[escape->load];
  const struct program_tensor *to = &b->p->tensors.data[load->tensor];
  int index = b->p->indices.data[load->first + escape->index];
  struct buf at = {0}, low = {0}, high = {0}, where = {0};
  program_print_expr(b->p, index, &at);
  print_end(escape->low, &low);
  print_end(escape->high, &high);
  print_place(load, &where);
  canvas_status status = fail(
      b->ctx, CANVAS_BAD_INPUT,
      "stage '%.40s' may load '%.40s' out of range%s: index '%.100s' runs from %s to %s as "
      "far as is known, axis '%.40s' has size %lld; put the load under a condition on that index",
      stage_name(b, stage), to->name, where.text ? where.text : "", at.text, low.text, high.text,
      to->axes[escape->index].name, (long long)to->axes[escape->index].size);
  buf_free(&at);
  buf_free(&low);
  buf_free(&high);
  buf_free(&where);
  return status;
}

canvas_status check_loads(const struct binder *b) {
  b->tree->guarded = mem_alloc((size_t)b->p->nodes.count + 1);
  for (int i = 0; i < b->tree->count; i++) {
    const struct bound_stage *stage = &b->tree->stages[i];
    struct unsafe_load escape = program_find_unsafe_load(b->p, stage->tensor, b->tree->guarded);
    if (escape.load >= 0) return out_of_range(b, stage, &escape);
  }
  return CANVAS_OK;
}
