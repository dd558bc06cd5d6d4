/* C code of a network: its functions, the place of every tensor, and the text.
 *
 *     int NAME_load(const void *const *weights, void *packed);     once per set of weights
 *     int NAME_run(const void *const *weights, const void *packed, const void *const *inputs,
 *                  void *const *outputs, void *arena);
 *     int NAME_call(int call, ...the same);                        one call of it, for timing
 *
 * Programs with the same text share a function. NAME_load fills `packed` with constant values of
 * the network and with what programs compute from constant inputs (prepare/prepare.h). `arena`
 * holds values (memory_plan.h) and the workspaces of the functions. The caller allocates both,
 * aligned to 64 bytes. NAME_run allocates nothing else, except private buffers of threads.
 *
 *     network_code.c      makes all decisions, in order
 *     network_schedule.c  a schedule for each program
 *     network_units.c     the functions
 *     network_places.c    places of tensors, packed weights and workspaces
 *     network_text.c      the C text
 *     network_header.c    the header and an example
 */
#ifndef CANVAS_NET_NETWORK_CODE_H
#define CANVAS_NET_NETWORK_CODE_H

#include "net/memory_plan.h"
#include "prepare/prepare.h"
#include "tune/log.h"

struct network_options {
  const struct machine *machine;
  const struct records *log;          /* tuned schedules, filtered by `filter`; NULL: none */
  const struct record_filter *filter; /* which records of the log may be used */
  int threads;                        /* threads that share a long call */
  const char *name;                   /* prefix of the functions; NULL: the network's name */
  bool local;                         /* one text, in which the programs' functions are static */
  const unsigned char *simpler;       /* by program: enum net_simpler; NULL: NET_BEST for all */
};

/* ---- network_schedule.c: a program under a schedule ------------------------------------------ */

/* Fallbacks for a program whose code does not compile: the default schedule instead of one from the
 * log, then one without tiles and vectors. */
enum net_simpler { NET_BEST, NET_DEFAULT, NET_NAIVE };

struct net_form {
  int program;            /* the first program of the network with this text */
  bool constant;          /* its calls run at load time */
  char *text;             /* text of the program without its name */
  struct program *edited; /* the program that is scheduled */
  struct schedule *schedule;
  struct loop_tree *tree;
  struct prepared *prepared; /* the part computed at load time; NULL: none */
  bool tuned;                /* the schedule is from the log */
  bool simpler;              /* a fallback of options.simpler */
  bool parallel;             /* it has a parallel loop */
};

canvas_status net_form_make(canvas_context *ctx, const struct program *p,
                            const struct network_options *options, struct net_form *form);
void net_form_free(struct net_form *form);
/* Whether code of the form may write an output over an input, both by number. */
bool net_form_in_place(const struct net_form *form, int output, int input);

/* ---- network_units.c: a form as a function --------------------------------------------------- */

struct net_unit {
  int form;
  bool *shared;   /* by input, then output, of the program: shares memory with another parameter */
  char *function; /* name; the load-time part is called NAME_prepare */
  char *text;     /* C of the function and of its load-time part */
  char *declaration;                    /* declarations of both, a line each */
  int64_t workspace, prepare_workspace; /* bytes of workspace; 0: none */
};

/* ---- network_places.c ------------------------------------------------------------------------ */

enum net_place_kind {
  PLACE_NONE, /* never read */
  PLACE_INPUT,
  PLACE_WEIGHT,
  PLACE_OUTPUT,
  PLACE_ARENA,
  PLACE_PACKED,
  PLACE_SCRATCH, /* temporary memory of NAME_load */
};
struct net_place {
  enum net_place_kind kind;
  int64_t at; /* number of the input, weight or output; else an offset in bytes */
};

struct net_call_code {
  int unit; /* number of its function; -1: the plan skips the call */
  bool constant;
  int64_t packed;            /* byte offset of its packed weights; -1: none */
  bool prepares;             /* NAME_load packs for this call; other calls may share the result */
  int64_t workspace;         /* byte offset into the arena, or scratch if constant; -1: none */
  int64_t prepare_workspace; /* byte offset into scratch; -1: none */
};

struct network_code {
  const struct network *network; /* borrowed */
  int threads;
  char *name;
  struct {
    VEC(struct net_form);
  } forms;
  struct {
    VEC(struct net_unit);
  } units;
  int *form_of;                /* by call: number of its form */
  struct net_call_code *calls; /* by call of the network */
  struct net_place *places;    /* by tensor */
  struct memory_plan plan;
  int64_t packed_bytes, scratch_bytes, arena_bytes; /* sizes in bytes, multiples of 64 */
};

/* Makes everything except the text. The network is verified. CANVAS_BAD_INPUT: a schedule is
 * illegal. */
canvas_status network_code_new(canvas_context *ctx, const struct network *n,
                               const struct network_options *options, struct network_code **out);
void network_code_free(struct network_code *code); /* NULL is fine */

canvas_status network_units(canvas_context *ctx, struct network_code *code, bool local);
void network_places(struct network_code *code);

/* A step has a number in NAME_call. Steps are the calls that are neither constant nor skipped, then
 * the constant outputs, which are copied. */
struct net_step {
  int call;   /* call of the network */
  int copied; /* the value to copy; -1: runs the call */
};
int network_steps(const struct network_code *code, struct net_step **out); /* freed with mem_free */

/* ---- network_text.c -------------------------------------------------------------------------- */

/* The network's functions, preceded by the programs' functions. */
enum network_form {
  NETWORK_LINKED, /* programs' functions are declared and linked */
  NETWORK_FILE,   /* they are static in the text, which includes its header */
  NETWORK_TEXT,   /* they are static in the text, which needs no header */
};
void network_text(const struct network_code *code, enum network_form form, struct buf *out);
/* Parameters of NAME_run and, after `call`, of NAME_call. */
#define NETWORK_PARAMETERS                                                      \
  "const void *const *weights, const void *packed, const void *const *inputs, " \
  "void *const *outputs, void *arena"

/* ---- network_header.c ------------------------------------------------------------------------ */

void network_header(const struct network_code *code, struct buf *out);
/* An example program that loads and runs the network on zeros. */
void network_example(const struct network_code *code, struct buf *out);

#endif
