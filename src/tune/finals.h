/* Finals of a search: the best trials and the default are compiled by the final compiler and timed
 * interleaved.
 *
 * The minimum of many noisy times is biased, and trials use another compiler. So the best five and
 * the default run in one process, round after round. The median over rounds of the ratio to the
 * default decides; the default wins unless it is beaten by a percent. If trials use few images, the
 * model's favourite may need more of them; it joins the finals on all images.
 */
#ifndef CANVAS_TUNE_FINALS_H
#define CANVAS_TUNE_FINALS_H

#include "tune/search.h"

enum { FINALISTS = 5, FINALS = FINALISTS + 2, FINAL_ROUNDS = 15 };

struct finalist {
  struct tune_candidate who;
  struct loop_tree *tree;     /* for the images of trials; NULL: only legal for all images */
  double times[FINAL_ROUNDS]; /* seconds by round, for the images of `tree` or, after finals on all
                                 images, for all */
  int rounds;                 /* number of rounds; 0: did not run; -1: failed */
  double scale;               /* scale of the trial if times are for few images */
  struct verdict whole;       /* verdict on all images, or its failure on few */
};

struct finals {
  struct finalist of[FINALS]; /* finalists, the default first */
  int count;
  double until;   /* clock_wall time by which everything ends; 0: none */
  double compile; /* seconds of the budget to compile the default; 0: unknown */
};

/* Compiles the default, to reserve time for finals: s->budget.finals. */
canvas_status finals_open(struct search *s, const struct compiler *compiler, struct finals *f);
void finals_close(struct finals *f);

/* Whether the only finals are on all images, since a run takes long. They then give the winner's
 * verdict, too. */
bool finals_are_long(const struct search *s);

/* Chooses finalists, and times them unless the finals are long. CANVAS_NONE: stopped (child.h). */
canvas_status finals_hold(struct search *s, const struct compiler *compiler, struct finals *f);
/* Times the best finalists on all images; *right: number of correct ones. If it is 0, earlier times
 * are kept. */
canvas_status finals_hold_whole(struct search *s, const struct compiler *compiler,
                                const struct expected *whole, struct finals *f, int *right);

int finals_winner(struct finals *f);                /* -1: none was correct */
double finals_time(const struct finals *f, int i);  /* seconds; INFINITY: failed */
double finals_ratio(const struct finals *f, int i); /* ratio of its time to the default's */
/* Seconds of the default, 0 if it failed, and of a correct finalist, by the ratio if there is
 * one. */
void finals_times(const struct finals *f, int i, double *beside, double *itself);
int finals_find(const struct finals *f, struct tune_candidate c); /* -1: not a finalist */
double finals_left(const struct finals *f); /* seconds for a batch; 0: no limit */

#endif
