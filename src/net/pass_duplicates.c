/* Merges programs that differ only in their names, and calls of one program with the same
 * arguments.
 *
 * A duplicate call stays if it computes an output of the network, which has a name of its own;
 * other calls read the results of the first one. Results are bit-identical.
 */
#include <stdlib.h>
#include <string.h>

#include "base/fnv.h"
#include "base/name_table.h"
#include "net/passes.h"

/* Numbers by text; the texts are owned. */
struct texts {
  struct name_table table;
  struct {
    VEC(char *);
  } owned;
};

static void texts_free(struct texts *t) {
  for (int i = 0; i < t->owned.count; i++) mem_free(t->owned.data[i]);
  mem_free(t->owned.data);
  name_table_free(&t->table);
}

/* The number of the first equal text; `number` if the text is new. Takes the text. */
static int first_of(struct texts *t, struct buf *text, int number) {
  size_t length = text->length;
  char *key = buf_take(text);
  VEC_PUSH(&t->owned, key);
  int first = name_table_find(&t->table, key, length);
  if (first >= 0) return first;
  name_table_add(&t->table, key, number);
  return number;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Writes everything of a program except its name. */
static void put_program(const struct program *p, struct buf *out) {
  struct buf text = {0};
  program_print(p, &text);
  buf_printf(out, "%d\n%s", p->winograd, strchr(strchr(text.text, '\n') + 1, '\n'));
  buf_free(&text);
}

/* Equal for programs with equal texts, and seldom for others. */
static uint64_t shape_of(const struct program *p) {
  struct buf text = {0};
  for (int i = 0; i < p->tensors.count; i++) {
    const struct program_tensor *t = &p->tensors.data[i];
    buf_printf(&text, "%d %d %d %d", t->is_input, (int)t->dtype, t->rank, t->reductions);
    for (int k = 0; k < t->rank + t->reductions; k++)
      buf_printf(&text, " %lld", (long long)t->axes[k].size);
    buf_printf(&text, " %d\n", t->is_input ? 0 : p->nodes.data[t->body].size);
  }
  uint64_t shape = fnv(text.text, text.length);
  buf_free(&text);
  return shape;
}

static int compare_shapes(const void *a, const void *b) {
  const uint64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

/* By program: whether it may have the text of one that is called. Passes leave many large ones that are not. */
static bool *find_alike(const struct network *n) {
  size_t count = (size_t)n->programs.count;
  bool *alike = mem_alloc(count + 1), *called = mem_alloc(count + 1);
  uint64_t *shape = mem_alloc((2 * count + 1) * sizeof *shape), *wanted = shape + count;
  size_t found = 0;
  for (int i = 0; i < n->calls.count; i++) called[n->calls.data[i].program] = true;
  for (int i = 0; i < n->programs.count; i++) {
    shape[i] = shape_of(n->programs.data[i]);
    if (called[i]) wanted[found++] = shape[i];
  }
  qsort(wanted, found, sizeof *wanted, compare_shapes);
  for (size_t i = 0; i < count; i++)
    alike[i] = bsearch(&shape[i], wanted, found, sizeof *wanted, compare_shapes);
  mem_free(shape);
  mem_free(called);
  return alike;
}

void network_join_programs(struct network *n) {
  struct texts texts = {0};
  int *first = mem_alloc((size_t)(n->programs.count + 1) * sizeof *first);
  bool *alike = find_alike(n);
  for (int i = 0; i < n->programs.count; i++) {
    struct buf text = {0};
    if (!alike[i]) continue;
    put_program(n->programs.data[i], &text);
    first[i] = first_of(&texts, &text, i);
  }
  for (int i = 0; i < n->calls.count; i++)
    n->calls.data[i].program = first[n->calls.data[i].program];
  mem_free(alike);
  mem_free(first);
  texts_free(&texts);
  network_drop_programs(n);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool gives_output(const struct network *n, const struct net_call *c) {
  for (int i = 0; i < c->results.count; i++)
    if (network_is_output(n, c->results.data[i])) return true;
  return false;
}

static int find_call(struct texts *texts, const struct net_call *c, int number) {
  struct buf text = {0};
  buf_printf(&text, "%d", c->program);
  for (int i = 0; i < c->arguments.count; i++) buf_printf(&text, " %d", c->arguments.data[i]);
  return first_of(texts, &text, number);
}

static void join_calls(struct network *n) {
  struct texts texts = {0};
  bool *dropped = mem_alloc((size_t)n->calls.count + 1);
  int *instead = mem_alloc((size_t)(n->tensors.count + 1) * sizeof *instead);
  for (int i = 0; i < n->tensors.count; i++) instead[i] = i;
  for (int i = 0; i < n->calls.count; i++) {
    struct net_call *c = &n->calls.data[i];
    for (int k = 0; k < c->arguments.count; k++)
      c->arguments.data[k] = instead[c->arguments.data[k]];
    int first = find_call(&texts, c, i);
    if (first == i) continue;
    for (int k = 0; k < c->results.count; k++)
      instead[c->results.data[k]] = n->calls.data[first].results.data[k];
    dropped[i] = !gives_output(n, c);
  }
  network_drop_calls(n, dropped);
  mem_free(dropped);
  mem_free(instead);
  texts_free(&texts);
}

canvas_status pass_duplicates(canvas_context *ctx, struct network *n) {
  (void)ctx;
  network_join_programs(n);
  join_calls(n);
  return CANVAS_OK;
}
