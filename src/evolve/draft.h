/* A draft: a kernel that is being changed, and the edits that mutation and crossover consist of.
 *
 * Between edits a draft is a legal kernel without its `out` line. An edit changes nodes without
 * looking after the ones below; draft_build then drops what nothing reads, puts the nodes in order,
 * applies every shape rule again and repairs what an edit above has made illegal: the width of an fc,
 * the axes of a fold, the widths that a broadcast ties together. What cannot be repaired is no kernel.
 */
#ifndef CANVAS_EVOLVE_DRAFT_H
#define CANVAS_EVOLVE_DRAFT_H

#include "base/random.h"
#include "sample/sampler.h"

struct draft {
  struct kernel *k, *spare; /* the nodes; room for draft_build */
  int root;                 /* the node that `out` reads */
  const struct families *families;
  struct neighbours images;   /* of the targets */
  const struct kernel *other; /* a finished kernel to graft from, or NULL */
  struct random *random;
};

/* clang-format off */
/*    id       one edit */
#define EDITS(X) \
  X(INSERT,  "insert",  "a primitive on an edge, or a binary one that joins another node, as it is or through a new primitive") \
  X(REMOVE,  "remove",  "a primitive: what read it reads its input") \
  X(REPLACE, "replace", "a primitive by another of as many inputs") \
  X(REWIRE,  "rewire",  "an input to another earlier node") \
  X(RESIZE,  "resize",  "an attribute: to=, by=, k=, over=, fill=") \
  X(GRAFT,   "graft",   "a connected part of the second parent in place of a primitive")
/* clang-format on */
enum edit {
#define X(id, ...) EDIT_##id,
  EDITS(X)
#undef X
      EDIT_COUNT
};

void draft_open(struct draft *d, const struct families *families, struct neighbours images,
                struct random *random);
void draft_close(struct draft *d);
/* Starts from a finished kernel. */
void draft_load(struct draft *d, const struct kernel *k);
/* False: there is nothing that this edit could do here; the draft may be half changed. */
bool draft_edit(struct draft *d, enum edit edit);
/* False: the edited kernel is illegal; the draft is then of no use. */
bool draft_build(struct draft *d);
/* Lets the fc nearest to the output have any width, so that the output's channels can be solved for;
 * false if there is none that has not. Then draft_build. */
bool draft_free_width(struct draft *d);

/* What stands in the table above. */
struct edit_row {
  const char *name, *meaning;
};
extern const struct edit_row edit_rows[EDIT_COUNT];

/* -- for draft_edits.c -- */
int draft_append(struct draft *d, const struct node *n); /* its index, -1: no room */
unsigned kernel_names(const struct kernel *k);           /* a bit per x in an attribute */
/* Gives n the attributes of an offer; stride and dilation, which none has, stay. */
void draft_take(struct node *n, const struct attrs *offered);
struct dim draft_fresh(const struct draft *d); /* a variable that no node names, or C */

#endif
