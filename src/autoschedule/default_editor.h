/* A program and the edits that the default schedule makes, one after the other. An edit that fails leaves
 * the program as it was. */
#ifndef CANVAS_AUTOSCHEDULE_DEFAULT_EDITOR_H
#define CANVAS_AUTOSCHEDULE_DEFAULT_EDITOR_H

#include "autoschedule/default.h"

enum { EDIT_TEXT = 4 * PROGRAM_NAME }; /* bytes of an edit with up to three names and a number */

struct editor {
  struct program *p; /* the edited program, owned; NULL: no edit yet */
  const struct program *given;
  const struct machine *machine;
  struct default_mode mode;
  bool verifies; /* verify after each edit; else once, after all of them */
  int refused;   /* operands that editor_materialize tried without success */
  bool planned;
  struct default_plans plans; /* of the edited program, if `planned`: use editor_plans */
};

static inline const struct program *program_of(const struct editor *e) {
  return e->p ? e->p : e->given;
}

/* default_editor.c */
/* The plan of the edited program; valid until the next edit. */
const struct default_plans *editor_plans(struct editor *e);
void editor_close(struct editor *e); /* frees the plan, not the program */
void editor_take(struct editor *e, struct program *p);
struct program *editor_edited(const struct editor *e, const struct program *p,
                              const char *text); /* NULL: the edit fails */
bool editor_edit(struct editor *e, const char *text);
double editor_cycles(struct editor *e, const struct program *p); /* predicted */
/* Writes a new tensor name: `name`, the ending, and a number if that is taken. */
void editor_name(const struct program *p, const char *name, const char *ending,
                 char text[PROGRAM_NAME]);

/* Each function makes one edit, and returns false if there is none left. */
bool editor_normalize_conditions(struct editor *e); /* default_editor.c: all conditions at once */
bool editor_multiply(struct editor *e);    /* default_reciprocals.c: x / d -> x * (1 / d) */
bool editor_hoist(struct editor *e);       /* default_reciprocals.c: functions of a row's value */
bool editor_materialize(struct editor *e); /* default_materialize.c: padded buffers */
bool editor_transpose(struct editor *e); /* default_materialize.c: layouts of element-wise stages */
bool editor_straighten(struct editor *e, int *skip); /* default_straight.c: skips so many loads */
bool editor_border(struct editor *e, int *after); /* default_borders.c: of a stage behind `after` */
bool editor_pack(struct editor *e);               /* default_panels.c: all panels at once */

#endif
