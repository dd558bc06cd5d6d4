/* Targets: the layers to replace, their text and cost.
 *
 *   layer1.0.conv1 64 64 56 56 3 1 1      name C_in C_out H W kernel stride groups
 *   layer2.0.conv1,64,128,56,56,3x1,2     groups = 1
 *   layer4.0.conv2 512 512 7 7 3 1 1 2    dilation = 2, printed where it is not 1
 *   mixed.conv 160 192 17 17 1x7 1 1 1 1  projected = 1, printed where it is not 0
 *
 * or the short form `64,56,56;128,28,28`: C,H,W of dense 3x3 layers t0, t1, ... The limits of
 * target_check keep every sum over TARGETS_MAX layers below 2^62.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/pack.h"

enum { MACS_BITS = 50, INPUT_BITS = 40, SHOWN = 40 };

static int shown(const struct token *t) {
  return t->length < SHOWN ? t->length : SHOWN;
}

static bool at_end(const struct lexer *lx) {
  return lx->token.kind == TOKEN_END || lx->token.kind == TOKEN_NEWLINE;
}

/* -- columns -- */

static bool is_column(char c) {
  return c > ' ' && c < 0x7f && c != ',' && c != ';' && c != '#';
}

/* Extends the current token to a whole column, up to a blank, comma, semicolon or comment. */
static canvas_status column(struct lexer *lx, const char *what) {
  struct token *t = &lx->token;
  if (at_end(lx) || !is_column(*t->start)) return lexer_unexpected(lx, what);
  lx->p = t->start;
  while (lx->p < lx->end && is_column(*lx->p)) lx->p++;
  t->length = (int)(lx->p - t->start);
  t->kind = TOKEN_NAME;
  return CANVAS_OK;
}

/* Reads the digits text[0..length) as a size; false: not digits, or out of range. */
static bool read_size(const char *text, int length, int64_t *out) {
  int64_t value = 0;
  if (length < 1) return false;
  for (int i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
    if (value > SIZE_LIMIT) return false;
  }
  *out = value;
  return value >= 1;
}

static canvas_status parse_size(struct lexer *lx, const char *what, int64_t *out) {
  const struct token *t = &lx->token;
  TRY(column(lx, what));
  if (!read_size(t->start, t->length, out))
    return lexer_fail(lx, t, "%s '%.*s' is not a whole number in 1..%lld", what, shown(t), t->start,
                      (long long)SIZE_LIMIT);
  lexer_next(lx);
  return CANVAS_OK;
}

static canvas_status parse_projected(struct lexer *lx, int64_t *out) {
  const struct token *t = &lx->token;
  TRY(column(lx, "projected"));
  if (t->length != 1 || (*t->start != '0' && *t->start != '1'))
    return lexer_fail(lx, t, "projected '%.*s' is neither 0 nor 1", shown(t), t->start);
  *out = *t->start - '0';
  lexer_next(lx);
  return CANVAS_OK;
}

/* Parses `3` or `3x1`. */
static canvas_status parse_window(struct lexer *lx, int64_t *kh, int64_t *kw) {
  const struct token *t = &lx->token;
  TRY(column(lx, "kernel"));
  const char *x = memchr(t->start, 'x', (size_t)t->length);
  int high = x ? (int)(x - t->start) : t->length;
  bool good = read_size(t->start, high, kh);
  *kw = *kh;
  if (x) good = good && read_size(x + 1, t->length - high - 1, kw);
  if (!good)
    return lexer_fail(lx, t, "kernel '%.*s' is not a size such as 3 or 3x1", shown(t), t->start);
  lexer_next(lx);
  return CANVAS_OK;
}

/* -- one target -- */

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c && strchr("_.:/+-", c));
}

canvas_status target_name_parse(struct lexer *lx, char out[TARGET_NAME_SIZE]) {
  const struct token *t = &lx->token;
  TRY(column(lx, "the name of a layer"));
  if (t->length >= TARGET_NAME_SIZE)
    return lexer_fail(lx, t, "name '%.*s...' is longer than %d characters", 20, t->start,
                      TARGET_NAME_SIZE - 1);
  for (int i = 0; i < t->length; i++)
    if (!is_name(t->start[i]))
      return lexer_fail(lx, t, "name '%.*s' holds '%c', use letters, digits and _ . : / + -",
                        shown(t), t->start, t->start[i]);
  memcpy(out, t->start, (size_t)t->length);
  out[t->length] = '\0';
  lexer_next(lx);
  return CANVAS_OK;
}

/* Whether a*b <= limit; then *product is set. */
static bool product_within(int64_t a, int64_t b, int64_t limit, int64_t *product) {
  if (a > limit / b) return false;
  *product = a * b;
  return true;
}

static int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static bool macs_within(const struct target *t, int64_t limit) {
  int64_t n = t->cin / t->groups;
  return product_within(n, t->cout, limit, &n) && product_within(n, t->kh, limit, &n) &&
         product_within(n, t->kw, limit, &n) &&
         product_within(n, ceil_div(t->h, t->stride), limit, &n) &&
         product_within(n, ceil_div(t->w, t->stride), limit, &n);
}

static bool input_within(const struct target *t, int64_t limit) {
  int64_t n;
  return product_within(t->cin > t->cout ? t->cin : t->cout, t->h, limit, &n) &&
         product_within(n, t->w, limit, &n);
}

static canvas_status check_sizes(canvas_context *ctx, const struct target *t) {
  const struct {
    const char *what;
    int64_t value;
  } sizes[] = {{"C_in", t->cin},      {"C_out", t->cout},       {"H", t->h},
               {"W", t->w},           {"kernel height", t->kh}, {"kernel width", t->kw},
               {"stride", t->stride}, {"groups", t->groups},    {"dilation", t->dilation}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i].value < 1 || sizes[i].value > SIZE_LIMIT)
      return fail(ctx, CANVAS_BAD_INPUT, "target '%s': %s %lld is not in 1..%lld", t->name,
                  sizes[i].what, (long long)sizes[i].value, (long long)SIZE_LIMIT);
  return CANVAS_OK;
}

canvas_status target_check(canvas_context *ctx, const struct target *t) {
  TRY(check_sizes(ctx, t));
  if (t->cin % t->groups || t->cout % t->groups)
    return fail(ctx, CANVAS_BAD_INPUT, "target '%s': groups %lld must divide C_in and C_out",
                t->name, (long long)t->groups);
  if (!macs_within(t, INT64_C(1) << MACS_BITS) || !input_within(t, INT64_C(1) << INPUT_BITS))
    return fail(ctx, CANVAS_BAD_INPUT,
                "target '%s' is too large, a layer has at most 2^%d multiply-accumulates and "
                "2^%d elements",
                t->name, MACS_BITS, INPUT_BITS);
  return CANVAS_OK;
}

bool target_same(const struct target *a, const struct target *b) {
  return a->cin == b->cin && a->cout == b->cout && a->h == b->h && a->w == b->w && a->kh == b->kh &&
         a->kw == b->kw && a->stride == b->stride && a->groups == b->groups &&
         a->dilation == b->dilation && a->projected == b->projected;
}

int64_t target_pixels(const struct target *t) {
  return ceil_div(t->h, t->stride) * ceil_div(t->w, t->stride);
}

struct cost target_cost(const struct target *t) {
  int64_t map = target_pixels(t);
  int64_t params = t->cin / t->groups * t->cout * t->kh * t->kw;
  struct cost c = {.macs = params * map, .params = params, .activations = t->cout * map};
  c.bytes = 4 * (t->cin * t->h * t->w + c.activations + params);
  return c;
}

int64_t target_channels(const struct target *t) {
  return t->projected ? t->cout : gcd64(t->cin, t->cout);
}

int64_t target_in_blocks(const struct target *t) {
  return t->projected ? 1 : t->cin / target_channels(t);
}

int64_t target_out_blocks(const struct target *t) {
  return t->cout / target_channels(t);
}

/* An even window counts as the next smaller one, which has a pixel in the middle. */
static int64_t odd(int64_t window) {
  return window - (window % 2 == 0);
}

void target_sizes(const struct target *t, const struct kernel *k, struct sizes *sizes,
                  int64_t *copies) {
  target_sizes_as(t, k && kernel_uses(k, SIZE_S), sizes, copies);
}

void target_sizes_as(const struct target *t, bool strided, struct sizes *sizes, int64_t *copies) {
  int64_t inside = strided ? t->stride : 1, pooled = t->stride / inside;
  *sizes = (struct sizes){.dilation = t->dilation};
  sizes->value[SIZE_C] = target_channels(t);
  sizes->value[SIZE_KH] = odd(t->kh);
  sizes->value[SIZE_KW] = odd(t->kw);
  sizes->value[SIZE_H] = ceil_div(t->h, pooled);
  sizes->value[SIZE_W] = ceil_div(t->w, pooled);
  sizes->value[SIZE_S] = inside;
  *copies = target_in_blocks(t) * target_out_blocks(t);
}

/* -- all targets -- */

int64_t targets_common_channels(const struct targets *t) {
  int64_t common = 0;
  for (int i = 0; i < t->count; i++) common = gcd64(common, target_channels(&t->data[i]));
  return common;
}

void targets_free(struct targets *t) {
  mem_free(t->data);
  *t = (struct targets){0};
}

void targets_print(const struct targets *t, struct buf *out) {
  buf_puts(out, "# name C_in C_out H W kernel stride groups\n");
  for (int i = 0; i < t->count; i++) {
    const struct target *a = &t->data[i];
    buf_printf(out, "%s %lld %lld %lld %lld %lld", a->name, (long long)a->cin, (long long)a->cout,
               (long long)a->h, (long long)a->w, (long long)a->kh);
    if (a->kw != a->kh) buf_printf(out, "x%lld", (long long)a->kw);
    buf_printf(out, " %lld %lld", (long long)a->stride, (long long)a->groups);
    if (a->dilation != 1 || a->projected) buf_printf(out, " %lld", (long long)a->dilation);
    if (a->projected) buf_printf(out, " %lld", (long long)a->projected);
    buf_puts(out, "\n");
  }
}

/* Checks `target`, which starts at token `at`, and appends it. */
static canvas_status append(struct lexer *lx, const struct token *at, const struct target *target,
                            struct targets *out) {
  if (target_check(lx->ctx, target) != CANVAS_OK) {
    char why[MESSAGE_SIZE];
    memcpy(why, lx->ctx->message, sizeof why);
    return lexer_fail(lx, at, "%.900s", why);
  }
  for (int i = 0; i < out->count; i++)
    if (!strcmp(out->data[i].name, target->name))
      return lexer_fail(lx, at, "target '%s' stands twice, give every layer its own name",
                        target->name);
  if (out->count == TARGETS_MAX) return lexer_fail(lx, at, "more than %d targets", TARGETS_MAX);
  VEC_PUSH(out, *target);
  return CANVAS_OK;
}

static canvas_status parse_line(struct lexer *lx, struct targets *out) {
  const struct token at = lx->token;
  struct target t = {.stride = 1, .groups = 1, .dilation = 1};
  const struct {
    const char *what;
    int64_t *size; /* NULL: the kernel */
  } columns[] = {{"C_in", &t.cin},      {"C_out", &t.cout},        {"H", &t.h},
                 {"W", &t.w},           {"kernel", NULL},          {"stride", &t.stride},
                 {"groups", &t.groups}, {"dilation", &t.dilation}, {"projected", &t.projected}};
  enum { NEEDED = 5 };
  TRY(target_name_parse(lx, t.name));
  for (int i = 0; i < (int)(sizeof columns / sizeof *columns); i++) {
    bool comma = lexer_accept(lx, ",");
    if (i >= NEEDED && !comma && at_end(lx)) break;
    if (columns[i].size == &t.projected)
      TRY(parse_projected(lx, &t.projected));
    else if (columns[i].size)
      TRY(parse_size(lx, columns[i].what, columns[i].size));
    else
      TRY(parse_window(lx, &t.kh, &t.kw));
  }
  TRY(append(lx, &at, &t, out));
  return lexer_end_line(lx, "after 'name C_in C_out H W kernel stride groups dilation projected'");
}

/* Parses C,H,W up to a semicolon or the end of the line. */
static canvas_status parse_short(struct lexer *lx, struct targets *out) {
  const struct token at = lx->token;
  struct target t = {.kh = 3, .kw = 3, .stride = 1, .groups = 1, .dilation = 1};
  TRY(parse_size(lx, "C", &t.cin));
  lexer_accept(lx, ",");
  TRY(parse_size(lx, "H", &t.h));
  lexer_accept(lx, ",");
  TRY(parse_size(lx, "W", &t.w));
  t.cout = t.cin;
  t.name[0] = 't';
  int digits = 1;
  for (int n = out->count; n >= 10; n /= 10) digits++;
  for (int n = out->count, i = digits; i > 0; i--, n /= 10) t.name[i] = (char)('0' + n % 10);
  TRY(append(lx, &at, &t, out));
  if (lexer_accept(lx, ";")) return CANVAS_OK;
  return lexer_end_line(lx, "or ';' after 'C,H,W'");
}

/* Whether the text is in short form: it has a semicolon, or its first line has at most three
 * columns that all start like numbers; a line of the long form has at least six. */
static bool is_short(const struct lexer *lx) {
  bool comment = false;
  for (const char *p = lx->token.start; p < lx->end; p++) {
    comment = *p != '\n' && (comment || *p == '#');
    if (*p == ';' && !comment) return true;
  }
  int columns = 0;
  for (const char *p = lx->token.start; p < lx->end && *p != '\n' && *p != '#'; p++) {
    if (!is_column(*p) || (p > lx->token.start && is_column(p[-1]))) continue;
    if ((*p < '0' || *p > '9') && *p != '-' && *p != '+') return false;
    columns++;
  }
  return columns <= 3;
}

static canvas_status parse_all(struct lexer *lx, struct targets *out) {
  lexer_skip_newlines(lx);
  if (lx->token.kind == TOKEN_END)
    return fail(lx->ctx, CANVAS_BAD_INPUT,
                "no targets are given, write 'name C_in C_out H W kernel stride groups' for each "
                "layer or 'C,H,W;C,H,W'");
  bool brief = is_short(lx);
  while (lx->token.kind != TOKEN_END) {
    TRY(brief ? parse_short(lx, out) : parse_line(lx, out));
    lexer_skip_newlines(lx);
  }
  return CANVAS_OK;
}

canvas_status targets_parse(canvas_context *ctx, const char *text, size_t length,
                            struct targets *out) {
  struct lexer lx;
  *out = (struct targets){0};
  TRY(lexer_open(&lx, ctx, text, length));
  canvas_status status = parse_all(&lx, out);
  if (status != CANVAS_OK) targets_free(out);
  return status;
}
