/* What a program is predicted to take under its default schedule: what decides whether two calls become one, and
 * how values lie.
 *
 * Predicted for a machine, with the likely rates of its vectors, not with those that are measured: the text of a
 * network after the passes is the same on every machine with the same vectors and caches.
 */
#ifndef CANVAS_NET_FUSE_COST_H
#define CANVAS_NET_FUSE_COST_H

#include "base/name_table.h"
#include "cost/rates.h"
#include "program/program.h"

/* What was predicted, by the programs' text. */
struct fuse_costs {
  struct machine machine;
  struct rates rates;
  struct name_table table;
  struct {
    VEC(char *);
  } texts;
  struct {
    VEC(double);
  } seconds;
};

struct fuse_costs fuse_costs_open(const struct machine *machine);
void fuse_costs_close(struct fuse_costs *c);
/* Seconds; what is prepared of constants is not in it. Infinite where no schedule can be predicted. */
double fuse_cost(struct fuse_costs *c, const struct program *p);

#endif
