/* Functions that all edits of the default schedule use. See default_editor.h. */
#include "autoschedule/default_editor.h"

#include <stdio.h>
#include <string.h>

#include "rewrite/program_edit.h"
#include "rewrite/program_rebuild.h"

const struct default_plans *editor_plans(struct editor *e) {
  if (!e->planned) default_plan_all(&e->plans, program_of(e), e->machine, e->mode);
  e->planned = true;
  return &e->plans;
}

void editor_close(struct editor *e) {
  if (e->planned) default_plan_free(&e->plans);
  e->planned = false;
}

void editor_take(struct editor *e, struct program *p) {
  editor_close(e);
  program_free(e->p);
  e->p = p;
}

struct program *editor_edited(const struct editor *e, const struct program *p, const char *text) {
  canvas_context ctx;
  struct program *out;
  canvas_status status = e->verifies ? program_edit(&ctx, p, text, strlen(text), &out)
                                     : program_edit_unverified(&ctx, p, text, strlen(text), &out);
  return status == CANVAS_OK ? out : NULL;
}

bool editor_edit(struct editor *e, const char *text) {
  struct program *out = editor_edited(e, program_of(e), text);
  if (out) editor_take(e, out);
  return out != NULL;
}

bool editor_normalize_conditions(struct editor *e) {
  canvas_context ctx;
  struct program *out = program_normalize_conditions(program_of(e));
  if (out && program_verify(&ctx, out) == CANVAS_OK) {
    editor_take(e, out);
    return true;
  }
  program_free(out);
  return false;
}

double editor_cycles(struct editor *e, const struct program *p) {
  struct default_plans all;
  if (p == program_of(e)) return default_plan_cycles(editor_plans(e));
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
