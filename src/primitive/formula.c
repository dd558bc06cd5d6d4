/* See formula.h. */
#include "primitive/formula.h"

#include <stdarg.h>
#include <string.h>

#include "base/number.h"

/* -- text -- */

static const char *keep(struct formula *f, struct buf *b) {
  const char *text = arena_strndup(&f->arena, b->text ? b->text : "", b->length);
  buf_free(b);
  return text;
}

const char *formula_text(struct formula *f, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t size = (size_t)text_vformat(NULL, 0, format, args) + 1;
  va_end(args);
  char *text = arena_alloc(&f->arena, size);
  va_start(args, format);
  text_vformat(text, size, format, args);
  va_end(args);
  return text;
}

const char *formula_dim(struct formula *f, const struct dim *d, bool divisor) {
  struct buf b = {0};
  if (divisor)
    index_print_divisor(d, &b);
  else
    index_print_dim(d, &b);
  return keep(f, &b);
}

const char *formula_elements(struct formula *f, const struct shape *s, unsigned roles,
                             bool divisor) {
  const char *product = "";
  for (int i = 0; i < s->count; i++) {
    const struct dim *d = &s->axis[i].dim;
    if (!(roles >> s->axis[i].role & 1) || dim_is_one(d)) continue;
    product = formula_text(f, *product ? "%s·%s" : "%s%s", product, formula_dim(f, d, false));
  }
  if (!*product) return "1";
  bool word = !strpbrk(product, "/") && !strstr(product, "·");
  return divisor && !word ? formula_text(f, "(%s)", product) : product;
}

/* -- names -- */

static const char *const role_names[ROLES] = {"g",  "c",  "kc",  "kh",  "kw",  "h",  "w",
                                              "g2", "c2", "kc2", "kh2", "kw2", "h2", "w2"};

/* Names of indices, sizes, weights and functions; a node with such a name gets a `_`. */
static bool is_reserved(const char *name) {
  static const char *const words[] = {"x",   "y",   "k",    "max", "min", "exp",
                                      "erf", "sin", "tanh", "mod", "for"};
  enum size size;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(words[i], name)) return true;
  for (int i = 0; i < ROLES; i++)
    if (!strcmp(role_names[i], name)) return true;
  return size_parse(name, (int)strlen(name), &size) ||
         (name[0] == 'W' && name[1] && !name[1 + strspn(name + 1, "0123456789")]);
}

static bool is_taken(const struct formula *f, const char *name) {
  for (int i = 0; i < f->k->count; i++)
    if ((f->name[i] && !strcmp(f->name[i], name)) || !strcmp(f->k->nodes[i].name, name))
      return true;
  return false;
}

static const char *free_name(struct formula *f, const char *name) {
  if (!is_reserved(name)) return name;
  do name = formula_text(f, "%s_", name);
  while (is_reserved(name) || is_taken(f, name));
  return name;
}

const char *formula_name(struct formula *f, const char *name) {
  while (is_taken(f, name)) name = formula_text(f, "%s_", name);
  return name;
}

/* -- variables -- */

static bool is_variable(const struct formula *f, const char *name) {
  for (int i = 0; i < f->variables; i++)
    if (!strcmp(f->variable[i], name)) return true;
  return false;
}

/* "k" for channels beside those of the result, else h, h′, h′′. */
static const char *variable_name(struct formula *f, enum role role) {
  const char *name = role_names[role];
  if (role == ROLE_CHANNEL && is_variable(f, name)) name = "k";
  while (is_variable(f, name)) name = formula_text(f, "%s′", name);
  return name;
}

static const struct index *new_variable(struct formula *f, const char *name,
                                        const struct dim *range) {
  f->variable[f->variables++] = name;
  return index_variable(&f->arena, name, range);
}

/* The size that an axis has as a rule, false: none. */
static bool is_usual(enum role role, const struct dim *d) {
  static const enum size sizes[ROLES_ONCE] = {SIZE_G,  SIZE_C, SIZES, SIZE_KH,
                                              SIZE_KW, SIZE_H, SIZE_W};
  enum size size = sizes[role_sort(role)];
  struct dim usual = size == SIZES ? dim_one() : dim_size(size);
  return dim_equal(d, &usual);
}

void formula_element(struct formula *f, const struct shape *s, struct spot *at) {
  *at = (struct spot){0};
  f->variables = 0;
  f->unusual = "";
  for (int i = 0; i < s->count; i++) {
    enum role role = s->axis[i].role;
    const struct dim *range = &s->axis[i].dim;
    at->axis[i] = index_zero(&f->arena);
    if (dim_is_one(range)) continue;
    at->axis[i] = new_variable(f, role_names[role], range);
    if (is_usual(role, range))
      f->usual |= 1u << role;
    else
      f->unusual = formula_text(f, "%s%s%s < %s", f->unusual, *f->unusual ? ", " : "",
                                role_names[role], formula_dim(f, range, false));
  }
}

const struct index *formula_bound(struct formula *f, enum role role, const struct dim *range,
                                  const char **ranges) {
  if (dim_is_one(range)) return index_zero(&f->arena);
  const char *name = variable_name(f, role);
  *ranges = formula_text(f, "%s%s%s < %s", *ranges, **ranges ? ", " : "", name,
                         formula_dim(f, range, false));
  return new_variable(f, name, range);
}

void formula_bound_axes(struct formula *f, const struct shape *s, unsigned roles,
                        const struct spot *at, struct spot *to, const char **ranges) {
  *to = *at;
  for (int i = 0; i < s->count; i++)
    if (roles >> s->axis[i].role & 1)
      to->axis[i] = formula_bound(f, s->axis[i].role, &s->axis[i].dim, ranges);
}

const char *formula_over(struct formula *f, const char *sign, const char *ranges) {
  return *ranges ? formula_text(f, "%s(%s) ", sign, ranges) : "";
}

const char *formula_mean(struct formula *f, const struct shape *s, unsigned roles,
                         const char *ranges) {
  if (!*ranges) return "";
  return formula_text(f, "1/%s·Σ(%s) ", formula_elements(f, s, roles, true), ranges);
}

/* -- elements -- */

const char *formula_place(struct formula *f, const char *name, const struct spot *at, int rank) {
  struct buf b = {0};
  buf_puts(&b, name);
  for (int i = 0; i < rank; i++) {
    buf_puts(&b, i ? ", " : "[");
    index_print(at->axis[i], &b);
  }
  if (rank) buf_puts(&b, "]");
  return keep(f, &b);
}

const char *formula_weight(struct formula *f, int node, const struct spot *at, int rank) {
  return formula_place(f, formula_text(f, "W%d", f->weight[node]), at, rank);
}

/* From a node to one that has a line, as far as data is only moved. */
static int source(struct formula *f, int node, struct spot *at) {
  while (!f->own[node]) {
    struct spot from = {0};
    node_row(&f->k->nodes[node])->family->reads(f, node, at, &from);
    node = f->k->nodes[node].in[0];
    *at = from;
  }
  return node;
}

const char *formula_read(struct formula *f, int node, const struct spot *at) {
  struct spot from = *at;
  node = source(f, node, &from);
  if (from.outside) f->outside[node] = true;
  return formula_place(f, f->name[node], &from, f->k->nodes[node].shape.count);
}

const struct index *formula_flatten(struct formula *f, const struct shape *s, const struct spot *at,
                                    int first, int count) {
  const struct index *flat = index_zero(&f->arena);
  for (int i = first; i < first + count; i++)
    flat = index_add(&f->arena, index_mul(&f->arena, flat, &s->axis[i].dim), at->axis[i]);
  return flat;
}

void formula_unflatten(struct formula *f, const struct shape *s, const struct index *flat,
                       int first, int count, struct spot *at) {
  for (int i = first + count - 1; i >= first; i--) {
    const struct dim *size = &s->axis[i].dim;
    at->axis[i] = i == first ? flat : index_mod(&f->arena, flat, size);
    flat = index_div(&f->arena, flat, size);
  }
}

/* -- lines -- */

void formula_line_of(struct formula *f, const char *place, const char *value) {
  buf_printf(&f->lines, "%s = %s", place, value);
  if (*f->unusual) buf_printf(&f->lines, "   for %s", f->unusual);
  buf_puts(&f->lines, "\n");
}

void formula_line(struct formula *f, int node, const struct spot *at, const char *value) {
  const struct shape *s = &f->k->nodes[node].shape;
  struct spot to = *at;
  int rank = s->count;
  if (node == f->last) {
    to.axis[0] = formula_flatten(f, s, at, 0, rank - 2);
    to.axis[1] = at->axis[rank - 2];
    to.axis[2] = at->axis[rank - 1];
    rank = 3;
  }
  formula_line_of(f, formula_place(f, node == f->last ? "y" : f->name[node], &to, rank), value);
}

static bool moves(const struct kernel *k, int node) {
  const struct row *row = node_row(&k->nodes[node]);
  return row->facts & FACT_MOVES && row->family->reads;
}

/* The line of a node that moves data. */
static void copy_line(struct formula *f, int node) {
  const struct node *n = &f->k->nodes[node];
  struct spot at, from = {0};
  formula_element(f, &n->shape, &at);
  node_row(n)->family->reads(f, node, &at, &from);
  formula_line(f, node, &at, formula_read(f, n->in[0], &from));
}

/* -- which nodes have lines -- */

enum { WEIGHT_MOST = 6 }; /* terms of an index */

/* Whether a node that moves data can be part of an index; else one node more gets a line. */
static bool try_without(struct formula *f, int node) {
  struct spot at;
  formula_element(f, &f->k->nodes[node].shape, &at);
  for (int i = node; !f->own[i]; i = f->k->nodes[i].in[0]) {
    struct spot from = {0};
    const struct shape *input = node_input(f->k, &f->k->nodes[i], 0);
    if (!node_row(&f->k->nodes[i])->family->reads(f, i, &at, &from)) {
      f->own[i] = true;
      return false;
    }
    for (int j = 0; j < input->count; j++)
      if (index_weight(from.axis[j]) > WEIGHT_MOST) {
        f->own[node] = true;
        return false;
      }
    at = from;
  }
  return true;
}

static bool read_once(const struct kernel *k, int node) {
  int readers = 0;
  for (int i = 0; i < k->count; i++)
    for (int j = 0; j < node_row(&k->nodes[i])->arity; j++) readers += k->nodes[i].in[j] == node;
  return readers == 1;
}

static void plan(struct formula *f) {
  const struct kernel *k = f->k;
  for (int i = 0; i < k->count; i++) {
    f->own[i] = !moves(k, i);
    while (!f->own[i] && !try_without(f, i)) continue;
  }
  f->usual = 0;
  int result = k->nodes[k->count - 1].in[0];
  f->last = k->count - 1;
  if (result && f->own[result] && read_once(k, result)) f->last = result;
}

void formula_open(struct formula *f, const struct kernel *k) {
  *f = (struct formula){.k = k, .unusual = ""};
  int weights = 0;
  for (int i = 0; i < k->count; i++) {
    f->name[i] =
        i ? k->nodes[i].op == PRIMITIVE_OUTPUT ? "y" : free_name(f, k->nodes[i].name) : "x";
    f->weight[i] = node_row(&k->nodes[i])->facts & FACT_WEIGHTS ? weights++ : -1;
  }
  plan(f);
}

void formula_close(struct formula *f) {
  buf_free(&f->lines);
  arena_free(&f->arena);
}

void formula_lines(struct formula *f) {
  for (int i = 1; i < f->k->count; i++) {
    if (!f->own[i]) continue;
    if (moves(f->k, i))
      copy_line(f, i);
    else
      node_row(&f->k->nodes[i])->family->formula(f, i);
  }
}
