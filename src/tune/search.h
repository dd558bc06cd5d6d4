/* A search among the points of some sketches: what every method (method.h) looks at and asks for.
 *
 * A candidate is a point of one sketch's space. It can be predicted (schedule_cost.h: microseconds) and measured
 * (candidates.h: about 40 ms), many at once. What is measured is a trial: it counts against the budget, goes into
 * the log, and nothing is measured twice. Measuring is quick here: the fastest compiler, few samples, few images
 * (fewer_images.h); what is good is measured again at the end (tuner.h).
 *
 * Where the log holds trials of the same program, machine, compiler, method and seed, their verdicts are
 * taken in place of measuring, so that a search which was ended goes on where it was.
 */
#ifndef CANVAS_TUNE_SEARCH_H
#define CANVAS_TUNE_SEARCH_H

#include <math.h>

#include "base/random.h"
#include "cost/schedule_cost.h"
#include "run/batch.h"
#include "tune/sketch.h"
#include "tune/space.h"

struct journal;

struct tune_candidate {
  int sketch;
  int64_t point;
};

struct trial {
  struct tune_candidate candidate;
  uint64_t text;          /* hash of its program and schedule */
  double predicted;       /* seconds */
  struct verdict verdict; /* for few images */
  double scale; /* what the model says that all images take, as a part of as many times those */
};

/* Seconds for few images, as they compare with others': a stage for all images at once may fit a cache for
 * few of them. INFINITY: it was not correct. */
static inline double trial_time(const struct trial *t) {
  return t->verdict.failure == FAILED_NOT ? t->verdict.median * t->scale : INFINITY;
}

/* Seconds are those of the clock or of processors, whichever are more: compilers run beside what is measured. */
struct search_budget {
  int trials;     /* candidates that are measured */
  double seconds; /* for all of it, finals too; 0: no limit */
  double finals;  /* ... so many are kept for them, */
  double runs;    /* and what so many runs for all images take */
  int patience;   /* trials in a row that were not better; 0: no limit */
};

struct search {
  canvas_context *ctx;
  const struct program *program;
  struct machine machine;
  struct rates rates;
  struct sketches sketches;
  struct space **spaces; /* by sketch */
  int64_t size;          /* points of all */
  struct random random;
  struct search_budget budget;
  double started;                 /* clock_wall */
  double processor;               /* clock_processor then */
  int64_t images, tried;          /* of the program; of what is measured */
  const struct program *measured; /* the program for `tried` images: `program`, or ... */
  struct program *fewer;          /* ... this one; or NULL */
  struct program **few; /* by sketch: its program for `tried` images; NULL: it is for as many */
  double run;           /* seconds for all images: as predicted, then as the best trial tells */
  bool heavy;           /* a run of it takes long: few samples, some elements are checked */
  struct compiler *compiler;         /* for many */
  struct expected_options expecting; /* how `expected` is computed */
  struct expected *expected;         /* of `measured`; NULL: nothing was measured yet */
  struct batch_options measuring;
  struct {
    VEC(struct trial);
  } trials;
  int best;  /* trial; -1: none was correct */
  int since; /* so many trials there were when the best was found */
  int failures[FAILURES];
  struct {
    VEC(struct tune_candidate);
  } hints;                         /* where to begin: what was found for similar programs */
  struct tune_candidate favourite; /* of the model, where `for_all` */
  bool for_all;                    /* it is for more images than are tried */
  bool (*turn)(struct search *s, void *data); /* before each batch: it may be measured; or NULL */
  bool (*progress)(const struct search *s, void *data); /* after each batch: goes on; or NULL */
  bool (*enough)(void *data); /* after each batch: no more trials, then the finals; or NULL */
  double (*clock)(
      void *data); /* seconds of the budget, in place of the clocks, for tests; or NULL */
  void *data;
  int begun;    /* trials that were begun, cut or not */
  double each;  /* seconds of the budget that a trial of the last batch took; 0: there was none */
  bool stopped; /* progress said so */
  bool spent;   /* no more trials, then the finals */
  struct journal *journal; /* what the log knows; NULL: no log */
};

bool search_over(const struct search *s);    /* the budget is spent, or what runs is stopped */
double search_spent(const struct search *s); /* seconds of the budget */
/* Of the budget, those that `seconds` of a processor take: more where others use it, too. */
double search_seconds(const struct search *s, double seconds);

/* Seconds by the model; INFINITY: it is no legal candidate, or what runs is stopped (child.h). */
double search_predict(const struct search *s, struct tune_candidate c);
double search_predict_anyway(const struct search *s, struct tune_candidate c); /* stopped or not */
canvas_status search_was_stopped(const struct search *s); /* CANVAS_NONE with its message */

/* Bound for the program and all its images; NULL: not legal. Freed with loop_tree_free. */
struct loop_tree *search_bind(const struct search *s, struct tune_candidate c);

/* The same schedule for what trials measure; NULL: it has numbers for more images, or `tree` is NULL. Takes
 * `tree`. */
struct loop_tree *search_for_few(const struct search *s, int sketch, struct loop_tree *tree);

/* A random legal candidate; false where a thousand draws found none. */
bool search_draw(struct search *s, struct tune_candidate *out);

/* Before something is measured: computes what is right, once. */
canvas_status search_expect(struct search *s);

/* Measures those of them that are new, as far as the budget goes. A status other than CANVAS_OK: compiling
 * or logging fails altogether. */
canvas_status search_measure(struct search *s, const struct tune_candidate *c, int count);

/* Median seconds; INFINITY: not measured, or not correct. */
double search_time(const struct search *s, struct tune_candidate c);
bool search_known(const struct search *s, struct tune_candidate c); /* measured, correct or not */

/* The candidate with one digit moved by `step`; false where it has no such number. */
bool search_neighbour(const struct search *s, struct tune_candidate c, int knob, int step,
                      struct tune_candidate *out);

static inline bool same_candidate(struct tune_candidate a, struct tune_candidate b) {
  return a.sketch == b.sketch && a.point == b.point;
}

/* Candidates with what is predicted of them, to be ranked. */
struct ranking {
  VEC(struct ranked {
    struct tune_candidate candidate;
    double predicted;
  });
};
void ranking_add(struct ranking *r, const struct search *s, struct tune_candidate c); /* if legal */
void ranking_sort(struct ranking *r); /* the least first, each once */

#endif
