/* Parses and prints the text of kernels.
 *
 *   canvas 1
 *   kernel NAME
 *   a = input                 : C H W
 *   b = WORD INPUT.. [MODE] [ATTRIBUTE=VALUE ..] [: SHAPE]
 *   out b
 *
 * Parsing checks the shape after the colon. print(parse(t)) is stable.
 */
#include <stdio.h>
#include <string.h>

#include "kernel/attributes.h"
#include "kernel/kernel.h"

enum { VERSION = 1 };

static canvas_status parse_name(struct lexer *lx, char *out, int size, const char *what) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_NAME) return lexer_unexpected(lx, what);
  if (t->length >= size)
    return lexer_fail(lx, t, "name '%.*s...' is longer than %d characters", 20, t->start, size - 1);
  memcpy(out, t->start, (size_t)t->length);
  out[t->length] = '\0';
  lexer_next(lx);
  return CANVAS_OK;
}

static int node_named(const struct kernel *k, const struct token *t) {
  for (int i = 0; i < k->count; i++)
    if ((int)strlen(k->nodes[i].name) == t->length &&
        !memcmp(k->nodes[i].name, t->start, (size_t)t->length))
      return i;
  return -1;
}

/* The first row with this word. Rows with the same word are adjacent and differ in mode. */
static int row_named(const struct token *t) {
  for (int i = 0; i < PRIMITIVE_COUNT; i++) {
    const char *word = primitive_rows[i].word;
    if ((int)strlen(word) == t->length && !memcmp(word, t->start, (size_t)t->length)) return i;
  }
  return -1;
}

static canvas_status parse_input(struct lexer *lx, const struct kernel *k, int *in) {
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of an earlier node");
  *in = node_named(k, t);
  if (*in < 0)
    return lexer_fail(lx, t, "unknown node '%.*s', a node can use only nodes above it",
                      t->length < 40 ? t->length : 40, t->start);
  lexer_next(lx);
  return CANVAS_OK;
}

/* The attribute of the row at the current token; -1: none of that name. */
static int attribute_named(const struct row *row, const struct lexer *lx) {
  for (int i = 0; i < ATTRIBUTE_COUNT; i++)
    if (row->attributes >> i & 1 && lexer_is(lx, attributes[i].key)) return i;
  return -1;
}

/* Selects the row of the node's word with this mode; false: there is none. */
static bool switch_mode(const struct lexer *lx, enum primitive *op) {
  const char *word = primitive_rows[*op].word;
  for (int i = 0; i < PRIMITIVE_COUNT; i++)
    if (!strcmp(primitive_rows[i].word, word) && *primitive_rows[i].mode &&
        lexer_is(lx, primitive_rows[i].mode)) {
      *op = (enum primitive)i;
      return true;
    }
  return false;
}

/* Parses mode and attributes up to the colon or the end of the line. */
static canvas_status parse_attributes(struct lexer *lx, struct node *n) {
  const struct token start = lx->token;
  unsigned seen = 0;
  bool mode = false;
  while (lx->token.kind == TOKEN_NAME) {
    const struct token key = lx->token;
    if (!mode && !seen && switch_mode(lx, &n->op)) {
      mode = true;
      lexer_next(lx);
      continue;
    }
    int attribute = attribute_named(node_row(n), lx);
    enum primitive op = n->op;
    if (attribute < 0 && switch_mode(lx, &op))
      return lexer_fail(lx, &key, "mode '%s' of '%s' stands once, before the attributes",
                        primitive_rows[op].mode, node_row(n)->word);
    if (attribute < 0)
      return lexer_fail(lx, &key, "'%s' has no attribute '%.*s'", node_row(n)->word,
                        key.length < 40 ? key.length : 40, key.start);
    if (seen >> attribute & 1)
      return lexer_fail(lx, &key, "attribute '%s' stands twice", attributes[attribute].key);
    seen |= 1u << attribute;
    lexer_next(lx);
    TRY(lexer_expect(lx, "=", "after the attribute's name"));
    TRY(attribute_parse(lx, (enum attribute)attribute, &n->attrs));
  }
  const struct row *row = node_row(n);
  if (*row->mode && !mode)
    return lexer_fail(lx, &start, "'%s' needs its mode, for example '%s'", row->word, row->mode);
  for (int i = 0; i < ATTRIBUTE_COUNT; i++)
    if (!attributes[i].optional && (row->attributes & ~seen) >> i & 1)
      return lexer_fail(lx, &start, "'%s' needs the attribute '%s='", row->word, attributes[i].key);
  return CANVAS_OK;
}

static canvas_status check_shape(struct lexer *lx, const struct node *n) {
  struct shape given;
  const struct token start = lx->token;
  TRY(shape_parse(lx, &given));
  if (shape_equal(&given, &n->shape)) return CANVAS_OK;
  struct buf want = {0}, have = {0};
  shape_print(&n->shape, &want);
  shape_print(&given, &have);
  canvas_status status =
      lexer_fail(lx, &start, "shape of '%s' is '%s', not '%s'", n->name, want.text, have.text);
  buf_free(&want);
  buf_free(&have);
  return status;
}

/* kernel_add with the node's position in front of its error message. */
static canvas_status add_at(struct lexer *lx, const struct token *at, struct kernel *k,
                            const struct node *n) {
  canvas_status status = kernel_add(lx->ctx, k, n);
  if (status == CANVAS_OK) return status;
  char why[MESSAGE_SIZE];
  memcpy(why, lx->ctx->message, sizeof why);
  return lexer_fail(lx, at, "%.900s", why);
}

static canvas_status parse_operands(struct lexer *lx, const struct kernel *k, struct node *n) {
  const struct token word = lx->token;
  if (word.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a primitive");
  int op = row_named(&word);
  if (op < 0 || op == PRIMITIVE_OUTPUT)
    return lexer_fail(lx, &word, "unknown primitive '%.*s', docs/kernel.md lists them",
                      word.length < 40 ? word.length : 40, word.start);
  n->op = (enum primitive)op;
  lexer_next(lx);
  for (int i = 0; i < primitive_rows[op].arity; i++) TRY(parse_input(lx, k, &n->in[i]));
  /* without a mode the first row of the word is taken */
  return parse_attributes(lx, n);
}

/* Parses `NAME = WORD ...`. The first node must be the input, and no other may be. */
static canvas_status parse_node(struct lexer *lx, struct kernel *k, bool first) {
  struct node n = {.in = {-1, -1}, .attrs.dim = {.num = 1, .den = 1}};
  const struct token name = lx->token;
  TRY(parse_name(lx, n.name, sizeof n.name, "a node 'NAME = PRIMITIVE ...' or 'out NAME'"));
  if (!first && node_named(k, &name) >= 0)
    return lexer_fail(lx, &name, "node '%s' is defined twice", n.name);
  TRY(lexer_expect(lx, "=", "after the node's name"));
  const struct token word = lx->token;
  if (word.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a primitive");
  if (first != lexer_is(lx, "input"))
    return lexer_fail(
        lx, &word,
        first ? "the first node must be 'input', not '%.*s'" : "only the first node can be '%.*s'",
        word.length < 40 ? word.length : 40, word.start);
  TRY(parse_operands(lx, k, &n));
  if (first)
    memcpy(k->nodes[0].name, n.name, sizeof n.name);
  else
    TRY(add_at(lx, &word, k, &n));
  if (lexer_accept(lx, ":")) TRY(check_shape(lx, &k->nodes[k->count - 1]));
  return lexer_end_line(lx, "after the node");
}

static canvas_status parse_version(struct lexer *lx) {
  TRY(lexer_expect(lx, "canvas", "and the version ('canvas 1') on the first line"));
  const struct token *t = &lx->token;
  if (t->kind != TOKEN_INTEGER) return lexer_unexpected(lx, "the version after 'canvas'");
  if (t->integer != VERSION)
    return lexer_fail(lx, t, "version %lld of the text is unknown, this program reads version %d",
                      (long long)t->integer, VERSION);
  lexer_next(lx);
  return lexer_end_line(lx, "after the version");
}

static canvas_status parse_body(struct lexer *lx, struct kernel *k) {
  lexer_skip_newlines(lx);
  TRY(lexer_expect(lx, "kernel", "and the kernel's name"));
  TRY(parse_name(lx, k->name, sizeof k->name, "the kernel's name"));
  TRY(lexer_end_line(lx, "after the kernel's name"));
  for (bool first = true;; first = false) {
    lexer_skip_newlines(lx);
    struct token at = lx->token;
    if (lexer_is(lx, "out")) {
      struct node out = {.op = PRIMITIVE_OUTPUT, .in = {-1, -1}, .attrs.dim = {.num = 1, .den = 1}};
      lexer_next(lx);
      if (!lexer_is(lx, "=")) {
        if (first) return lexer_fail(lx, &at, "the first node must be 'input'");
        TRY(parse_input(lx, k, &out.in[0]));
        TRY(add_at(lx, &at, k, &out));
        TRY(lexer_end_line(lx, "after the output"));
        return kernel_verify(lx->ctx, k);
      }
      return lexer_fail(lx, &at, "'out' cannot be the name of a node");
    }
    TRY(parse_node(lx, k, first));
  }
}

canvas_status kernel_parse(struct lexer *lx, struct kernel **out) {
  lexer_skip_newlines(lx);
  TRY(parse_version(lx));
  return kernel_parse_body(lx, out);
}

canvas_status kernel_parse_body(struct lexer *lx, struct kernel **out) {
  struct kernel *k = kernel_new("");
  canvas_status status = parse_body(lx, k);
  if (status != CANVAS_OK) {
    kernel_free(k);
    return status;
  }
  *out = k;
  return CANVAS_OK;
}

void node_print(const struct kernel *k, int node, struct buf *out) {
  const struct node *n = &k->nodes[node];
  const struct row *row = node_row(n);
  buf_puts(out, row->word);
  for (int i = 0; i < row->arity; i++) buf_printf(out, " %s", k->nodes[n->in[i]].name);
  if (*row->mode) buf_printf(out, " %s", row->mode);
  attributes_print(row->attributes, &n->attrs, out);
}

void kernel_print_version(struct buf *out) {
  buf_printf(out, "canvas %d\n", VERSION);
}

void kernel_print(const struct kernel *k, struct buf *out) {
  kernel_print_version(out);
  kernel_print_body(k, out);
}

void kernel_print_body(const struct kernel *k, struct buf *out) {
  enum { COLON = 30 };
  buf_printf(out, "kernel %s\n", k->name);
  for (int i = 0; i < k->count - 1; i++) {
    buf_printf(out, "%s = ", k->nodes[i].name);
    size_t line = out->length - strlen(k->nodes[i].name) - 3;
    node_print(k, i, out);
    buf_pad(out, line, COLON);
    buf_puts(out, " : ");
    shape_print(&k->nodes[i].shape, out);
    buf_puts(out, "\n");
  }
  buf_printf(out, "out %s\n", k->nodes[k->nodes[k->count - 1].in[0]].name);
}
