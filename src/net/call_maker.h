/* A call in the making: a program put together of stages of other calls' programs, and its arguments.
 *
 *     struct call_maker m = call_maker_open("fused");
 *     struct graft g = graft_open(&m, n, call);
 *     graft_tensor(&g, stage);            the stage, after what it reads
 *     program_output(m.program, g.number[stage]);
 *     graft_close(&g);
 *     call_maker_finish(ctx, &m, n, &call);
 *
 * An argument that two of the calls share is one input. Tensors keep their names where they are free.
 */
#ifndef CANVAS_NET_CALL_MAKER_H
#define CANVAS_NET_CALL_MAKER_H

#include "net/network.h"

struct call_maker {
  struct program *program;
  struct {
    VEC(int);
  } arguments; /* tensors of the network, by input */
};

struct call_maker call_maker_open(const char *name);
void call_maker_drop(struct call_maker *m); /* instead of finishing it */
/* The program is verified and becomes one of the network, under a free name like its own, and *call is a new call
 * of it at the end, without results. Closes the maker, also where that fails. */
canvas_status call_maker_finish(canvas_context *ctx, struct call_maker *m, struct network *n,
                                int *call);
/* An input of the program for a tensor of the network; the one that there is, if there is one. `like` is an
 * input of `from`, whose axes it has. */
int call_maker_input(struct call_maker *m, int tensor, const struct program *from, int like);

/* What is taken from one call. */
struct graft {
  struct call_maker *to;
  const struct network *n;
  const struct program *from;
  const struct net_call *call; /* until the network has more calls */
  int *number;                 /* by tensor of `from`: in the new program; -1: not there */
};
struct graft graft_open(struct call_maker *to, const struct network *n, int call);
void graft_close(struct graft *g);
/* The tensor and before it what it reads; its number. */
int graft_tensor(struct graft *g, int tensor);
/* All that an expression of `from` loads. */
void graft_loads(struct graft *g, int expr);
/* For px_map.load, with the graft as data: loads of what was taken. */
int graft_load(struct program *to, int tensor, int rank, const int *indices, void *data);
/* A stage or an input with the axes of a tensor of `from`; the name, or one like it. */
int graft_stage(struct program *to, const struct program_tensor *like, const char *name,
                enum program_dtype dtype);

/* `wanted`, or with a number behind it, so that no tensor of the program has that name. */
void free_stage_name(const struct program *p, const char *wanted, char out[PROGRAM_NAME + 1]);

/* A value of the type of an output of the program, as the next result of a call of it; its number. */
int add_result(struct network *n, int call, const char *name);

#endif
