/* What the options demand of every kernel: which primitives it may hold and which it must, which
 * windows, dilations and shifts, how many weighted primitives, how many pixels a number of the result
 * depends on. Draws of every kind and children keep to them. Without options nothing is demanded.
 */
#ifndef CANVAS_SAMPLE_LIMITS_H
#define CANVAS_SAMPLE_LIMITS_H

#include "base/lexer.h"
#include "kernel/kernel.h"

/* Kinds of primitives that a filter names: a bit per row of the table, and one for an fc with over=,
 * which the published code calls Mix. */
enum { KIND_MIX = PRIMITIVE_COUNT, KINDS };
_Static_assert(KINDS <= 64, "a bit per kind");

enum {
  NEEDS_MAX = 8,
  WINDOW_MOST = 31,   /* as unfold takes them */
  DILATION_MOST = 15, /* the same */
  PIXELS_MOST = 31,
  RECEPTIVE_MOST = 3969 /* pixels up to 31 away to every side */
};

struct limits {
  uint64_t forbidden;
  uint64_t need[NEEDS_MAX]; /* of each at least one */
  int needs;
  uint32_t windows, dilations, shifts; /* bit n: n is drawn, bit 0: k=K; 0: those of the space */
  int width_least, width_most;         /* nodes without consumer while a kernel grows: 2..8 */
  int weighted_least, weighted_most;   /* primitives with weights: 1..8 */
  int weighted_share;                  /* at most, in thousandths of the primitives: 600 */
  bool weighted_given;                 /* one of the two was: children keep to it, too */
  int receptive;                       /* pixels: 1 */
  int matmul;                          /* thousandths of the kernels that hold one, at least */
  bool refuse_fixed_hw;                /* no weight's shape depends on H or W */
};

/* Demands nothing. */
struct limits limits_none(void);
/* Whether they demand more than that some primitives are left out. */
bool limits_demand(const struct limits *l);

uint64_t kind_of(enum primitive op, const struct attrs *attrs);
uint64_t kinds_weighted(void); /* those with weights */
uint64_t kinds_of_family(const struct family *f);
bool limits_allow(const struct limits *l, enum primitive op, const struct attrs *attrs);
/* Applications that the limits allow, of a family's: windows, dilations and shifts that the options
 * name take the place of those offered. Returns how many are left. */
int limits_choices(const struct limits *l, struct candidate *all, int count, int room);
/* Whether a finished kernel is as they demand. `least`: sizes of KH and KW that K stands for. */
bool limits_kept(const struct limits *l, const struct kernel *k, int64_t kh, int64_t kw);
uint64_t kernel_kinds(const struct kernel *k);
/* How many pixels a number of the result depends on, on an unlimited image; 4096: on all. */
int kernel_receptive(const struct kernel *k, int64_t kh, int64_t kw);

/* -- text (limits_text.c) -- */
bool limits_has(const struct token *key); /* whether an option has this name */
/* Parses the value behind `key` and `=`. */
canvas_status limits_parse(struct lexer *lx, const struct token *key, struct limits *l);
extern const char *const limits_names[];
enum { LIMITS_NAMES = 12 };
/* The word of one of these kinds, for messages. */
const char *kinds_word(uint64_t of);

#endif
