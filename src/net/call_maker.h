/* A call under construction: a program composed of stages of other calls' programs, and its
 * arguments.
 *
 *     struct call_maker m = call_maker_open("fused");
 *     struct graft g = graft_open(&m, n, call);
 *     graft_tensor(&g, stage);            copies the stage after the stages that it reads
 *     program_output(m.program, g.number[stage]);
 *     graft_close(&g);
 *     call_maker_finish(ctx, &m, n, &call);
 *
 * An argument that two calls share becomes one input. Tensors keep their names if these are free.
 */
#ifndef CANVAS_NET_CALL_MAKER_H
#define CANVAS_NET_CALL_MAKER_H

#include "net/network.h"

struct call_maker {
  struct program *program;
  struct {
    VEC(int);
  } arguments; /* by input of the program: tensor of the network */
};

struct call_maker call_maker_open(const char *name);
void call_maker_drop(struct call_maker *m); /* discards the maker instead of finishing it */
/* Verifies the program and adds it to the network under a free name like its own. *call is a new
 * last call of it, without results. Closes the maker, also on failure. */
canvas_status call_maker_finish(canvas_context *ctx, struct call_maker *m, struct network *n,
                                int *call);
/* The input of the program for a tensor of the network, made if it does not exist. `like` is an
 * input of `from` that gives its axes. */
int call_maker_input(struct call_maker *m, int tensor, const struct program *from, int like);

/* The stages copied from one call. */
struct graft {
  struct call_maker *to;
  const struct network *n;
  const struct program *from;
  const struct net_call *call; /* valid until a call is added to the network */
  int *number; /* by tensor of `from`: its number in the new program; -1: not copied */
};
struct graft graft_open(struct call_maker *to, const struct network *n, int call);
void graft_close(struct graft *g);
/* Copies the tensor after everything that it reads; returns its new number. */
int graft_tensor(struct graft *g, int tensor);
/* Copies every tensor that an expression of `from` loads. */
void graft_loads(struct graft *g, int expr);
/* For px_map.load with the graft as data: loads from the copied tensors. */
int graft_load(struct program *to, int tensor, int rank, const int *indices, void *data);
/* A stage with the axes of a tensor of another program, under the name or one like it. */
int graft_stage(struct program *to, const struct program_tensor *like, const char *name,
                enum program_dtype dtype);

/* The name `wanted`, with a number appended if a tensor of the program has it already. */
void free_stage_name(const struct program *p, const char *wanted, char out[PROGRAM_NAME + 1]);

/* Adds the next result of a call, typed like that output of its program; returns its number. */
int add_result(struct network *n, int call, const char *name);

#endif
