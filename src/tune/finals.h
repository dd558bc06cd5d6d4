/* The finals of a search: the best trials and the default, compiled as what is kept is compiled, by turns.
 *
 * The least of many noisy times is a lucky one, and trials are compiled by another compiler. So the best five and
 * the default run one after the other in one process, round after round, and what counts is the median of the
 * rounds' ratios to the default. It keeps its place unless it is beaten by a percent. Where trials are
 * of few images, what the model likes best may have numbers for more of them: it comes to the finals of all.
 */
#ifndef CANVAS_TUNE_FINALS_H
#define CANVAS_TUNE_FINALS_H

#include "tune/search.h"

enum { FINALISTS = 5, FINALS = FINALISTS + 2, FINAL_ROUNDS = 15 };

struct finalist {
  struct tune_candidate who;
  struct loop_tree *tree; /* for what trials measure; NULL: it is for all images alone */
  double times
      [FINAL_ROUNDS];   /* seconds, by round: of few images, or of all where `whole` is of them */
  int rounds;           /* 0: it is not there; -1: it failed */
  double scale;         /* of the trial, where times are of few images */
  struct verdict whole; /* of all images, where finals were for them; else its failure */
};

struct finals {
  struct finalist of[FINALS]; /* the default first */
  int count;
  double until;   /* a time of clock_wall by which all ends; 0: none */
  double compile; /* seconds of the budget that the default took to be compiled; 0: not known */
};

/* The default is compiled, which says how much of the time finals need: s->budget.finals. */
canvas_status finals_open(struct search *s, const struct compiler *compiler, struct finals *f);
void finals_close(struct finals *f);

/* The finals are for all images from the first, as a run takes long: they are the winner's verdict, too. */
bool finals_are_long(const struct search *s);

/* Chooses finalists, and lets them run unless they are long. CANVAS_NONE: they were stopped (child.h). */
canvas_status finals_hold(struct search *s, const struct compiler *compiler, struct finals *f);
/* The best of them, for all images; *right are so many of them then. Where none is, what was there stays. */
canvas_status finals_hold_whole(struct search *s, const struct compiler *compiler,
                                const struct expected *whole, struct finals *f, int *right);

int finals_winner(struct finals *f);                /* -1: none was right */
double finals_time(const struct finals *f, int i);  /* INFINITY: it failed */
double finals_ratio(const struct finals *f, int i); /* of its time to that of the default */
/* Seconds of the default, 0 where it failed, and of a finalist that did not: by the ratio, if any. */
void finals_times(const struct finals *f, int i, double *beside, double *itself);
int finals_find(const struct finals *f, struct tune_candidate c); /* -1: it is none */
double finals_left(const struct finals *f); /* seconds for a batch; 0: no limit */

#endif
