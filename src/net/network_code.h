/* A network as C: which functions there are, where every tensor lies, and the text.
 *
 *     int NAME_load(const void *const *weights, void *packed);     once, and when weights have changed
 *     int NAME_run(const void *const *weights, const void *packed, const void *const *inputs,
 *                  void *const *outputs, void *arena);
 *     int NAME_call(int call, ...the same);                        one call of it, for timing
 *
 * Each program is one function, however many calls of it there are, in however many programs of the
 * network its text stands. What calls make of weights alone, and what a program makes of its constant
 * inputs (prepare/prepare.h), NAME_load leaves in `packed`. Values and the workspaces of the functions
 * lie in `arena`, as memory_plan.h says. Both are the caller's, at multiples of 64 bytes; nothing else is
 * asked for in NAME_run, but by threads whose loops need buffers of their own.
 *
 *     network_code.c      the table of contents
 *     network_schedule.c  a schedule for each program
 *     network_units.c     the functions
 *     network_places.c    where tensors, packed weights and workspaces lie
 *     network_text.c      the text of C, and the header
 */
#ifndef CANVAS_NET_NETWORK_CODE_H
#define CANVAS_NET_NETWORK_CODE_H

#include "net/memory_plan.h"
#include "prepare/prepare.h"
#include "tune/log.h"

struct network_options {
  const struct machine *machine;
  const struct records *log;          /* tuned schedules, the best that pass `filter`; NULL: none */
  const struct record_filter *filter; /* of the log */
  int threads;                        /* that share the work of long calls; 1 */
  const char *name;                   /* of the functions, before _load; NULL: the network's */
  bool local;                         /* one text: the functions of the programs are static in it */
  const unsigned char
      *simpler; /* by program, an enum net_simpler; NULL: all have the best there is */
};

/* ---- network_schedule.c: a program under a schedule ---- */

/* What a program gets whose code does not compile: the default schedule where it had one of the log, then one
 * without tiles and vectors. */
enum net_simpler { NET_BEST, NET_DEFAULT, NET_NAIVE };

struct net_form {
  int program;            /* of the network: the first with this text */
  bool constant;          /* its calls are computed when weights are loaded */
  char *text;             /* without its name */
  struct program *edited; /* what the schedule is of */
  struct schedule *schedule;
  struct loop_tree *tree;
  struct prepared *prepared; /* NULL: nothing to prepare */
  bool tuned;                /* the schedule is of the log */
  bool simpler;              /* it is the one that options.simpler says */
  bool parallel;             /* some loop of it is */
};

canvas_status net_form_make(canvas_context *ctx, const struct program *p,
                            const struct network_options *options, struct net_form *form);
void net_form_free(struct net_form *form);
/* Whether code of the form may write an output in the place of an input, both by number. */
bool net_form_in_place(const struct net_form *form, int output, int input);

/* ---- network_units.c: a form as a function ---- */

struct net_unit {
  int form;
  bool *shared;      /* by input, then output, of the program: in place of each other */
  char *function;    /* and NAME_prepare, where the form is prepared */
  char *text;        /* of both */
  char *declaration; /* of both, a line each */
  int64_t workspace, prepare_workspace; /* bytes; 0: it takes none */
};

/* ---- network_places.c ---- */

enum net_place_kind {
  PLACE_NONE, /* nobody reads it */
  PLACE_INPUT,
  PLACE_WEIGHT,
  PLACE_OUTPUT,
  PLACE_ARENA,
  PLACE_PACKED,
  PLACE_SCRATCH, /* memory of NAME_load alone */
};
struct net_place {
  enum net_place_kind kind;
  int64_t at; /* the number of an input, weight or output; else bytes */
};

struct net_call_code {
  int unit; /* -1: the plan skips the call */
  bool constant;
  int64_t packed;            /* what is prepared for it; -1: nothing */
  bool prepares;             /* NAME_load does that for this call, and others have the same */
  int64_t workspace;         /* bytes into the arena, of a constant one into the scratch; -1 */
  int64_t prepare_workspace; /* bytes into the scratch; -1 */
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
  int *form_of;                /* by call */
  struct net_call_code *calls; /* by call of the network */
  struct net_place *places;    /* by tensor */
  struct memory_plan plan;
  int64_t packed_bytes, scratch_bytes, arena_bytes; /* multiples of 64 */
};

/* All of it but the text. The network is verified. CANVAS_BAD_INPUT: a schedule is not legal. */
canvas_status network_code_new(canvas_context *ctx, const struct network *n,
                               const struct network_options *options, struct network_code **out);
void network_code_free(struct network_code *code); /* NULL is fine */

canvas_status network_units(canvas_context *ctx, struct network_code *code, bool local);
void network_places(struct network_code *code);

/* What NAME_call has a number for: the calls that are not constant and not skipped, then the constant outputs, which are
 * copied. */
struct net_step {
  int call;   /* of the network */
  int copied; /* the value; -1: the call itself */
};
int network_steps(const struct network_code *code, struct net_step **out); /* freed with mem_free */

/* ---- network_text.c ---- */

/* The functions of the network; before them those of the programs. */
enum network_form {
  NETWORK_LINKED, /* they are declared, and linked with it */
  NETWORK_FILE,   /* they stand in it, static; it includes its header */
  NETWORK_TEXT,   /* ... it needs none, and others may stand in the same file */
};
void network_text(const struct network_code *code, enum network_form form, struct buf *out);
/* What they are called with. */
#define NETWORK_PARAMETERS                                                      \
  "const void *const *weights, const void *packed, const void *const *inputs, " \
  "void *const *outputs, void *arena"

/* ---- network_header.c ---- */

void network_header(const struct network_code *code, struct buf *out);
/* An example that loads and runs it, on numbers of its own. */
void network_example(const struct network_code *code, struct buf *out);

#endif
