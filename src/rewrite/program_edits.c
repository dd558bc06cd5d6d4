/* The list of edits that made a program, as texts. See program_edit.h. */
#include <string.h>

#include "rewrite/program_edit.h"

void program_note_edit(struct program *to, const struct program *from, const char *text) {
  struct buf edits = {0};
  buf_printf(&edits, "%s%s\n", from->edits ? from->edits : "", text);
  to->edits = arena_strndup(&to->arena, edits.text, edits.length);
  buf_free(&edits);
}

const char *program_edits_since(const struct program *p, const struct program *given) {
  const char *before = given->edits ? given->edits : "", *all = p->edits ? p->edits : "";
  size_t length = strlen(before);
  return strncmp(all, before, length) ? NULL : all + length;
}
