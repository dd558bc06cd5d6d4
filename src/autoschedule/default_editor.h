/* The program that the edits of a default schedule are made of, one after the other: see default.h. An edit
 * that does not go through leaves it as it was. */
#ifndef CANVAS_AUTOSCHEDULE_DEFAULT_EDITOR_H
#define CANVAS_AUTOSCHEDULE_DEFAULT_EDITOR_H

#include "autoschedule/default.h"

struct editor {
  struct program *p; /* the program so far, owned; NULL: still the given one */
  const struct program *given;
  const struct machine *machine;
  struct default_mode mode;
  bool verifies; /* each edit is verified; else the program is in the end */
  int refused;   /* so many moves stay in the expressions that they are in */
  bool planned;
  struct default_plans plans; /* of the program so far, where it is `planned`: editor_plans */
};

static inline const struct program *program_of(const struct editor *e) {
  return e->p ? e->p : e->given;
}

/* default_editor.c */
/* What the formula makes of the program so far: until the next edit. */
const struct default_plans *editor_plans(struct editor *e);
void editor_close(struct editor *e); /* the program stays */
void editor_take(struct editor *e, struct program *p);
struct program *editor_edited(const struct editor *e, const struct program *p,
                              const char *text); /* NULL: it does not go through */
bool editor_edit(struct editor *e, const char *text);
double editor_cycles(struct editor *e, const struct program *p); /* by the formula */
/* The name and an ending, and one that no tensor has. */
void editor_name(const struct program *p, const char *name, const char *ending,
                 char text[PROGRAM_NAME]);

/* Each makes one more edit; false where there is none left. */
bool editor_turn_conditions(struct editor *e); /* default_editor.c: all of them at once */
bool editor_multiply(struct editor *e);        /* default_reciprocals.c */
bool editor_once(struct editor *e);
bool editor_lay_out(struct editor *e);               /* default_moves.c */
bool editor_straighten(struct editor *e, int *skip); /* default_straight.c: after so many loads */
bool editor_turn(struct editor *e);                  /* ... the order in which it is kept */
bool editor_border(struct editor *e, int *after);    /* default_borders.c: of a stage after that */
bool editor_pack(struct editor *e);                  /* default_panels.c */

#endif
