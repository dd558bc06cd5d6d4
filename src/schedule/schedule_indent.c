/* Blocks of lines by indentation, for both forms of a schedule. See schedule_text.h. */
#include <string.h>

#include "schedule/schedule_text.h"

/* Rejects tabs, whose width is not defined. */
static canvas_status check_blanks(struct reader *r) {
  const struct token *t = &r->lx.token;
  const char *start = t->start - (t->column - 1);
  if (memchr(start, '\t', (size_t)(t->column - 1)))
    return lexer_fail(&r->lx, t, "a tab before the line, indent with blanks");
  return CANVAS_OK;
}

canvas_status schedule_read_indent(struct reader *r) {
  const struct token *t = &r->lx.token;
  TRY(check_blanks(r));
  if (!r->count || (r->opens && t->column > r->blocks[r->count - 1].column)) {
    if (r->count == SCHEDULE_DEPTH + 2)
      return lexer_fail(&r->lx, t, "lines are nested more than %d deep", r->count);
    r->blocks[r->count++] = (struct block){t->column, r->below};
    return CANVAS_OK;
  }
  int above = r->count;
  while (r->count && r->blocks[r->count - 1].column > t->column) r->count--;
  if (r->count && r->blocks[r->count - 1].column == t->column) return CANVAS_OK;
  if (r->count < above) return lexer_fail(&r->lx, t, "the line begins where no line above it does");
  return lexer_fail(&r->lx, t, "the line is deeper than the one above it, which opens no loop");
}
