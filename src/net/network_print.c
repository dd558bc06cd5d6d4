/* Prints networks as canonical text. See network.h. */
#include <string.h>

#include "net/network.h"

static void print_type(const struct net_tensor *t, struct buf *buf) {
  buf_printf(buf, "%s %s [", t->name, program_dtype_name(t->dtype));
  for (int i = 0; i < t->rank; i++)
    buf_printf(buf, "%s%lld", i ? ", " : "", (long long)t->sizes[i]);
  buf_puts(buf, "]");
  if (t->dtype == PROGRAM_I32)
    buf_printf(buf, " %lld..%lld%s", (long long)t->least, (long long)t->most + 1,
               t->rising ? " rising" : "");
}

static void print_program(const struct program *p, struct buf *buf) {
  struct buf text = {0};
  program_print(p, &text);
  buf_puts(buf, strchr(text.text, '\n') + 1); /* skips `canvas 1` */
  buf_puts(buf, "end\n");
  buf_free(&text);
}

static void print_given(const struct net_tensor *t, struct buf *buf) {
  buf_puts(buf, t->kind == NET_WEIGHT ? "weight " : "in ");
  print_type(t, buf);
  if (t->source) buf_printf(buf, " from %s", t->source);
  buf_puts(buf, "\n");
}

static void print_call(const struct network *n, const struct net_call *c, struct buf *buf) {
  for (int i = 0; i < c->results.count; i++) {
    if (i) buf_puts(buf, ", ");
    print_type(&n->tensors.data[c->results.data[i]], buf);
  }
  buf_printf(buf, " = %s(", n->programs.data[c->program]->name);
  for (int i = 0; i < c->arguments.count; i++)
    buf_printf(buf, "%s%s", i ? ", " : "", n->tensors.data[c->arguments.data[i]].name);
  buf_puts(buf, ")\n");
}

void network_print(const struct network *n, struct buf *buf) {
  buf_printf(buf, "canvas 1\nnetwork %s\n", n->name);
  for (int i = 0; i < n->programs.count; i++) print_program(n->programs.data[i], buf);
  for (int i = 0; i < n->tensors.count; i++)
    if (n->tensors.data[i].kind != NET_VALUE) print_given(&n->tensors.data[i], buf);
  for (int i = 0; i < n->calls.count; i++) print_call(n, &n->calls.data[i], buf);
  for (int i = 0; i < n->outputs.count; i++)
    buf_printf(buf, "out %s\n", n->tensors.data[n->outputs.data[i]].name);
}
