/* Sets extents from a list, "iw=14,yo=4". A list that is rejected changes nothing. */
#include <string.h>

#include "base/lexer.h"
#include "schedule/schedule.h"

enum { ASSIGNMENTS = 256 };

struct assignment {
  int level;
  int64_t value;
};

struct list {
  struct assignment data[ASSIGNMENTS];
  int count;
};

static bool is_choice(const struct level *level, int64_t value) {
  for (int i = 0; i < level->choices.count; i++)
    if (level->choices.data[i] == value) return true;
  return false;
}

static canvas_status check_value(struct lexer *lx, const struct level *level, int64_t value) {
  const struct token *t = &lx->token;
  if (value < 1 || value > PROGRAM_ELEMENTS)
    return lexer_fail(lx, t, "%lld is no extent of loop '%.40s', give 1 to %lld", (long long)value,
                      level->name, (long long)PROGRAM_ELEMENTS);
  if (level->kind == EXTENT_DYN)
    return lexer_fail(lx, t, "loop '%.40s' depends on data, it takes no number", level->name);
  if (level->kind != EXTENT_CHOICE || is_choice(level, value)) return CANVAS_OK;
  struct buf choices = {0};
  schedule_print_extent(level, &choices);
  canvas_status status = lexer_fail(lx, t, "%lld is none of the numbers of loop '%.40s', %.80s",
                                    (long long)value, level->name, choices.text);
  buf_free(&choices);
  return status;
}

static canvas_status read_level(struct lexer *lx, const struct schedule *s, int *level) {
  struct token t = lx->token;
  char name[SCHEDULE_NAME + 1];
  if (t.kind != TOKEN_NAME) return lexer_unexpected(lx, "the name of a loop");
  *level = -1;
  if (t.length <= SCHEDULE_NAME) {
    memcpy(name, t.start, (size_t)t.length);
    name[t.length] = '\0';
    *level = schedule_find_level(s, name);
  }
  lexer_next(lx);
  if (!lexer_is(lx, "=")) return lexer_unexpected(lx, "'=' and a number after the name of a loop");
  if (*level < 0)
    return lexer_fail(lx, &t, "the schedule has no loop '%.*s'", t.length < 40 ? t.length : 40,
                      t.start);
  return CANVAS_OK;
}

static canvas_status read_assignment(struct lexer *lx, const struct schedule *s,
                                     struct list *list) {
  struct token at = lx->token;
  struct assignment new;
  TRY(read_level(lx, s, &new.level));
  lexer_next(lx);
  if (lx->token.kind != TOKEN_INTEGER) return lexer_unexpected(lx, "a number");
  new.value = lx->token.integer;
  TRY(check_value(lx, &s->levels.data[new.level], new.value));
  lexer_next(lx);
  for (int i = 0; i < list->count; i++)
    if (list->data[i].level == new.level)
      return lexer_fail(lx, &at, "loop '%.40s' is given two numbers",
                        s->levels.data[new.level].name);
  if (list->count == ASSIGNMENTS) return lexer_fail(lx, &at, "more than %d numbers", ASSIGNMENTS);
  list->data[list->count++] = new;
  return CANVAS_OK;
}

canvas_status schedule_set(canvas_context *ctx, struct schedule *s, const char *assignments) {
  struct lexer lx;
  struct list list = {.count = 0};
  TRY(lexer_open(&lx, ctx, assignments, strlen(assignments)));
  do {
    TRY(read_assignment(&lx, s, &list));
  } while (lexer_accept(&lx, ","));
  if (lx.token.kind != TOKEN_END) return lexer_unexpected(&lx, "',' or the end after a number");
  for (int i = 0; i < list.count; i++) {
    struct level *level = &s->levels.data[list.data[i].level];
    level->kind = EXTENT_INT;
    level->extent = list.data[i].value;
    level->choices.count = 0;
  }
  return CANVAS_OK;
}
