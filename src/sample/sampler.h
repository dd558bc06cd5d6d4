/* The random sampler: draws legal kernels (paper 6.1).
 *
 * Draw i of a run is a pure function of (seed, i, options, targets): the same in any process, thread
 * or order. A draw retries inside itself a bounded number of times and is otherwise skipped.
 */
#ifndef CANVAS_SAMPLE_SAMPLER_H
#define CANVAS_SAMPLE_SAMPLER_H

#include "base/random.h"
#include "sample/limits.h"
#include "sample/rules.h"

/* How often something is drawn, in thousandths (the table in sample_options.c has names and
 * defaults): the weight of a type against the other types, the share of applications of one sort
 * that are kept, the share of draws. */
enum often {
  OFTEN_GROUPING,
  OFTEN_SHIFT,
  OFTEN_UNFOLD,
  OFTEN_ELEMENTWISE,
  OFTEN_FOLD,
  OFTEN_SOFTMAX,
  OFTEN_BROADCAST,
  OFTEN_MATMUL,
  OFTEN_SWAP,
  OFTEN_STACK,
  OFTEN_PICK,
  OFTEN_RESAMPLE,
  OFTEN_NORM,
  OFTEN_COORDS,
  OFTEN_FC, /* types with weights: against each other at a weighted step */
  OFTEN_LEARNED,
  OFTEN_TYPES,
  OFTEN_IMAGE_FOLD = OFTEN_TYPES, /* applications: fold over H or W */
  OFTEN_TO_ONE,                   /* applications: a broadcast that makes a free size 1 */
  OFTEN_OTHER_FUNCTIONS,          /* applications: an element-wise function that is no activation */
  OFTEN_NONLINEAR,                /* draws that keep RULE_NONLINEAR */
  OFTEN_FREE_SIZE,                /* draws that keep RULE_FIXED_SIZE */
  OFTEN_FREE,                     /* draws that keep no rule: drawn as `draws=paper` */
  OFTEN_KNOWN,                    /* draws that begin as a part of a known kernel */
  OFTEN_COUNT
};
enum { ALWAYS = 1000 };

struct sample_options {
  int least, most;        /* primitives of a kernel, input and output not counted */
  bool sized;             /* these were given: not those of draws= */
  bool require_reach;     /* sees neighbours along H and W where targets have any, mixes all
                             channels in an fc: true */
  int64_t groups;         /* G; 0 = draw one factor >= 2 of the common channels */
  int64_t elements_limit; /* of one tensor, per sample: 2^25 */
  bool learned;           /* steps have the weights of prior.h */
  const char *learn;      /* kernels to learn from, in the text of the options; NULL: none */
  size_t learn_length;
  char without[KERNEL_NAME_SIZE]; /* a known kernel that nothing is learned from, "": none */
  int often[OFTEN_COUNT];
  unsigned given; /* a bit per enum often that the text names: these hold in free draws, too */
  struct rules rules;
  struct limits limits;
  enum kernel_space space; /* rows of wider ones are not drawn: SPACE_PAPER */
};

/* Defaults, then "primitives=5..12 require=none groups=4 elements=1000000 draws=rules free=0.2"
 * (blanks or commas between). `draws=` comes before the options that change what it stands for;
 * without primitives= they are 3..8, with draws=paper 5..12. What follows learn= is the text of
 * kernels, which must live until sampler_new has read it. */
canvas_status sample_options_parse(canvas_context *ctx, const char *text, size_t length,
                                   struct sample_options *out);
/* What a free draw keeps of them: the weights of draws=paper but for those given, and no rules. */
struct sample_options sample_options_free(const struct sample_options *o);

/* What is drawn: types without weights and with them. CANVAS_BAD_INPUT where there are too many. */
enum { FAMILIES_MAX = 32 };
struct families {
  enum kernel_space space;
  const struct limits *limits; /* NULL: none */
  const struct family *plain[FAMILIES_MAX], *weighted[FAMILIES_MAX];
  int plain_count, weighted_count;
};
canvas_status families_list(canvas_context *ctx, const struct row *rows, int count,
                            enum kernel_space space, struct families *out);
/* The family's choices that space and limits have; 0 for a family that is never drawn. */
int families_choices(const struct families *f, const struct family *family, const struct kernel *k,
                     int a, int b, struct candidate out[CANDIDATES_MAX]);

/* CANVAS_BAD_INPUT, with the cause, if no kernel can be as the options demand (sample_check.c). */
canvas_status limits_check(canvas_context *ctx, const struct sample_options *o, uint64_t drawable,
                           struct neighbours images);

struct sampler;

/* CANVAS_BAD_INPUT, with the cause, if the options leave no kernel that could be drawn. Children may
 * still be made. */
canvas_status sampler_check(canvas_context *ctx, const struct sampler *s);
/* Borrows nothing. CANVAS_BAD_INPUT if no kernel can be drawn for these targets at all. */
canvas_status sampler_new(canvas_context *ctx, const struct targets *targets,
                          const struct sample_options *options, uint64_t seed,
                          struct sampler **out);
void sampler_free(struct sampler *s);

/* Draw `index`: a simplified kernel named k<index> in canonical numbering of x, and its G. CANVAS_NONE: this
 * index is skipped; the context holds why the tries failed. */
canvas_status sampler_draw(canvas_context *ctx, struct sampler *s, uint64_t index,
                           struct kernel **out, int64_t *g);
/* Whether draw `index` is free of the rules: a function of its arguments alone. */
bool sampler_is_free(const struct sample_options *o, uint64_t seed, uint64_t index);

/* -- for evolve/, whose kernels keep to what a draw keeps to -- */
uint64_t sampler_seed(const struct sampler *s);
const struct sample_options *sampler_options(const struct sampler *s);
const struct families *sampler_families(const struct sampler *s);
/* One of the values that G may have, uniformly; whether g is one. */
int64_t sampler_groups(const struct sampler *s, struct random *r);
bool sampler_has_groups(const struct sampler *s, int64_t g);
/* What a child whose stream goes on here keeps: the rules of a draw, a part of them, or none. Children may
 * be without free sizes, as those of such parents mostly are. */
struct rules sampler_rules(const struct sampler *s, struct random *r);
/* The name of the first rule that a finished kernel breaks at the targets, or NULL. */
const char *sampler_broken(const struct sampler *s, const struct rules *rules,
                           const struct kernel *k, int64_t g);
/* Whether a finished kernel is as the options demand; `matmul`: it must hold one. */
bool sampler_wanted(const struct sampler *s, const struct kernel *k, bool matmul);
/* Whether a draw whose stream goes on here must hold a matmul. */
bool sampler_matmul(const struct sampler *s, struct random *r);
/* Whether all weights of a finished kernel can matter at the targets whose images are small. */
bool sampler_all_matter(const struct sampler *s, const struct kernel *k, int64_t g);
/* Whether a finished kernel could have been drawn: legal step by step, by these rules at every
 * target, all weights can matter, no node is constant. */
bool sampler_may_draw(struct sampler *s, const struct rules *rules, const struct kernel *k,
                      int64_t g);
/* What the targets have along H and W, in the images that k sees. */
struct neighbours sampler_images(const struct sampler *s, const struct kernel *k);
/* The applications of a type to tensor a (binary: of a onto b) that may be drawn at such layers; returns
 * their number. They are the family's, but a window is k=K only where K is a window along its axes:
 * where it is none, and images have several pixels, constant windows stand in its place. */
int sampler_offers(const struct families *families, const struct family *f,
                   struct neighbours images, const struct kernel *k, int a, int b,
                   struct candidate out[CANDIDATES_MAX]);
/* A kernel under construction at these targets with this G, by no rules, as wide as a draw may be; it borrows the
 * sampler's room for one kernel. `like` uses S if the kernel will; NULL: it will not. */
struct partial;
void sampler_partial(struct sampler *s, int64_t g, const struct kernel *like, struct partial *out);
/* A copy named k<index>, its nodes a, b, ..., its variables in order of use. */
struct kernel *sampler_finished(const struct kernel *k, uint64_t index);

#endif
