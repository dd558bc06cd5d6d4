/* What the edits of the default schedule have in common: see default_editor.h. */
#include "transform/default_editor.h"

#include <stdio.h>
#include <string.h>

#include "program/program_edit.h"
#include "program/program_rebuild.h"

void editor_take(struct editor *e, struct program *p) {
  program_free(e->p);
  e->p = p;
}

bool editor_edit(struct editor *e, const char *text) {
  canvas_context ctx;
  struct program *out;
  if (program_edit(&ctx, program_of(e), text, strlen(text), &out) != CANVAS_OK) return false;
  editor_take(e, out);
  return true;
}

double editor_cycles(const struct editor *e, const struct program *p) {
  struct default_plans all;
  default_plan_all(&all, p, e->machine, e->mode);
  double cycles = default_plan_cycles(&all);
  default_plan_free(&all);
  return cycles;
}

void editor_name(const struct program *p, const char *name, const char *ending,
                 char text[PROGRAM_NAME]) {
  snprintf(text, PROGRAM_NAME, "%.100s%s", name, ending);
  for (int i = 2; program_find(p, text) >= 0; i++)
    snprintf(text, PROGRAM_NAME, "%.100s%s%d", name, ending, i);
}
