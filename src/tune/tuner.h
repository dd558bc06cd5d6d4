/* Tuning: searches for the fastest schedule of a program on this machine within a budget.
 *
 *     sketches of the program -> spaces -> trials of the method -> finals -> the winner
 *
 * Trials are measured quickly and noisily. The five best and the default are measured again,
 * interleaved (finals.h). If one of many images takes long, trials are for few of them
 * (fewer_images.h). Then the best run again for all images next to the default, unless that takes
 * long too. The winner is checked and timed for all images; if it is wrong, the next one takes its
 * place.
 */
#ifndef CANVAS_TUNE_TUNER_H
#define CANVAS_TUNE_TUNER_H

#include "tune/method.h"

/* 0 or NULL selects the default given in the comment. */
struct tune_options {
  const struct method *method; /* search method: quick */
  uint64_t seed;
  int trials;         /* number of trials: the method's default */
  double seconds;     /* wall-clock or processor seconds for everything: no limit */
  int patience;       /* trials without improvement after which it ends: no limit */
  double timeout;     /* processor seconds of a candidate: 10 */
  int together;       /* candidates per compiled file: 20 */
  int threads;        /* threads of parallel loops: 1 */
  bool winograd;      /* permits Winograd's convolution, which rounds more */
  const char *sketch; /* text of a sketch that replaces the rules (sketch_from_text): none */
  const char *log;    /* path of a log to read and append to: none */
  bool (*may_measure)(struct search *s,
                      void *data); /* before each batch (tune_many.c): measures it: none */
  bool (*progress)(const struct search *s,
                   void *data); /* after each batch: whether to go on: none */
  bool (*enough)(void *data);   /* after each batch: whether trials end and finals begin: none */
  double (*clock)(void *data);  /* seconds since the start instead of the clocks, for tests: none */
  void *data;
};

/* Result of tuning. */
struct tuned {
  char *rule;              /* rule of the winner's sketch */
  struct program *program; /* edited program of the winner */
  struct loop_tree *tree;  /* bound winner; owns its schedule */
  double predicted;        /* predicted seconds; 0: unknown */
  struct verdict verdict;  /* verdict for all images; repeats 0: not measured (oneshot, stopped) */
  double beside; /* seconds of the default, interleaved with the winner; 0: not measured */
  double itself; /* seconds of the winner, interleaved with the default: the ratio is the gain of
                    tuning */
  double first;  /* seconds in the finals of the best trial: shows the gain of finals; 0: failed
                    there */
  int sketches;
  int64_t size;          /* points of all spaces */
  int64_t images, tried; /* images of the program; of a trial */
  int whole; /* finalists timed for all images if tried < images; 0: `beside` and `itself` are for
                `tried` images */
  int trials, failures[FAILURES];
  int64_t damaged; /* damaged lines of the log */
  double seconds;  /* wall-clock seconds of tuning */
};

/* CANVAS_BAD_INPUT: the sketch or the log is invalid. CANVAS_IO: there is no compiler, or the log
 * cannot be written. CANVAS_NONE: nothing was correct and timed, or progress stopped it. If it is
 * stopped by child.h, the result is the best trial without finals: beside, itself, first and whole
 * are 0. */
canvas_status tune(canvas_context *ctx, const struct program *p, const struct machine *machine,
                   const struct tune_options *options, struct tuned *out);
void tuned_free(struct tuned *t); /* frees what it owns */

/* Only the sketches and their spaces, for `canvas tune --space`. */
canvas_status tune_spaces(canvas_context *ctx, const struct program *p,
                          const struct machine *machine, const struct tune_options *options,
                          struct sketches *sketches, struct space ***spaces);
void tune_spaces_free(struct sketches *sketches, struct space **spaces);

#endif
