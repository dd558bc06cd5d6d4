/* Parses the text of an edit into a change (program_rebuild.h), and rejects edits that are not
 * legal. See program_edit.h. Edits of one value of a stage are parsed in program_edit_values.c. */
#include "rewrite/program_edit.h"
#include "program/program_facts.h"

#include <stdlib.h>
#include <string.h>

#include "rewrite/program_rebuild.h"

enum { WINOGRADS = 64 /* convolutions of one edit */ };

struct edit {
  struct lexer lx;
  struct change change;
};

/* ---- parsing an edit ----------------------------------------------------------------------- */

static canvas_status reject_indices(struct edit *e, const struct token *at) {
  const struct program_tensor *t = &e->change.from->tensors.data[e->change.tensor];
  if (t->dtype != PROGRAM_I32) return CANVAS_OK;
  return lexer_fail(&e->lx, at, "'%.40s' is of i32: only inputs hold indices, so it stays one",
                    t->name);
}

/* Parses the Y of `X in Y`. */
static canvas_status read_consumer(struct edit *e) {
  const struct program *p = e->change.from;
  struct token in = e->lx.token;
  TRY(read_tensor(&e->lx, e->change.from, "the stage that reads it", &e->change.consumer));
  if (stage_loads(p, e->change.consumer, e->change.tensor)) return CANVAS_OK;
  return lexer_fail(&e->lx, &in, "'%.40s' does not load '%.40s'",
                    p->tensors.data[e->change.consumer].name,
                    p->tensors.data[e->change.tensor].name);
}

static canvas_status read_cache(struct edit *e) {
  struct token at = e->lx.token;
  TRY(read_tensor(&e->lx, e->change.from, "the tensor to cache", &e->change.tensor));
  TRY(reject_indices(e, &at));
  const struct program_tensor *t = &e->change.from->tensors.data[e->change.tensor];
  if (lexer_accept(&e->lx, "in")) {
    e->change.kind = CHANGE_CACHE_READ;
    TRY(read_consumer(e));
  } else if (t->is_input) {
    return lexer_fail(&e->lx, &at,
                      "'%.40s' is an input: say for which stage, 'cache %.40s in STAGE as NAME'",
                      t->name, t->name);
  }
  return read_new_name(&e->lx, &e->change);
}

static canvas_status read_pack(struct edit *e) {
  struct token at = e->lx.token;
  e->change.kind = CHANGE_PACK;
  TRY(read_tensor(&e->lx, e->change.from, "the tensor to pack", &e->change.tensor));
  TRY(reject_indices(e, &at));
  bool read = false;
  for (int i = e->change.tensor; i < e->change.from->tensors.count && !read; i++)
    read = stage_loads(e->change.from, i, e->change.tensor);
  if (!read)
    return lexer_fail(&e->lx, &at, "no stage loads '%.40s', there is nothing to pack it for",
                      e->change.from->tensors.data[e->change.tensor].name);
  TRY(read_new_name(&e->lx, &e->change));
  return layout_parse(&e->lx, e->change.from, e->change.tensor, &e->change.layout);
}

/* A stage that reduces can be inlined only into a chain of copies, each the only consumer of the
 * one before. Otherwise a reduction would stand inside an expression. */
static canvas_status check_inlined(struct edit *e, const struct token *at) {
  const struct program *p = e->change.from;
  const bool *inlined = e->change.inlined;
  for (int i = 0; i < p->tensors.count; i++) {
    if (!inlined[i] || !p->tensors.data[i].reductions) continue;
    for (int copy = i; inlined[copy];) {
      int of = copy, loads = 0, copies = 0;
      for (int j = of + 1; j < p->tensors.count; j++) {
        loads += stage_loads(p, j, of);
        if (copied_tensor(p, j) == of) copy = j, copies++;
      }
      if (loads != 1 || copies != 1)
        return lexer_fail(&e->lx, at, "'%.40s' reduces, and more than one stage needs '%.40s'",
                          p->tensors.data[i].name, p->tensors.data[of].name);
    }
  }
  return CANVAS_OK;
}

/* Parses `P` or `P, Q` after `inline`. */
static canvas_status read_inline(struct edit *e) {
  const struct token first = e->lx.token;
  e->change.kind = CHANGE_INLINE;
  do {
    struct token at = e->lx.token;
    int tensor;
    TRY(read_tensor(&e->lx, e->change.from, "the stage to inline", &tensor));
    const char *why = not_inlined(e->change.from, tensor);
    if (why)
      return lexer_fail(&e->lx, &at, "'%.40s' %s", e->change.from->tensors.data[tensor].name, why);
    e->change.inlined[tensor] = true;
    if (at.start == first.start) e->change.tensor = tensor;
  } while (lexer_accept(&e->lx, ","));
  return check_inlined(e, &first);
}

/* Parses the name of a reduction axis of the tensor. */
static canvas_status read_reduction(struct edit *e) {
  const struct program_tensor *t = &e->change.from->tensors.data[e->change.tensor];
  struct token at = e->lx.token;
  if (at.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, "a reduction axis of the stage");
  for (int i = t->rank; i < t->rank + t->reductions; i++)
    if (lexer_is(&e->lx, t->axes[i].name)) e->change.axis = i;
  if (e->change.axis < 0)
    return lexer_fail(&e->lx, &at, "'%.40s' has no reduction axis '%.*s'", t->name,
                      at.length < 40 ? at.length : 40, at.start);
  lexer_next(&e->lx);
  return CANVAS_OK;
}

/* Parses `g as YP` after `rfactor Y i of`. */
static canvas_status read_group(struct edit *e) {
  const struct program_tensor *t = &e->change.from->tensors.data[e->change.tensor];
  const struct token at = e->lx.token;
  int group = t->rank - 1;
  if (at.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, "the axis of the groups");
  while (group >= 0 && !lexer_is(&e->lx, t->axes[group].name)) group--;
  if (group < 0)
    return lexer_fail(&e->lx, &at, "'%.40s' has no axis '%.*s'", t->name,
                      at.length < 40 ? at.length : 40, at.start);
  const char *why = not_grouped(e->change.from, e->change.tensor, e->change.axis, group);
  if (why) return lexer_fail(&e->lx, &at, "axis '%.40s' %s", t->axes[e->change.axis].name, why);
  e->change.group = group;
  e->change.lanes = t->axes[e->change.axis].size;
  lexer_next(&e->lx);
  return read_new_name(&e->lx, &e->change);
}

/* Parses `Y k 16 as YP` or `Y i of g as YP` after `rfactor`. */
static canvas_status read_rfactor(struct edit *e) {
  struct token at = e->lx.token;
  e->change.kind = CHANGE_RFACTOR;
  e->change.axis = -1;
  TRY(read_tensor(&e->lx, e->change.from, "the stage whose reduction is split", &e->change.tensor));
  const struct program_tensor *t = &e->change.from->tensors.data[e->change.tensor];
  if (!t->reductions)
    return lexer_fail(&e->lx, &at, "'%.40s' does not reduce, there is nothing to split", t->name);
  TRY(read_reduction(e));
  if (lexer_accept(&e->lx, "of")) return read_group(e);
  at = e->lx.token;
  if (at.kind != TOKEN_INTEGER) return lexer_unexpected(&e->lx, "the number of partial sums");
  const struct program_axis *axis = &t->axes[e->change.axis];
  if (at.integer < 2 || at.integer > axis->size)
    return lexer_fail(&e->lx, &at, "axis '%.40s' has %lld places, give 2 partial sums to that many",
                      axis->name, (long long)axis->size);
  e->change.lanes = at.integer;
  const char *why = not_rfactored(e->change.from, e->change.tensor, e->change.axis, at.integer);
  if (why) return lexer_fail(&e->lx, &at, "axis '%.40s' %s", axis->name, why);
  lexer_next(&e->lx);
  return read_new_name(&e->lx, &e->change);
}

/* Parses `P in Y h 8 as PO` after `overlap`. */
static canvas_status read_overlap(struct edit *e) {
  const struct program *p = e->change.from;
  struct window *w = &e->change.window;
  e->change.kind = CHANGE_OVERLAP;
  struct token first = e->lx.token;
  TRY(read_tensor(&e->lx, e->change.from, "the tensor that is read", &e->change.tensor));
  TRY(reject_indices(e, &first));
  TRY(lexer_expect(&e->lx, "in", "and the stage that reads it"));
  TRY(read_consumer(e));
  const struct program_tensor *t = &p->tensors.data[e->change.tensor];
  const struct program_tensor *consumer = &p->tensors.data[e->change.consumer];
  struct token at = e->lx.token;
  int own = consumer->rank - 1;
  if (at.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, "an axis of the stage that reads it");
  while (own >= 0 && !lexer_is(&e->lx, consumer->axes[own].name)) own--;
  if (own < 0)
    return lexer_fail(&e->lx, &at, "'%.40s' has no axis '%.*s'", consumer->name,
                      at.length < 40 ? at.length : 40, at.start);
  const char *why = find_window(p, e->change.consumer, e->change.tensor, own, w);
  if (why) return lexer_fail(&e->lx, &at, "'%.40s' %s", t->name, why);
  lexer_next(&e->lx);
  if (e->lx.token.kind != TOKEN_INTEGER) return lexer_unexpected(&e->lx, "the size of a tile");
  w->tile = e->lx.token.integer;
  if (w->tile < 1 || w->tile > consumer->axes[own].size)
    return lexer_fail(&e->lx, &e->lx.token, "a tile of axis '%.40s' has 1 to %lld places",
                      consumer->axes[own].name, (long long)consumer->axes[own].size);
  lexer_next(&e->lx);
  return read_new_name(&e->lx, &e->change);
}

/* Parses `Y 4` or `Y, Z 4` after `winograd`. */
static canvas_status read_winograd(struct edit *e) {
  const struct program *p = e->change.from;
  struct token at[WINOGRADS];
  int stage[WINOGRADS], count = 0;
  e->change.kind = CHANGE_WINOGRAD;
  do {
    if (count == WINOGRADS) return lexer_unexpected(&e->lx, "fewer convolutions");
    at[count] = e->lx.token;
    TRY(read_tensor(&e->lx, p, "the convolution", &stage[count++]));
  } while (lexer_accept(&e->lx, ","));
  e->change.tensor = stage[0];
  const struct token tile = e->lx.token;
  if (tile.kind != TOKEN_INTEGER) return lexer_unexpected(&e->lx, "the rows of a tile, 2 or 4");
  if (!winograd_has_tile(tile.integer))
    return lexer_fail(&e->lx, &tile,
                      "Winograd's convolution has tiles of 2x2 and of 4x4, not of %lld",
                      (long long)tile.integer);
  lexer_next(&e->lx);
  for (int i = 0; i < count; i++) {
    struct winograd found;
    const char *why = find_winograd(p, stage[i], (int)tile.integer, &found);
    if (why) return lexer_fail(&e->lx, &at[i], "'%.40s' %s", p->tensors.data[stage[i]].name, why);
    change_add_winograd(&e->change, stage[i], &found);
  }
  return CANVAS_OK;
}

static canvas_status read_type(struct edit *e) {
  struct token at = e->lx.token;
  e->change.kind = CHANGE_TYPE;
  TRY(read_tensor(&e->lx, e->change.from, "the tensor whose data type changes", &e->change.tensor));
  TRY(reject_indices(e, &at));
  for (int i = 0; i < PROGRAM_I32; i++)
    if (lexer_accept(&e->lx, program_dtype_name((enum program_dtype)i))) {
      e->change.type = (enum program_dtype)i;
      return CANVAS_OK;
    }
  return lexer_unexpected(&e->lx, "f32, f64 or bf16");
}

/* Parses `Y` or `Y as Z` after `border`. */
static canvas_status read_border(struct edit *e) {
  struct token at = e->lx.token;
  e->change.kind = CHANGE_BORDER;
  TRY(read_tensor(&e->lx, e->change.from, "the stage with the padded product", &e->change.tensor));
  const struct program_tensor *t = &e->change.from->tensors.data[e->change.tensor];
  if (t->is_input || !has_padded_product(e->change.from, t->body))
    return lexer_fail(&e->lx, &at,
                      "'%.40s' multiplies no zero-padded value: inline the padding stage first",
                      t->name);
  if (!lexer_is(&e->lx, "as")) return CANVAS_OK;
  const char *why = find_padding_sum(e->change.from, e->change.tensor, &e->change.padding_sum);
  if (why) return lexer_fail(&e->lx, &at, "'%.40s' %s", t->name, why);
  return read_new_name(&e->lx, &e->change);
}

static canvas_status read_outlined(struct edit *e) {
  return read_outline(&e->lx, &e->change, CHANGE_OUTLINE, false);
}

static canvas_status read_columns(struct edit *e) {
  return read_outline(&e->lx, &e->change, CHANGE_OUTLINE, true);
}

static canvas_status read_reciprocal(struct edit *e) {
  return read_outline(&e->lx, &e->change, CHANGE_RECIPROCAL, false);
}

static canvas_status read_straightened(struct edit *e) {
  return read_straight(&e->lx, &e->change);
}

static canvas_status read_transposed(struct edit *e) {
  return read_transpose(&e->lx, &e->change);
}

static const struct row {
  const char *word;
  canvas_status (*read)(struct edit *e);
} rows[] = {{"cache", read_cache},           {"pack", read_pack},
            {"inline", read_inline},         {"type", read_type},
            {"rfactor", read_rfactor},       {"border", read_border},
            {"overlap", read_overlap},       {"winograd", read_winograd},
            {"outline", read_outlined},      {"columns", read_columns},
            {"reciprocal", read_reciprocal}, {"straight", read_straightened},
            {"turn", read_transposed}};
enum { ROWS = sizeof rows / sizeof *rows };

/* Edits of the whole program, of two words. */
static const struct whole_row {
  const char *word, *of;
  struct program *(*edit)(const struct program *p);
} whole_rows[] = {{"merge", "axes", program_merge_axes},
                  {"normalize", "conditions", program_normalize_conditions}};
enum { WHOLE_ROWS = sizeof whole_rows / sizeof *whole_rows };

static canvas_status read_whole(struct edit *e) {
  for (int i = 0; i < WHOLE_ROWS; i++) {
    if (!lexer_accept(&e->lx, whole_rows[i].word)) continue;
    e->change.kind = CHANGE_WHOLE;
    e->change.tensor = -1;
    e->change.edit_whole = whole_rows[i].edit;
    return lexer_expect(&e->lx, whole_rows[i].of, "after what is done to all of them");
  }
  return lexer_unexpected(&e->lx,
                          "an edit (cache, pack, inline, type, rfactor, border, overlap, "
                          "winograd, outline, columns, reciprocal, straight, turn, merge or "
                          "normalize)");
}

static canvas_status read_edit(struct edit *e) {
  struct lexer *lx = &e->lx;
  int row = 0;
  lexer_skip_newlines(lx);
  const char *start = lx->token.start;
  while (row < ROWS && !lexer_accept(lx, rows[row].word)) row++;
  TRY(row < ROWS ? rows[row].read(e) : read_whole(e));
  const char *end = lx->token.start, *comment = memchr(start, '#', (size_t)(end - start));
  if (comment) end = comment;
  while (end > start && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  lexer_skip_newlines(lx);
  if (lx->token.kind != TOKEN_END) return lexer_unexpected(lx, "the end of the edit");
  if (e->change.kind != CHANGE_WHOLE)
    e->change.text = arena_strndup(&e->change.to->arena, start, (size_t)(end - start));
  return CANVAS_OK;
}

canvas_status change_read(canvas_context *ctx, const struct program *p, const char *text,
                          size_t length, struct change *out) {
  struct edit e = {.change = change_open(CHANGE_CACHE_WRITE, p)};
  canvas_status status = lexer_open(&e.lx, ctx, text, length);
  if (status == CANVAS_OK) status = read_edit(&e);
  *out = e.change;
  return status;
}

canvas_status program_edit_unverified(canvas_context *ctx, const struct program *p,
                                      const char *text, size_t length, struct program **out) {
  struct change change;
  *out = NULL;
  canvas_status status = change_read(ctx, p, text, length, &change);
  if (status == CANVAS_OK) {
    *out = change_make(&change);
    return *out ? status : fail(ctx, CANVAS_BAD_INPUT, "the edit changes nothing in the program");
  }
  change_close(&change);
  program_free(change.to);
  return status;
}

canvas_status program_edit(canvas_context *ctx, const struct program *p, const char *text,
                           size_t length, struct program **out) {
  TRY(program_edit_unverified(ctx, p, text, length, out));
  canvas_status status = program_verify(ctx, *out);
  if (status == CANVAS_OK) return status;
  program_free(*out);
  *out = NULL;
  return status;
}
