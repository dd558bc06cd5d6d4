/* Shapes: an ordered list of axes, each with a role and a dimension.
 *
 * At most one axis has a role, and they stand in the order of `enum role`. A product of two tensors
 * can have two axes of one sort: the second has a role of its own (C2, H2, W2). Table 1's primitives
 * make none of these. Printed bare, G, KH, KW, H, W, H/S and W/S mean their own role, G2, C2, KH2,
 * KW2, H2 and W2 are those sizes in the second role, and anything else means channel; every other
 * case is printed with its role (`group=C`, `channel=H`, `KH=3`, `channel2=x0`). A shape without axes
 * prints `scalar`.
 */
#ifndef CANVAS_DIM_SHAPE_H
#define CANVAS_DIM_SHAPE_H

#include "dim/dim.h"

enum role {
  ROLE_GROUP,
  ROLE_CHANNEL,
  ROLE_KC, /* windows along channels, images' rows and columns */
  ROLE_KH,
  ROLE_KW,
  ROLE_H,
  ROLE_W,
  ROLES_ONCE, /* those above, and each a second time: ROLE_H + ROLES_ONCE is H2 */
  ROLES = 2 * ROLES_ONCE
};

enum {
  AXES_MAX = 8,
  ROLES_IMAGE_WINDOW = 1 << ROLE_KH | 1 << ROLE_KW,
  ROLES_WINDOW = 1 << ROLE_KC | ROLES_IMAGE_WINDOW,
  ROLES_CHANNEL = 1 << ROLE_GROUP | 1 << ROLE_CHANNEL | ROLES_WINDOW, /* the paper's channel dims */
  ROLES_SPATIAL = 1 << ROLE_H | 1 << ROLE_W,
  ROLES_FIRST = ROLES_CHANNEL | ROLES_SPATIAL
};

/* The role without its number: H of H2. */
static inline enum role role_sort(enum role role) {
  return role < ROLES_ONCE ? role : (enum role)(role - ROLES_ONCE);
}

struct axis {
  enum role role;
  struct dim dim;
};

struct shape {
  int count;
  struct axis axis[AXES_MAX];
};

int shape_find(const struct shape *s, enum role role); /* index of the axis, -1 if absent */
unsigned shape_roles(const struct shape *s);           /* bit per role present */
void shape_insert(struct shape *s, enum role role, struct dim dim); /* at its place in the order */
void shape_remove(struct shape *s, unsigned roles);
/* Divides the axis of an image by a stride of 1 or S; false where that was done before. */
bool shape_subsample(struct shape *s, enum role role, const struct dim *stride);
struct dim shape_product(const struct shape *s, unsigned roles); /* of the axes with these roles */
bool shape_equal(const struct shape *a, const struct shape *b);
bool shape_is_whole(const struct shape *s);
/* Elements at these sizes; false where a dim is not whole or the product passes 2^62. */
bool shape_elements(const struct shape *s, const struct sizes *sizes, int64_t *elements);

const char *role_name(enum role role);  /* "group", "channel", "KC", ..., "W", "group2", ... */
const char *role_short(enum role role); /* as attributes write it: "G", "C", "KC", ..., "C2" */
bool role_parse(const char *text, int length, enum role *role);
void shape_print(const struct shape *s, struct buf *out);
canvas_status shape_parse(struct lexer *lx, struct shape *out); /* up to the end of the line */

/* What remains of a broadcast of l onto r after the common suffix, then the common prefix is
 * stripped: axes are common when they have the same dimension and the same class (group and channel
 * are one class, every other role its own). `left` and `right` are the products of what remains;
 * output element q of the middle reads left element q mod left. */
struct match {
  int prefix, suffix; /* axes stripped from both */
  struct dim left, right;
  struct dim multiplier; /* right/left: must be whole */
};
struct match shape_match(const struct shape *l, const struct shape *r);
int shape_suffix(const struct shape *l, const struct shape *r); /* the suffix alone */

#endif
