/* Predicted time of a program under its default schedule. Passes decide fusion, splits and layouts
 * by it.
 *
 * The prediction uses likely rates for the machine's vectors instead of measured ones, so that the
 * passes give the same network on every machine with the same vectors and caches.
 */
#ifndef CANVAS_NET_FUSE_COST_H
#define CANVAS_NET_FUSE_COST_H

#include "base/name_table.h"
#include "cost/rates.h"
#include "program/program.h"

/* Predicted seconds, cached by the text of the program. */
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
/* Predicted seconds of one run, without the part that is computed at load time. Infinite if there
 * is no prediction. */
double fuse_cost(struct fuse_costs *c, const struct program *p);

#endif
