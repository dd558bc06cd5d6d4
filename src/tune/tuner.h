/* Tuning: the fastest schedule of a program on this machine, by a search method within a budget.
 *
 *     sketches of the program -> spaces -> the method's trials -> finalists, measured again -> the winner
 *
 * The trials are measured quickly and noisily; the five best and the default are measured again, by turns
 * (finals.h). Where the program is for many images and one takes long, all of this is for few of them
 * (fewer_images.h); the best of them then run for all, beside the default, unless that takes long too, and the
 * winner is checked and timed for all; where it is wrong then, the next one is.
 */
#ifndef CANVAS_TUNE_TUNER_H
#define CANVAS_TUNE_TUNER_H

#include "tune/method.h"

/* 0 or NULL: what stands behind. */
struct tune_options {
  const struct method *method; /* quick */
  uint64_t seed;
  int trials;         /* candidates that are measured: the method's own number */
  double seconds;     /* of the clock or of processors, for all of it: no limit */
  int patience;       /* trials in a row that were not better, then it ends: no limit */
  double timeout;     /* seconds of a candidate: 10 */
  int together;       /* candidates that are compiled at once: 20 */
  int threads;        /* of parallel loops: 1 */
  bool winograd;      /* its rounding error is permitted */
  const char *sketch; /* the text of one, in place of the rules (sketch_from_text): NULL */
  const char *log;    /* a file of records to read and add to: none */
  bool (*turn)(struct search *s, void *data); /* before each batch (tune_many.c); or NULL */
  bool (*progress)(const struct search *s,
                   void *data); /* after each batch of trials: whether to go on */
  bool (*enough)(void *data);   /* ... whether that was the last, and the finals follow; or NULL */
  double (*clock)(
      void *data); /* seconds since it began, in place of the clocks, for tests; or NULL */
  void *data;
};

/* What it came to. */
struct tuned {
  char *rule;              /* of the winner's sketch */
  struct program *program; /* that it is for, after edits */
  struct loop_tree *tree;  /* bound; it owns its schedule */
  double predicted;        /* seconds; 0: not known */
  struct verdict verdict;  /* of all images; repeats 0: it was not measured (oneshot, stopped) */
  double beside; /* seconds of the default, measured in turns with the winner; 0: not measured */
  double itself; /* ... and of the winner beside it: their ratio is what tuning gained */
  double first;  /* ... and of the trial that seemed best: what finals gained; 0: it failed there */
  int sketches;
  int64_t size;          /* points of all their spaces */
  int64_t images, tried; /* of the program, and for how many trials were */
  int whole; /* finalists that were timed for all images where tried < images; 0: the times of the default and
                of the winner are for `tried` */
  int trials, failures[FAILURES];
  int64_t damaged; /* lines of the log that are no records */
  double seconds;  /* that tuning took */
};

/* CANVAS_BAD_INPUT: the sketch is none, the log is none. CANVAS_IO: there is no compiler, or the log
 * cannot be written. CANVAS_NONE: nothing was correct and could be timed, or progress stopped it. Where what runs
 * is stopped (child.h) it is the best trial, without finals: beside, itself, first and whole are 0. */
canvas_status tune(canvas_context *ctx, const struct program *p, const struct machine *machine,
                   const struct tune_options *options, struct tuned *out);
void tuned_free(struct tuned *t); /* what it owns */

/* The sketches and their spaces alone, for `canvas tune --space`. */
canvas_status tune_spaces(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct tune_options *options,
                          struct sketches *sketches, struct space ***spaces);
void tune_spaces_free(struct sketches *sketches, struct space **spaces);

#endif
