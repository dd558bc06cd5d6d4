/* The primitive table: one row per primitive, one family per file of src/primitive/.
 *
 * The rows are the only list of primitives: the enum, the parser, the verifier, the sampler, the
 * table in docs/kernel.md and the Python constants come from them. A family's behaviour is declared
 * here and defined in src/primitive/: a row without a defined family does not link.
 */
#ifndef CANVAS_KERNEL_PRIMITIVE_H
#define CANVAS_KERNEL_PRIMITIVE_H

#include "dim/shape.h"

struct kernel;
struct node;
struct lowering; /* primitive/lowering.h: kernel -> program */
struct spelling; /* primitive/spelling.h: kernel -> PyTorch */

/* Facts of a primitive. */
enum {
  FACT_LINEAR = 1,     /* linear in its input (a binary op: in each of its inputs) */
  FACT_WEIGHTS = 2,    /* owns weights */
  FACT_MOVES = 4,      /* only moves data: changes indices, no arithmetic */
  FACT_COMMUTES = 8,   /* inputs of equal shape may be swapped */
  FACT_SEES = 16,      /* reads neighbours along the axes of over= */
  FACT_ACTIVATION = 32 /* commonly used between weights in networks */
};

/* clang-format off */
/* Attributes of primitives, in the order in which they are printed (attributes.h).
 *
 *   ATTR_TO   key      in the docs     enum value_kind
 *   |         |        |               |         may be left out
 *   |         |        |               |         |  */
#define ATTRIBUTES(X) \
  X(TO,       "to",    "to=DIM",       DIM,      false) /* channels of the result */ \
  X(BY,       "by",    "by=DIM",       DIM,      false) /* groups */ \
  X(OVER,     "over",  "over=AXES",    AXES,     false) /* G, C, KH, KW, H, W */ \
  X(K,        "k",     "k=K",          WINDOW,   false) /* K, or a number */ \
  X(SHIFT,    "by",    "by=PIXELS",    PIXELS,   false) /* of either sign */ \
  X(FILL,     "fill",  "[fill=zero]",  ZERO,     true)  /* zeros come in where otherwise the other end does */ \
  X(SCALE,    "scale", "[scale=DIM]",  DIM,      true)  /* a factor of the result */ \
  X(STRIDE,   "stride", "[stride=S]",  DIM,      true)  /* pixels from one window to the next */ \
  X(DILATION, "dilation", "[dilation=PIXELS]", DISTANCE, true) /* from one number of a window to the next */ \
  X(STEP,     "by",    "by=S",         DIM,      false) /* pixels from one that stays to the next */
/* clang-format on */

enum attribute {
#define X(id, ...) ATTRIBUTE_##id,
  ATTRIBUTES(X)
#undef X
      ATTRIBUTE_COUNT
};
enum {
#define X(id, ...) ATTR_##id = 1 << ATTRIBUTE_##id,
  ATTRIBUTES(X)
#undef X
};

/* clang-format off */
/*   id          word       mode    family     in  attributes            facts                      not after
 *   |           |          |       |          |   |                     |                          |
 *   A new row stands last: its place is part of the hash of kernels.
 *   Program and PyTorch follow the formula in `meaning`: o the result, a and b the inputs. */
#define PRIMITIVES(X) \
  X(INPUT,       "input",   "",     input,     0, 0,                     FACT_LINEAR | FACT_MOVES,  "", \
    "the target's input: [C, H, W], average-pooled by the stride unless the kernel uses S") \
  X(GROUP_BY,    "group",   "",     group,     1, ATTR_BY,               FACT_LINEAR | FACT_MOVES,  "", \
    "the channel axis X in `by` groups: [X] -> [by, X/by]") \
  X(GROUP_EACH,  "group",   "each", group,     1, 0,                     FACT_LINEAR | FACT_MOVES,  "", \
    "every channel its own group: [X] -> [group=X], no channel axis left") \
  X(SHIFT,       "shift",   "",     shift,     1, ATTR_OVER | ATTR_SHIFT | ATTR_FILL, FACT_LINEAR | FACT_MOVES | FACT_SEES, "", \
    "o[.., h, ..] = a[.., (h - by) mod H, ..] along each axis of `over` (H, W): circular; with fill=zero a[.., h - by, ..], zero outside") \
  X(UNFOLD,      "unfold",  "",     unfold,    1, ATTR_OVER | ATTR_K | ATTR_STRIDE | ATTR_DILATION, FACT_LINEAR | FACT_MOVES | FACT_SEES, "", \
    "o[.., kh, .., h, ..] = a[.., h*stride + (kh - k/2)*dilation, ..], zero outside, along `over` (H, W); k=K is KH, KW of the target") \
  X(FC,          "fc",      "",     fc,        1, ATTR_TO,               FACT_LINEAR | FACT_WEIGHTS, "", \
    "fully connected: contracts channel, KH and KW with a weight within each group, [.., H, W] -> [to, H, W]; no bias") \
  X(RELU,        "relu",    "",     map,       1, 0,                     FACT_ACTIVATION,                 "input relu sigmoid abs", \
    "max(a, 0)") \
  X(GELU,        "gelu",    "",     map,       1, 0,                     FACT_ACTIVATION,                 "input gelu relu", \
    "a * 0.5 * (1 + erf(a / sqrt(2)))") \
  X(SIGMOID,     "sigmoid", "",     map,       1, 0,                     FACT_ACTIVATION,                 "input sigmoid", \
    "1 / (1 + exp(-a))") \
  X(TANH,        "tanh",    "",     map,       1, 0,                     FACT_ACTIVATION,                 "input tanh", \
    "tanh(a)") \
  X(ABS,         "abs",     "",     map,       1, 0,                     0,                         "input abs relu sigmoid exp neg sqr", \
    "|a|, gradient 0 at 0") \
  X(NEG,         "neg",     "",     map,       1, 0,                     FACT_LINEAR,               "input neg", \
    "-a") \
  X(EXP,         "exp",     "",     map,       1, 0,                     0,                         "input exp", \
    "exp(min(a, 4)): at most 54.6, gradient 0 above 4") \
  X(SIN,         "sin",     "",     map,       1, 0,                     0,                         "input", \
    "sin(a * pi / 2)") \
  X(SQRT,        "sqrt",    "",     map,       1, 0,                     0,                         "input sqrt sqr", \
    "sqrt(|a| + 1/10000) - 1/100: 0 at 0, gradient at most 50") \
  X(SQR,         "sqr",     "",     map,       1, 0,                     0,                         "input sqr sqrt abs", \
    "a * a") \
  X(FOLD_MEAN,   "fold",    "mean", fold,      1, ATTR_OVER,             FACT_LINEAR,               "", \
    "mean along `over` (one axis, or KH,KW, or H,W), which goes") \
  X(FOLD_MAX,    "fold",    "max",  fold,      1, ATTR_OVER,             0,                         "", \
    "maximum along `over` (one axis, or KH,KW, or H,W), which goes") \
  X(SOFTMAX,     "softmax", "",     softmax,   1, ATTR_OVER | ATTR_SCALE, 0,                        "input softmax", \
    "exp(a - m) / sum of exp(a - m), m the maximum, along a run of neighbouring axes `over`; times `scale`") \
  X(ADD,         "add",     "",     broadcast, 2, 0,                     FACT_LINEAR | FACT_COMMUTES, "", \
    "a + b, a repeated onto the shape of b") \
  X(SUB,         "sub",     "",     broadcast, 2, 0,                     FACT_LINEAR,               "", \
    "a - b, a repeated onto the shape of b") \
  X(MUL,         "mul",     "",     broadcast, 2, 0,                     FACT_LINEAR | FACT_COMMUTES, "", \
    "a * b, a repeated onto the shape of b") \
  X(MIN,         "min",     "",     broadcast, 2, 0,                     FACT_COMMUTES,             "", \
    "min(a, b), a repeated onto the shape of b") \
  X(MAX,         "max",     "",     broadcast, 2, 0,                     FACT_COMMUTES,             "", \
    "max(a, b), a repeated onto the shape of b") \
  X(OUTPUT,      "out",     "",     output,    1, 0,                     FACT_LINEAR | FACT_MOVES,  "", \
    "the target's output: last axes H W (H/S W/S if the kernel uses S), the product of the rest C, read as [C, H, W] in order") \
  X(SUBSAMPLE,   "subsample", "",   subsample, 1, ATTR_OVER | ATTR_STEP, FACT_LINEAR | FACT_MOVES,  "", \
    "o[.., h, ..] = a[.., h*S, ..] along `over` (H, W): [H] -> [H/S]")
/* clang-format on */

enum primitive {
#define X(id, ...) PRIMITIVE_##id,
  PRIMITIVES(X)
#undef X
      PRIMITIVE_COUNT
};

/* Arithmetic of a node at given sizes, for one sample. */
struct work {
  int64_t macs;        /* multiply-accumulates of contractions */
  int64_t params;      /* weights */
  int64_t elementwise; /* all other scalar operations: the paper's P counts per primitive */
};

/* Attributes of a node, by enum value_kind. */
struct attrs {
  struct dim dim; /* DIM: a dimension */
  unsigned over;  /* AXES: mask of roles */
  int amount;     /* WINDOW: size, 0 for K; PIXELS: offset */
  int dilation;   /* DISTANCE: 0 for 1 */
  bool zero_fill; /* ZERO */
};
/* An application that may be drawn: a node without shape, and for a binary op a variable x that
 * must first be replaced by `by` (x = -1: none). */
struct candidate {
  enum primitive op;
  int in[2];
  struct attrs attrs;
  int x;
  struct dim by;
};
enum { CANDIDATES_MAX = 96 }; /* limit per tensor, or per ordered pair, in one family */

/* A family of primitives: hooks in pipeline order. Optional hooks may be NULL. */
struct family {
  const char *name; /* name as in Table 1 of the paper */
  bool drawn;       /* drawn by the sampler (all except input and output) */
  bool binary;      /* two inputs: `choices` is called with ordered pairs */
  /* Computes the result's shape; NULL, or why the node is illegal (a clause without subject). */
  const char *(*shape)(const struct kernel *k, const struct node *n, struct shape *out);
  /* Optional. Fills dims that must be whole although no shape contains them; returns their
   * number. */
  int (*conditions)(const struct kernel *k, const struct node *n, struct dim out[2]);
  /* Optional. Fills applications to tensor a (binary: of a onto b) that may be legal; returns their
   * number. */
  int (*choices)(const struct kernel *k, int a, int b, struct candidate out[CANDIDATES_MAX]);
  /* For rows that own weights: the shape of one copy's weight in storage order, first the axis of
   * its outputs, then one axis per role that an output sums over. */
  void (*weight)(const struct kernel *k, const struct node *n, struct shape *out);
  /* Optional; NULL: no work. False: a size overflows. */
  bool (*work)(const struct kernel *k, const struct node *n, const struct sizes *s, struct work *w);
  /* Defines the meaning: appends stages to the program. */
  void (*lower)(struct lowering *l, int node);
  /* Writes one or more lines of `forward`. */
  void (*torch)(struct spelling *s, int node);
};
#define X(id, word, mode, fam, ...) extern const struct family family_##fam;
PRIMITIVES(X)
#undef X

struct row {
  const char *word, *mode;
  const struct family *family;
  int arity;
  unsigned attributes, facts;
  const char *not_after; /* words after which it is not drawn, also with a group or shift between */
  const char *meaning;
};
extern const struct row primitive_rows[PRIMITIVE_COUNT];

#endif
