/* Networks: calls of tensor programs, one after another, over tensors with names and types.
 *
 *     canvas 1
 *     network residual
 *     program conv                                 what is called: each as program.h has it, then `end`
 *     in X f32 [n:1, c:8, h:6, w:6]
 *     in W f32 [o:8, c:8] const
 *     Y[n:1, o:8, h:6, w:6] = X[n, c, h, w] * W[o, c] // sum c:8
 *     out Y
 *     end
 *     in image f32 [1, 8, 6, 6]
 *     weight w f32 [8, 8] from layer1.0.weight     the same in every run; its name where it comes from
 *     y f32 [1, 8, 6, 6] = conv(image, w)          a value: what a call gives, as many as outputs
 *     out y
 *
 * A value is defined once, before it is read. Arguments are the inputs of the program in its order, of
 * the same type and sizes; what is constant to the program is a weight, or a value that calls compute
 * of weights alone: a constant value, which is computed once, when the network is loaded.
 *
 * docs/networks.md is the language; network_interpret.h is the meaning.
 */
#ifndef CANVAS_NET_NETWORK_H
#define CANVAS_NET_NETWORK_H

#include "base/name_table.h"
#include "program/program.h"

enum {
  NETWORK_PROGRAMS = 4096,
  NETWORK_TENSORS = 16384,
  NETWORK_CALLS = 8192,
};

enum net_kind { NET_INPUT, NET_WEIGHT, NET_VALUE };

struct net_tensor {
  const char *name;
  enum net_kind kind;
  enum program_dtype dtype;
  int rank;
  int64_t sizes[PROGRAM_AXES];
  int64_t least, most; /* of i32, as program_tensor has them */
  bool rising;
  const char *source; /* of a weight: its name where it comes from, or NULL */
  int call;           /* of a value: what defines it; else -1 */
  bool varies;        /* of a value: it depends on an input of the network */
  int line, column;   /* of its name in the text, 0 if built */
};

struct net_call {
  int program;
  struct {
    VEC(int);
  } arguments; /* tensors, as many as the program has inputs */
  struct {
    VEC(int);
  } results;   /* values, as many as it has outputs */
  bool varies; /* an argument is an input of the network or depends on one */
  int line, column;
};

/* Names in use, which it borrows. */
struct network_names {
  struct name_table used; /* name -> tensor or program; of equal names the last one */
  struct name_table next; /* name -> the least number behind it that may be free */
};

struct network {
  const char *name;
  struct {
    VEC(struct program *);
  } programs; /* owned, each of its own name */
  struct {
    VEC(struct net_tensor);
  } tensors; /* in order of definition */
  struct {
    VEC(struct net_call);
  } calls; /* in order of execution */
  struct {
    VEC(int);
  } outputs; /* values */
  struct network_names tensor_names, program_names;
  struct arena arena; /* names */
};

/* network.c: networks by hand; network_verify, once at the end, says what is wrong. Names are copied. */
struct network *network_new(const char *name);
struct network *network_copy(const struct network *n);
void network_free(struct network *n);                      /* NULL is fine */
int network_program(struct network *n, struct program *p); /* takes it; its number */
int network_tensor(struct network *n, enum net_kind kind, const char *name,
                   enum program_dtype dtype, int rank, const int64_t *sizes);
/* The call to which network_argument and network_result add: the results are values. */
int network_call(struct network *n, int program);
void network_argument(struct network *n, int call, int tensor);
void network_result(struct network *n, int call, int value);
void network_output(struct network *n, int value);

/* A weight, or a value that is computed of weights alone. */
bool network_constant(const struct network *n, int tensor);
bool network_is_output(const struct network *n, int tensor);
int64_t network_elements(const struct net_tensor *t);
int64_t network_bytes(const struct net_tensor *t); /* as it is stored */

/* network_names.c */
int network_find(const struct network *n, const char *name);         /* a tensor, or -1 */
int network_find_program(const struct network *n, const char *name); /* or -1 */
/* After tensors or programs were dropped, renumbered or replaced. */
void network_index_tensors(struct network *n);
void network_index_programs(struct network *n);
/* `wanted`, or with a number behind it, so that no tensor, no program has that name. */
void free_value_name(struct network *n, const char *wanted, char out[PROGRAM_NAME + 1]);
void free_program_name(struct network *n, const char *wanted, char out[PROGRAM_NAME + 1]);

/* network_parse.c, network_print.c: parsing verifies too; print(parse(t)) is canonical. */
canvas_status network_parse(canvas_context *ctx, const char *text, size_t length,
                            struct network **out);
void network_print(const struct network *n, struct buf *buf);

/* network_verify.c: every rule of a network. */
canvas_status network_verify(canvas_context *ctx, const struct network *n);
canvas_status network_verify_call(canvas_context *ctx, const struct network *n, int call);

#endif
