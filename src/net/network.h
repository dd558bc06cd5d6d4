/* Networks: calls of tensor programs over typed tensors.
 *
 *     canvas 1
 *     network residual
 *     program conv                                 a program as in program.h, closed by `end`
 *     in X f32 [n:1, c:8, h:6, w:6]
 *     in W f32 [o:8, c:8] const
 *     Y[n:1, o:8, h:6, w:6] = X[n, c, h, w] * W[o, c] // sum c:8
 *     out Y
 *     end
 *     in image f32 [1, 8, 6, 6]
 *     weight w f32 [8, 8] from layer1.0.weight     equal in all runs; `from` names its source
 *     y f32 [1, 8, 6, 6] = conv(image, w)          a call defines a value for each output
 *     out y
 *
 * A value is defined once, before it is read. Arguments match the program's inputs in order, type
 * and sizes. An input that is `const` takes a weight or a constant value: one that calls compute
 * from weights alone, once, when the network is loaded.
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
  int64_t least, most; /* range of i32 elements, as in program_tensor */
  bool rising;
  const char *source; /* name of a weight in its source; NULL: none */
  int call;           /* of a value: the call that defines it; else -1 */
  bool varies;        /* of a value: depends on an input of the network */
  int line, column;   /* position of its name in the text; 0 if built */
};

struct net_call {
  int program;
  struct {
    VEC(int);
  } arguments; /* tensors, one for each input of the program */
  struct {
    VEC(int);
  } results;   /* values, one for each output of the program */
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
  } programs; /* owned; names are unique */
  struct {
    VEC(struct net_tensor);
  } tensors; /* in order of definition */
  struct {
    VEC(struct net_call);
  } calls; /* in order of execution */
  struct {
    VEC(int);
  } outputs; /* tensors of kind NET_VALUE */
  struct network_names tensor_names, program_names;
  struct arena arena; /* storage of names */
};

/* network.c: builds networks in memory; network_verify must follow. Names are copied. */
struct network *network_new(const char *name);
struct network *network_copy(const struct network *n);
void network_free(struct network *n);                      /* NULL is fine */
int network_program(struct network *n, struct program *p); /* takes ownership; returns its number */
int network_tensor(struct network *n, enum net_kind kind, const char *name,
                   enum program_dtype dtype, int rank, const int64_t *sizes);
/* Adds a call without arguments and results; returns its number. Results are values. */
int network_call(struct network *n, int program);
void network_argument(struct network *n, int call, int tensor);
void network_result(struct network *n, int call, int value);
void network_output(struct network *n, int value);

/* Whether the tensor is a weight or a value computed from weights alone. */
bool network_constant(const struct network *n, int tensor);
bool network_is_output(const struct network *n, int tensor);
int64_t network_elements(const struct net_tensor *t);
int64_t network_bytes(const struct net_tensor *t); /* bytes in memory */

/* network_names.c */
int network_find(const struct network *n, const char *name);         /* tensor number; -1: none */
int network_find_program(const struct network *n, const char *name); /* program number; -1: none */
/* Call them after tensors or programs were dropped, renumbered or replaced. */
void network_index_tensors(struct network *n);
void network_index_programs(struct network *n);
/* The name `wanted`, with a number appended if a tensor or a program of the network has it. */
void free_value_name(struct network *n, const char *wanted, char out[PROGRAM_NAME + 1]);
void free_program_name(struct network *n, const char *wanted, char out[PROGRAM_NAME + 1]);

/* network_parse.c, network_print.c: parsing also verifies; print(parse(t)) is canonical. */
canvas_status network_parse(canvas_context *ctx, const char *text, size_t length,
                            struct network **out);
void network_print(const struct network *n, struct buf *buf);

/* network_verify.c: every rule of a network. */
canvas_status network_verify(canvas_context *ctx, const struct network *n);
canvas_status network_verify_call(canvas_context *ctx, const struct network *n, int call);

#endif
