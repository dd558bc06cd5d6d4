/* See spelling.h. */
#include "primitive/spelling.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* -- names -- */

/* No local is called like a keyword, a builtin or a module that the text names: such a name
 * keeps its meaning in Python. Builtin classes of exceptions are not among them, as `template`
 * raises none. */
static const char *const reserved[] = {
    /* keywords, those that are only words in some places too */
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "case", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
    "import", "in", "is", "lambda", "match", "nonlocal", "not", "or", "pass", "raise", "return",
    "try", "type", "while", "with", "yield", "_", "__class__", "__debug__",
    /* builtins */
    "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "breakpoint", "bytearray",
    "bytes", "callable", "chr", "classmethod", "compile", "complex", "copyright", "credits",
    "delattr", "dict", "dir", "divmod", "enumerate", "eval", "exec", "exit", "filter", "float",
    "format", "frozenset", "getattr", "globals", "hasattr", "hash", "help", "hex", "id", "input",
    "int", "isinstance", "issubclass", "iter", "len", "license", "list", "locals", "map", "max",
    "memoryview", "min", "next", "object", "oct", "open", "ord", "pow", "print", "property", "quit",
    "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted", "staticmethod",
    "str", "sum", "super", "tuple", "vars", "zip",
    /* the text's own */
    "self", "copy", "torch", "nn", "F", "math", "N"};

static bool is_reserved(const char *name) {
  enum size size;
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (!strcmp(reserved[i], name)) return true;
  return size_parse(name, (int)strlen(name), &size);
}

static bool is_taken(const struct spelling *s, const char *name) {
  for (int i = 0; i < s->k->count; i++)
    if ((s->name[i] && !strcmp(s->name[i], name)) || !strcmp(s->k->nodes[i].name, name))
      return true;
  return false;
}

/* `name` with underscores until it is free; `own`: the kernel's own name for it may stay. */
static const char *free_name(struct spelling *s, const char *name, bool own) {
  char out[SPELLING_NAME];
  snprintf(out, sizeof out - 1, "%s", name);
  bool fits = own && !is_reserved(out);
  while (!fits && (is_reserved(out) || is_taken(s, out)) && strlen(out) + 2 < sizeof out)
    strcat(out, "_");
  return spelling_text(s, "%s", out);
}

void spelling_open(struct spelling *s, const struct kernel *k, bool normed, struct buf *out) {
  *s = (struct spelling){.k = k, .out = out, .normed = normed};
  int weights = 0;
  for (int i = 0; i < k->count; i++) {
    bool last = k->nodes[i].op == PRIMITIVE_OUTPUT;
    s->name[i] = last ? free_name(s, "out", false) : free_name(s, k->nodes[i].name, true);
    s->weight[i] = node_row(&k->nodes[i])->facts & FACT_WEIGHTS ? weights++ : -1;
  }
}

void spelling_close(struct spelling *s) {
  arena_free(&s->arena);
}

const char *spelling_local(struct spelling *s, int node, const char *suffix) {
  char name[SPELLING_NAME];
  snprintf(name, sizeof name, "%s_%s", s->k->nodes[node].name, suffix);
  return free_name(s, name, false);
}

/* -- text -- */

static const char *keep(struct spelling *s, struct buf *b) {
  const char *text = arena_strndup(&s->arena, b->text ? b->text : "", b->length);
  buf_free(b);
  return text;
}

static const char *compose(struct spelling *s, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  size_t size = (size_t)text_vformat(NULL, 0, format, again) + 1;
  va_end(again);
  char *text = arena_alloc(&s->arena, size);
  text_vformat(text, size, format, args);
  return text;
}

const char *spelling_text(struct spelling *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = compose(s, format, args);
  va_end(args);
  return text;
}

void spelling_line(struct spelling *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  buf_printf(s->out, "        %s\n", compose(s, format, args));
  va_end(args);
}

/* -- sizes -- */

/* A whole quotient may be divided step by step: 2*C/(3*G) is `2 * C // 3 // G`. */
const char *spelling_dim(struct spelling *s, const struct dim *d) {
  struct buf b = {0};
  const char *times = "";
  if (d->num != 1) buf_printf(&b, "%d", d->num), times = " * ";
  for (int i = 0; i < SIZES; i++) {
    if (d->power[i]) s->sizes |= 1u << i;
    for (int p = 0; p < d->power[i]; p++)
      buf_printf(&b, "%s%s", times, size_name((enum size)i)), times = " * ";
  }
  if (!*times) buf_puts(&b, "1");
  if (d->den != 1) buf_printf(&b, " // %d", d->den);
  for (int i = 0; i < SIZES; i++)
    for (int p = d->power[i]; p < 0; p++) buf_printf(&b, " // %s", size_name((enum size)i));
  return keep(s, &b);
}

const char *spelling_axes(struct spelling *s, const struct shape *shape, int first, int count) {
  struct buf b = {0};
  for (int i = first; i < first + count; i++)
    buf_printf(&b, "%s%s", i > first ? ", " : "", spelling_dim(s, &shape->axis[i].dim));
  return keep(s, &b);
}

const char *spelling_shape(struct spelling *s, const struct shape *shape) {
  s->sizes |= SPELLING_BATCH;
  return spelling_text(s, "N%s%s", shape->count ? ", " : "",
                       spelling_axes(s, shape, 0, shape->count));
}

const char *spelling_dims(struct spelling *s, const struct shape *shape, unsigned roles) {
  struct buf b = {0};
  int count = 0;
  for (int i = 0; i < shape->count; i++)
    if (roles >> shape->axis[i].role & 1) buf_printf(&b, count++ ? ", %d" : "%d", i + 1);
  const char *list = keep(s, &b);
  return count == 1 ? list : spelling_text(s, "(%s)", list);
}

static bool same_dims(const struct shape *a, const struct shape *b) {
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++)
    if (!dim_equal(&a->axis[i].dim, &b->axis[i].dim)) return false;
  return true;
}

const char *spelling_reshaped(struct spelling *s, int i, const struct shape *to) {
  if (same_dims(&s->k->nodes[i].shape, to)) return s->name[i];
  return spelling_text(s, "%s.reshape(%s)", s->name[i], spelling_shape(s, to));
}

const char *spelling_apart(struct spelling *s, int dilation) {
  if (!s->dilated) return dilation ? spelling_text(s, "%d", dilation) : "";
  s->sizes |= SPELLING_DILATION;
  return dilation ? spelling_text(s, "%d * D", dilation) : "D";
}

const char *spelling_half(struct spelling *s, const struct dim *window, int dilation) {
  struct dim number = dim_number(window->num);
  bool plain = dim_equal(window, &number);
  if (plain && (!s->dilated || window->num / 2 == 0))
    return spelling_text(s, "%d", window->num / 2 * (dilation ? dilation : 1));
  const char *apart = spelling_apart(s, dilation);
  const char *half = plain ? spelling_text(s, "%d", window->num / 2)
                           : spelling_text(s, "%s // 2", spelling_dim(s, window));
  return *apart ? spelling_text(s, "%s * %s", half, apart) : half;
}

const char *spelling_slice(struct spelling *s, const char *i, const struct dim *size,
                           const struct dim *stride, int dilation) {
  const char *apart = spelling_apart(s, dilation);
  if (*apart) i = spelling_text(s, "%s * %s", i, apart);
  const char *slice = spelling_text(s, "%s:%s + %s", i, i, spelling_dim(s, size));
  return dim_is_one(stride) ? slice : spelling_text(s, "%s:%s", slice, spelling_dim(s, stride));
}

/* The left middle must be a run of the right middle's last axes. */
bool spelling_spread(const struct shape *left, const struct shape *right, struct shape *out) {
  struct match m = shape_match(left, right);
  struct dim product = dim_one();
  int ones = right->count - m.suffix;
  while (ones > m.prefix && !dim_equal(&product, &m.left))
    product = dim_mul(product, right->axis[--ones].dim);
  if (!dim_equal(&product, &m.left)) return false;
  *out = *right;
  while (--ones >= m.prefix) out->axis[ones].dim = dim_one();
  return true;
}

/* -- fully connected -- */

struct dim spelling_groups(const struct shape *a) {
  int g = shape_find(a, ROLE_GROUP);
  return g < 0 ? dim_one() : a->axis[g].dim;
}

struct dim spelling_contracted(const struct shape *a) {
  return shape_product(a, 1 << ROLE_CHANNEL | ROLES_WINDOW);
}

const char *spelling_weight(struct spelling *s, int node) {
  return spelling_text(s, "self.w%d[copy]", s->weight[node]);
}

const char *spelling_weight_as(struct spelling *s, int node, int rank, const struct dim *dims) {
  struct shape w;
  struct buf b = {0};
  bool same = node_weight(s->k, node, &w) && w.count == rank;
  for (int i = 0; same && i < rank; i++) same = dim_equal(&dims[i], &w.axis[i].dim);
  if (same) return spelling_weight(s, node);
  for (int i = 0; i < rank; i++) buf_printf(&b, "%s%s", i ? ", " : "", spelling_dim(s, &dims[i]));
  const char *list = keep(s, &b);
  return spelling_text(s, "%s.reshape(%s)", spelling_weight(s, node), list);
}

/* -- norms -- */

bool spelling_is_normed(const struct spelling *s, int node) {
  return s->normed && node_is_inner(s->k, node);
}

const char *spelling_bias(struct spelling *s, int node) {
  if (!spelling_is_normed(s, node)) return "";
  return spelling_text(s, ", self.b%d[copy]", s->weight[node]);
}

void spelling_add_bias(struct spelling *s, int node) {
  const struct shape *shape = &s->k->nodes[node].shape;
  const char *name = s->name[node], *ones = "";
  if (!spelling_is_normed(s, node)) return;
  for (int i = 1; i < shape->count; i++) ones = spelling_text(s, "%s, None", ones);
  spelling_line(s, "if self.b%d[copy] is not None:", s->weight[node]);
  spelling_line(s, "    %s = %s + self.b%d[copy]%s", name, name, s->weight[node],
                *ones ? spelling_text(s, "[:%s]", ones) : "");
}

void spelling_normalise(struct spelling *s, int node) {
  if (!spelling_is_normed(s, node)) return;
  spelling_line(s, "%s = self.norm%d[copy](%s)", s->name[node], s->weight[node], s->name[node]);
}
