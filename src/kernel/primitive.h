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
struct formula;  /* primitive/formula.h: kernel -> formula */
struct spot;

/* Facts of a primitive. */
enum {
  FACT_LINEAR = 1,      /* linear in its input (a binary op: in each of its inputs) */
  FACT_WEIGHTS = 2,     /* owns weights */
  FACT_MOVES = 4,       /* only moves data: changes indices, no arithmetic */
  FACT_COMMUTES = 8,    /* inputs of equal shape may be swapped */
  FACT_SEES = 16,       /* reads neighbours along the axes of over= */
  FACT_ACTIVATION = 32, /* commonly used between weights in networks */
  FACT_WHOLE = 128,     /* reads all of a spatial axis of over= for each number */
  FACT_CONTRACTS = 64 /* its weight is a matrix that an axis of the result reads: random at first */
};

/* The spaces of kernels, each within the next: rows of a wider one are not drawn in a narrower. */
enum kernel_space {
  SPACE_PAPER,     /* Table 1 of the paper */
  SPACE_PUBLISHED, /* what the published code draws, too */
  SPACE_WIDE,      /* and what known operators need */
  SPACE_NONE,      /* never drawn */
  SPACES = SPACE_NONE
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
  X(STEP,     "by",    "by=S",         DIM,      false) /* pixels from one that stays to the next */ \
  X(ALONG,    "over",  "[over=AXES]",  AXES,     true)  /* as over=, where that may be left out */ \
  X(WITH,     "with",  "[with=AXES]",  AXES2,    true)  /* the second input's axes; those of over= */ \
  X(EACH,     "each",  "[each=AXES]",  AXES3,    true)  /* axes of both inputs that stay as they are */ \
  X(AT,       "at",    "at=I",         INDEX,    false) /* which part, from 0 */ \
  X(OF,       "of",    "of=N",         DIM,      false) /* how many parts */ \
  X(TIMES,    "by",    "by=N",         DIM,      false) /* how many pixels become one, or one becomes */
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
/*   id          word       mode    family     in  attributes            facts                      not after  space
 *   |           |          |       |          |   |                     |                          |
 *   A new row stands last: its place is part of the hash of kernels.
 *   Program and PyTorch follow the formula in `meaning`: o the result, a and b the inputs. */
#define PRIMITIVES(X) \
  X(INPUT,       "input",   "",     input,     0, 0,                     FACT_LINEAR | FACT_MOVES,  "", NONE, \
    "the target's input: [C, H, W], average-pooled by the stride unless the kernel uses S") \
  X(GROUP_BY,    "group",   "",     group,     1, ATTR_BY,               FACT_LINEAR | FACT_MOVES,  "", PAPER, \
    "the channel axis X in `by` groups: [X] -> [by, X/by]") \
  X(GROUP_EACH,  "group",   "each", group,     1, 0,                     FACT_LINEAR | FACT_MOVES,  "", PAPER, \
    "every channel its own group: [X] -> [group=X], no channel axis left") \
  X(SHIFT,       "shift",   "",     shift,     1, ATTR_OVER | ATTR_SHIFT | ATTR_FILL, FACT_LINEAR | FACT_MOVES | FACT_SEES, "", PAPER, \
    "o[.., h, ..] = a[.., (h - by) mod H, ..] along each axis of `over` (H, W, C, windows): circular; with fill=zero a[.., h - by, ..], zero outside") \
  X(UNFOLD,      "unfold",  "",     unfold,    1, ATTR_OVER | ATTR_K | ATTR_STRIDE | ATTR_DILATION, FACT_LINEAR | FACT_MOVES | FACT_SEES, "", PAPER, \
    "o[.., kh, .., h, ..] = a[.., h*stride + (kh - k/2)*dilation, ..], zero outside, along `over` (H, W, C); k=K is KH, KW of the target") \
  X(FC,          "fc",      "",     fc,        1, ATTR_TO | ATTR_ALONG,  FACT_LINEAR | FACT_WEIGHTS | FACT_CONTRACTS | FACT_WHOLE, "", PAPER, \
    "fully connected: contracts channel and windows with a weight within each group, [.., H, W] -> [to, H, W]; with `over` just these axes, `to` in place of the first; no bias") \
  X(RELU,        "relu",    "",     map,       1, 0,                     FACT_ACTIVATION,                 "input relu sigmoid abs", PAPER, \
    "max(a, 0)") \
  X(GELU,        "gelu",    "",     map,       1, 0,                     FACT_ACTIVATION,                 "input gelu relu", PAPER, \
    "a * 0.5 * (1 + erf(a / sqrt(2)))") \
  X(SIGMOID,     "sigmoid", "",     map,       1, 0,                     FACT_ACTIVATION,                 "input sigmoid", PAPER, \
    "1 / (1 + exp(-a))") \
  X(TANH,        "tanh",    "",     map,       1, 0,                     FACT_ACTIVATION,                 "input tanh", PAPER, \
    "tanh(a)") \
  X(ABS,         "abs",     "",     map,       1, 0,                     0,                         "input abs relu sigmoid exp neg sqr", PAPER, \
    "|a|, gradient 0 at 0") \
  X(NEG,         "neg",     "",     map,       1, 0,                     FACT_LINEAR,               "input neg", PAPER, \
    "-a") \
  X(EXP,         "exp",     "",     map,       1, 0,                     0,                         "input exp", PAPER, \
    "exp(min(a, 4)): at most 54.6, gradient 0 above 4") \
  X(SIN,         "sin",     "",     map,       1, 0,                     0,                         "input", PAPER, \
    "sin(a * pi / 2)") \
  X(SQRT,        "sqrt",    "",     map,       1, 0,                     0,                         "input sqrt sqr", PAPER, \
    "sqrt(|a| + 1/10000) - 1/100: 0 at 0, gradient at most 50") \
  X(SQR,         "sqr",     "",     map,       1, 0,                     0,                         "input sqr sqrt abs", PAPER, \
    "a * a") \
  X(FOLD_MEAN,   "fold",    "mean", fold,      1, ATTR_OVER,             FACT_LINEAR | FACT_WHOLE,               "", PAPER, \
    "mean along `over` (one axis, or KH,KW, or H,W), which goes") \
  X(FOLD_MAX,    "fold",    "max",  fold,      1, ATTR_OVER,             FACT_WHOLE,                         "", PAPER, \
    "maximum along `over` (one axis, or KH,KW, or H,W), which goes") \
  X(SOFTMAX,     "softmax", "",     softmax,   1, ATTR_OVER | ATTR_SCALE, FACT_WHOLE,                        "input softmax", PAPER, \
    "exp(a - m) / sum of exp(a - m), m the maximum, along a run of neighbouring axes `over`; times `scale`") \
  X(ADD,         "add",     "",     broadcast, 2, 0,                     FACT_LINEAR | FACT_COMMUTES, "", PAPER, \
    "a + b, a repeated onto the shape of b") \
  X(SUB,         "sub",     "",     broadcast, 2, 0,                     FACT_LINEAR,               "", PAPER, \
    "a - b, a repeated onto the shape of b") \
  X(MUL,         "mul",     "",     broadcast, 2, 0,                     FACT_LINEAR | FACT_COMMUTES, "", PAPER, \
    "a * b, a repeated onto the shape of b") \
  X(MIN,         "min",     "",     broadcast, 2, 0,                     FACT_COMMUTES,             "", PAPER, \
    "min(a, b), a repeated onto the shape of b") \
  X(MAX,         "max",     "",     broadcast, 2, 0,                     FACT_COMMUTES,             "", PAPER, \
    "max(a, b), a repeated onto the shape of b") \
  X(OUTPUT,      "out",     "",     output,    1, 0,                     FACT_LINEAR | FACT_MOVES,  "", NONE, \
    "the target's output: last axes H W (H/S W/S if the kernel uses S), the product of the rest C, read as [C, H, W] in order") \
  X(SUBSAMPLE,   "subsample", "",   subsample, 1, ATTR_OVER | ATTR_STEP, FACT_LINEAR | FACT_MOVES,  "", NONE, \
    "o[.., h, ..] = a[.., h*S, ..] along `over` (H, W): [H] -> [H/S]") \
  X(SHIFT_EACH,  "shift",   "each", shift,     1, ATTR_OVER | ATTR_FILL, FACT_LINEAR | FACT_MOVES | FACT_SEES, "", WIDE, \
    "group g of n is shifted by g - n/2 pixels (rounded down), otherwise as shift: o[g, .., h, ..] = a[g, .., (h - g + n/2) mod H, ..]") \
  X(SCALE,       "scale",   "",     learned,   1, ATTR_OVER,             FACT_LINEAR | FACT_WEIGHTS, "", PUBLISHED, \
    "a * w, w a learned factor for each place along `over`, 1 at first") \
  X(BIAS,        "bias",    "",     learned,   1, ATTR_OVER,             FACT_WEIGHTS,              "", WIDE, \
    "a + w, w a learned offset for each place along `over`, 0 at first") \
  X(MATMUL,      "matmul",  "",     matmul,    2, ATTR_OVER | ATTR_WITH | ATTR_EACH, FACT_LINEAR | FACT_WHOLE,   "", PUBLISHED, \
    "sum of a * b along `over` of a, which meets `with` of b; other axes of both stay, `each` once: [C, H, W], [x0, H, W] over=H,W -> [C, channel2=x0]") \
  X(MATMUL_SCALED, "matmul", "scaled", matmul, 2, ATTR_OVER | ATTR_WITH | ATTR_EACH, FACT_LINEAR | FACT_WHOLE,   "", PUBLISHED, \
    "the same divided by the root of how many numbers a sum has") \
  X(SWAP,        "swap",    "",     swap,      1, 0,                     FACT_LINEAR | FACT_MOVES,  "swap", WIDE, \
    "the group axis and the channel axis change places: [G, X] -> [group=X, channel=G], o[x, g, ..] = a[g, x, ..]") \
  X(STACK,       "stack",   "",     stack,     2, 0,                     FACT_LINEAR | FACT_MOVES,  "", WIDE, \
    "a and b, of one shape without a group axis, behind each other: [X] -> [group=2, X]") \
  X(PICK,        "pick",    "",     pick,      1, ATTR_AT | ATTR_OF,     FACT_LINEAR | FACT_MOVES,  "", WIDE, \
    "part `at` of `of` equal parts of the channel axis: o[c, ..] = a[at*X/of + c, ..], [X] -> [X/of]") \
  X(POOL,        "pool",    "",     resample,  1, ATTR_TIMES,            FACT_LINEAR,               "", WIDE, \
    "mean of `by` x `by` pixels: [H, W] -> [H/by, W/by]") \
  X(REPEAT,      "repeat",  "",     resample,  1, ATTR_TIMES,            FACT_LINEAR | FACT_MOVES,  "", WIDE, \
    "each pixel `by` x `by` times: [H, W] -> [by*H, by*W]") \
  X(NORM,        "norm",    "",     norm,      1, ATTR_OVER,             FACT_WHOLE,                         "norm", WIDE, \
    "layer norm without weights: (a - mean) / sqrt(variance + 1/100000), both along `over`") \
  X(NORM_RMS,    "norm",    "rms",  norm,      1, ATTR_OVER,             FACT_WHOLE,                         "norm", WIDE, \
    "a / sqrt(mean of a*a along `over` + 1/100000)") \
  X(COORDS,      "coords",  "",     coords,    1, ATTR_OVER,             0,                         "", WIDE, \
    "constant: from -1 in the first to 1 in the last row (over=H) or column (over=W) of an image like a, 0 where there is one: [.., H, W] -> [1, H, W]") \
  X(GROUP_NONE,  "group",   "none", group,     1, 0,                     FACT_LINEAR | FACT_MOVES,  "", WIDE, \
    "no groups: [G, X] -> [G*X]")
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
  struct dim dim;      /* DIM: a dimension */
  unsigned over;       /* AXES: mask of roles */
  int amount;          /* WINDOW: size, 0 for K; PIXELS: offset */
  int dilation;        /* DISTANCE: 0 for 1 */
  bool zero_fill;      /* ZERO */
  unsigned with, each; /* AXES2, AXES3: masks of roles */
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
enum { CANDIDATES_MAX = 128 }; /* limit per tensor, or per ordered pair, in one family */

/* A family of primitives: hooks in pipeline order. Optional hooks may be NULL. */
struct family {
  const char *name; /* name as in Table 1 of the paper */
  bool binary;      /* two inputs: `choices` is called with ordered pairs */
  /* Computes the result's shape; NULL, or why the node is illegal (a clause without subject). */
  const char *(*shape)(const struct kernel *k, const struct node *n, struct shape *out);
  /* Optional. Appends the axes of the inputs because of which `shape` refuses the node. */
  void (*axes)(const struct kernel *k, const struct node *n, struct buf *out);
  /* Optional. Fills dims that must be whole although no shape contains them; returns their
   * number. */
  int (*conditions)(const struct kernel *k, const struct node *n, struct dim out[2]);
  /* Optional. Fills applications to tensor a (binary: of a onto b) that may be legal; returns their
   * number. */
  int (*choices)(const struct kernel *k, int a, int b, struct candidate out[CANDIDATES_MAX]);
  /* Optional, where narrow spaces hold few of these: those within the space, in the same order. */
  int (*choices_within)(const struct kernel *k, int a, enum kernel_space most,
                        struct candidate out[CANDIDATES_MAX]);
  /* Optional. The space of an application that is in a wider one than its row. */
  enum kernel_space (*space)(const struct candidate *c);
  /* For rows that own weights: the shape of one copy's weight in storage order; of one that contracts
   * first the axis of its outputs, then one axis per role that an output sums over. */
  void (*weight)(const struct kernel *k, const struct node *n, struct shape *out);
  /* Optional; NULL: no work. False: a size overflows. */
  bool (*work)(const struct kernel *k, const struct node *n, const struct sizes *s, struct work *w);
  /* Defines the meaning: appends stages to the program. */
  void (*lower)(struct lowering *l, int node);
  /* Writes one or more lines of `forward`. */
  void (*torch)(struct spelling *s, int node);
  /* Writes one or more lines of the formula. */
  void (*formula)(struct formula *f, int node);
  /* For rows that move data, in place of `formula`: the element of the input that an element of the
   * result is. False: zeros outside of the result are not zeros outside of the input. */
  bool (*reads)(struct formula *f, int node, const struct spot *at, struct spot *from);
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
  enum kernel_space space;
  const char *meaning;
};
extern const struct row primitive_rows[PRIMITIVE_COUNT];

#endif
