/* A search among the points of sketches: state and functions for every method (method.h).
 *
 * A candidate is a point of a sketch's space. It can be predicted in microseconds (schedule_cost.h)
 * and measured in about 40 ms, many in a batch (candidates.h). A measured candidate is a trial: it
 * counts against the budget, is logged, and is not measured again. Trials are quick: the fastest
 * compiler, few samples, few images (fewer_images.h). The best are measured again at the end
 * (tuner.h).
 *
 * If the log has trials of the same program, machine, compiler, method and seed, their verdicts are
 * used instead of measuring, so that an interrupted search continues.
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
  uint64_t text;          /* hash of the texts of program and schedule */
  double predicted;       /* predicted seconds for all images */
  struct verdict verdict; /* verdict for the images of trials */
  double scale; /* predicted time of all images over that of few, scaled to as many images */
};

/* Seconds for few images, scaled, since data of all images may not fit a cache that data of few
 * fits. INFINITY: not correct. */
static inline double trial_time(const struct trial *t) {
  return t->verdict.failure == FAILED_NOT ? t->verdict.median * t->scale : INFINITY;
}

/* Seconds are wall-clock or processor seconds, whichever are more, since compilers run in
 * parallel. */
struct search_budget {
  int trials;     /* number of trials */
  double seconds; /* seconds including finals; 0: no limit */
  double finals;  /* seconds reserved for finals, */
  double runs;    /* plus the time of this many runs on all images */
  int patience;   /* trials without improvement after which the search ends; 0: no limit */
};

struct search {
  canvas_context *ctx;
  const struct program *program;
  struct machine machine;
  struct rates rates;
  struct sketches sketches;
  struct space **spaces; /* by sketch: its space */
  int64_t size;          /* points of all spaces */
  struct random random;
  struct search_budget budget;
  double started;                 /* clock_wall at the start */
  double processor;               /* clock_processor at the start */
  int64_t images, tried;          /* images of the program; of a trial */
  const struct program *measured; /* program of trials: `program` or `fewer` */
  struct program *fewer;          /* the program for `tried` images; NULL: trials use all */
  struct program **few;      /* by sketch: its program for `tried` images; NULL: trials use all */
  double run;                /* seconds of a run on all images: predicted, then by the best trial */
  bool heavy;                /* a run takes long: few samples, only some elements are checked */
  struct compiler *compiler; /* compiler of trials */
  struct expected_options expecting; /* options of `expected` */
  struct expected *expected;         /* expected outputs of `measured`; NULL: not yet computed */
  struct batch_options measuring;
  struct {
    VEC(struct trial);
  } trials;
  int best;  /* index of the best trial; -1: none was correct */
  int since; /* number of trials when the best was found */
  int failures[FAILURES];
  struct {
    VEC(struct tune_candidate);
  } hints;                         /* starting points from similar programs */
  struct tune_candidate favourite; /* the model's favourite, valid if `for_all` */
  bool for_all;                    /* the favourite needs more images than trials have */
  bool (*may_measure)(struct search *s,
                      void *data); /* before each batch; false: ends trials; or NULL */
  bool (*progress)(const struct search *s, void *data); /* after each batch: goes on; or NULL */
  bool (*enough)(void *data); /* after each batch: ends trials, begins finals; or NULL */
  double (*clock)(
      void *data); /* seconds of the budget instead of the clocks, for tests; may be NULL */
  void *data;
  int begun;               /* started trials, including those cut off */
  double each;             /* budget seconds per trial of the last batch; 0: none */
  bool stopped;            /* stopped by progress or child.h */
  bool spent;              /* no more trials; finals follow */
  struct journal *journal; /* records of the log; NULL: no log */
};

bool search_over(const struct search *s); /* whether the budget is spent or the search is stopped */
double search_spent(const struct search *s); /* spent seconds of the budget */
/* Budget seconds for `seconds` of processor time: more if others use the processor. */
double search_seconds(const struct search *s, double seconds);

/* Predicted seconds; INFINITY: not a legal candidate, or stopped (child.h). */
double search_predict(const struct search *s, struct tune_candidate c);
double search_predict_anyway(const struct search *s, struct tune_candidate c); /* even if stopped */
canvas_status search_was_stopped(const struct search *s); /* fails with CANVAS_NONE */

/* The candidate bound for all images; NULL: illegal. Freed with loop_tree_free. */
struct loop_tree *search_bind(const struct search *s, struct tune_candidate c);

/* The same schedule bound for the images of trials; NULL: it has numbers for more images, or `tree`
 * is NULL. Takes `tree`. */
struct loop_tree *search_for_few(const struct search *s, int sketch, struct loop_tree *tree);

/* Draws a legal candidate; false: a thousand draws found none. */
bool search_draw(struct search *s, struct tune_candidate *out);

/* Computes expected outputs, once, before anything is measured. */
canvas_status search_expect(struct search *s);

/* Measures the new candidates within the budget. Another status than CANVAS_OK: compiling or
 * logging fails altogether. */
canvas_status search_measure(struct search *s, const struct tune_candidate *c, int count);

/* Scaled median seconds of a trial; INFINITY: not measured, or not correct. */
double search_time(const struct search *s, struct tune_candidate c);
bool search_known(const struct search *s, struct tune_candidate c); /* measured, correct or not */

/* The candidate with one digit changed by `step`; false: out of range. */
bool search_neighbour(const struct search *s, struct tune_candidate c, int knob, int step,
                      struct tune_candidate *out);

static inline bool same_candidate(struct tune_candidate a, struct tune_candidate b) {
  return a.sketch == b.sketch && a.point == b.point;
}

/* Candidates with predicted seconds, to be ranked. */
struct ranking {
  VEC(struct ranked {
    struct tune_candidate candidate;
    double predicted;
  });
};
void ranking_add(struct ranking *r, const struct search *s, struct tune_candidate c); /* if legal */
void ranking_sort(struct ranking *r); /* ascending, without duplicates */

#endif
