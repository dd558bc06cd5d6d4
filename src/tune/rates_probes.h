/* What is compiled and timed to find the rates of a machine: C by hand for what a core does, and C that is
 * emitted for what comes with the emitter: functions, and lanes that are put together. */
#ifndef CANVAS_TUNE_RATES_PROBES_H
#define CANVAS_TUNE_RATES_PROBES_H

#include "cost/rates.h"
#include "run/compiler.h"

enum { PROBES_MOST = 48, PROBE_FLOATS = 4096 /* of each of the two arrays, but for streams */ };

struct probe {
  char name[48];
  char *text;    /* C with the function NAME(const float *, float *), owned */
  double units;  /* what it does in one call: vectors, elements, bytes, cycles */
  double *rate;  /* in a struct rates: units of a cycle, or ... */
  bool cycles;   /* ... cycles of a unit */
  int64_t bytes; /* of a stream, which the first array is */
};

struct probes {
  struct probe list[PROBES_MOST];
  int count;
};

/* The first one is of cycles: it tells how many there are in a second. */
canvas_status probes_open(canvas_context *ctx, const struct machine *machine, struct rates *rates,
                          struct probes *out);
void probes_close(struct probes *p);

#endif
