/* Probes that measure the rates of a machine: hand-written C for the core, emitted C for what
 * depends on the emitter, such as functions and assembled vectors. */
#ifndef CANVAS_TUNE_RATES_PROBES_H
#define CANVAS_TUNE_RATES_PROBES_H

#include "cost/rates.h"
#include "run/compiler.h"

enum {
  PROBES_MOST = 48,
  PROBE_FLOATS = 4096 /* floats of each of the two arrays, except for streams */
};

struct probe {
  char name[48];
  char *text;    /* C with the function NAME(const float *, float *), owned */
  double units;  /* work of one call: vectors, elements, bytes or cycles */
  double *rate;  /* field of struct rates to set */
  bool cycles;   /* the rate is cycles per unit; else units per cycle */
  int64_t bytes; /* bytes of the first array of a stream */
};

struct probes {
  struct probe list[PROBES_MOST];
  int count;
};

/* Writes the probes. The first one counts cycles and gives the frequency. */
canvas_status probes_open(canvas_context *ctx, const struct machine *machine, struct rates *rates,
                          struct probes *out);
void probes_close(struct probes *p);

#endif
