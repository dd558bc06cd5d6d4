/* What stands behind the opaque handles of canvas.h.
 *
 * A kernel, a pack, a sampler, a program, a schedule and a machine are the internal object itself under its public name;
 * a list of targets, a budget, a bound schedule and a reader are small structs of their own.
 */
#ifndef CANVAS_API_HANDLE_H
#define CANVAS_API_HANDLE_H

#include "bind/loop_tree.h"
#include "budget/budget.h"
#include "kernel/pack.h"
#include "program/program.h"
#include "sample/sampler.h"
#include "schedule/schedule.h"

struct canvas_targets {
  struct targets list;
};

struct canvas_budget {
  struct budget budget;
};

/* A program that edits made, those before the default schedule or a record's, of all bounds that came from it. */
struct shared_program {
  struct program *program;
  struct program *given; /* before them, if it is the bounds' own; else NULL */
  int users;
};

struct canvas_bound {
  struct loop_tree *tree;
  struct schedule *made;         /* the default schedule, where none was given; else NULL */
  struct shared_program *edited; /* what it is of, where edits came before it; else NULL */
  const struct program *given;   /* before them */
};

static inline const struct kernel *kernel_of(const canvas_kernel *kernel) {
  return (const struct kernel *)kernel;
}

static inline const struct pack *pack_of(const canvas_pack *pack) {
  return (const struct pack *)pack;
}

canvas_hash hash_out(struct hash hash, bool decided); /* api_kernel.c */

static inline const struct program *program_of(const canvas_program *program) {
  return (const struct program *)program;
}

static inline const struct schedule *schedule_of(const canvas_schedule *schedule) {
  return (const struct schedule *)schedule;
}

static inline const struct machine *machine_of(const canvas_machine *machine) {
  return (const struct machine *)machine;
}

/* What was compiled of a network (api_network_code.c), and loaded (api_network_run.c). */
struct network_tensor {
  const char *name;
  struct program_tensor as; /* type, sizes and range */
};
struct network_tensors {
  VEC(struct network_tensor);
};
struct canvas_network_code {
  char *path, *function;
  int64_t packed_bytes, arena_bytes;
  int made, found;
  int file; /* the shared object, as it was checked; -1: none */
  struct {
    VEC(canvas_network_call);
  } calls;
  struct network_tensors inputs, weights;
  int outputs;
  struct arena arena; /* names */

  void *object; /* NULL: it is not loaded */
  int (*load)(const void *const *, void *);
  int (*run)(const void *const *, const void *, const void *const *, void *const *, void *);
  int (*call)(int, const void *const *, const void *, const void *const *, void *const *, void *);
  const void **weight; /* as they were given */
  void *packed;
  void *kept; /* an arena for the next run; NULL: none */
};
void network_code_unload(canvas_network_code *code); /* api_network_run.c */
void keep_openmp(void *object);                      /* api_code.c */

/* api_code.c: loads an object of the cache that was opened; one that does not load is forgotten. */
canvas_status load_file(canvas_context *ctx, int file, const char *path, void **out);

struct records;
const struct records *log_records(const canvas_log *log); /* api_log.c */

/* ---- arguments (api_arguments.c) ----------------------------------------------------------------- */

/* A pointer that must not be NULL. */
#define NEED(pointer)                                                                       \
  do {                                                                                      \
    if (!(pointer)) return fail(ctx, CANVAS_BAD_INPUT, "'%s' is NULL, give one", #pointer); \
  } while (0)

static inline bool is_index(int64_t index, int64_t count) {
  return index >= 0 && index < count;
}

/* An array of `count` pointers, none of them NULL. */
canvas_status need_each(canvas_context *ctx, const char *name, const void *array, int64_t count);
/* The number of elements of an array, which is there unless the number is 0. */
canvas_status need_count(canvas_context *ctx, const char *name, const void *array, int64_t count);
canvas_status need_target(canvas_context *ctx, int target, int count);

/* A number of a struct of options, of which 0 is the default: less than 0, more than `most`, or nan is bad
 * input. */
struct option_number {
  const char *name;
  double value, most;
};
#define SECONDS_MOST 1e9
enum { COUNT_MOST = 1000000000, THREADS_MOST = 1 << 16 };
canvas_status check_numbers(canvas_context *ctx, const struct option_number *numbers, int count);

struct verdict;
canvas_verdict verdict_out(const struct verdict *v); /* api_measurer.c */

static inline canvas_cost cost_out(const struct cost *c) {
  return (canvas_cost){c->macs, c->params, c->activations, c->elementwise, c->bytes};
}

#endif
