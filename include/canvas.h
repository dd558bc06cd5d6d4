/* Canvas: new neural operators for a network you already have.
 *
 * The public C API, in the order of the pipeline: targets -> sampler -> kernel -> solver -> pack ->
 * program -> schedule -> code. Everything but the sampler has a text form that parses back to the same
 * object.
 *
 * Ownership: what a `_new`, `_parse`, `_draw`, `_mutate`, `_simplify`, `_next`, `_bind`, `_solve`, `_lower`, `_default`,
 * `_here`, `_read`, `_merge`, `_tasks` or `_open` gives you is yours until its `_free` or `_close`, a `char *` until canvas_string_free;
 * every other pointer is borrowed and lives as long as the object it was asked of.
 *
 * Errors: a function that can fail returns a status, writes its result through its last argument
 * only if that is CANVAS_OK, and leaves one error message in the context. Objects are not changed by
 * being read: several threads may share them, each with a context of its own. There is no global
 * state. `_free` and `_close` of NULL do nothing.
 *
 * Arguments: a pointer is NULL only where its function says so, and a context never. NULL elsewhere, an index
 * that does not exist, a count below 0, and a number that an enum does not have are CANVAS_BAD_INPUT where a
 * status is returned. A function without a status then returns NULL, 0 or a struct of zeros, and writes nothing.
 * So texts of a struct may be NULL. What an array holds cannot be checked: it has as many elements as its count,
 * or its tensor, says.
 *
 * Memory: a function that gets none frees what it allocated. It returns CANVAS_IO with the message "out of memory: N
 * bytes could not be had", or, without a status, NULL or a struct of zeros. The objects that it was given are as they
 * were and can be used again; canvas_network_optimize then left the network as it was.
 *
 * Texts are given as bytes and length, need no NUL at the end and may have CANVAS_TEXT_LIMIT bytes.
 * Sizes are numbers of elements; MACs are multiply-accumulates, FLOPs are 2 * MACs.
 */
#ifndef CANVAS_H
#define CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CANVAS_VERSION_MAJOR 0
#define CANVAS_VERSION_MINOR 1
#define CANVAS_VERSION_PATCH 0
#define CANVAS_VERSION       "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__ /* what follows leaves the library, all else in it is hidden */
#pragma GCC visibility push(default)
#endif

typedef enum canvas_status {
  CANVAS_OK,
  CANVAS_NONE, /* the answer is "none": no solution, a draw that is skipped, the end of a text */
  CANVAS_BAD_INPUT, /* the message says what and where */
  CANVAS_IO         /* a file, the memory or a limit of work did not suffice */
} canvas_status;

typedef struct canvas_context canvas_context;
typedef struct canvas_targets canvas_targets;
typedef struct canvas_budget canvas_budget;
typedef struct canvas_kernel canvas_kernel;
typedef struct canvas_pack canvas_pack;
typedef struct canvas_reader canvas_reader;
typedef struct canvas_sampler canvas_sampler;
typedef struct canvas_program canvas_program;
typedef struct canvas_network canvas_network;
typedef struct canvas_network_code canvas_network_code;
typedef struct canvas_schedule canvas_schedule;
typedef struct canvas_machine canvas_machine;
typedef struct canvas_bound canvas_bound;
typedef struct canvas_code canvas_code;
typedef struct canvas_measurer canvas_measurer;
typedef struct canvas_log canvas_log;

enum { CANVAS_TEXT_LIMIT = 16 << 20 }; /* bytes of one text */

/* ---- contexts and strings ------------------------------------------------------------------ */

const char *canvas_version(void); /* of the library that runs; CANVAS_VERSION is the header's */

canvas_context *canvas_context_new(void);
void canvas_context_free(canvas_context *ctx);
/* The error message of the last failure, "" before the first: no full stop, no line break, printable. */
const char *canvas_context_message(const canvas_context *ctx);

void canvas_string_free(char *text);

/* What one sample costs at known sizes (design: in this order of authority). */
typedef struct canvas_cost {
  int64_t macs;        /* of the contractions: half of what PyTorch's FlopCounterMode counts */
  int64_t params;      /* weights */
  int64_t activations; /* elements written by primitives that compute */
  int64_t elementwise; /* all other scalar operations */
  int64_t bytes;       /* fp32 read and written by primitives that compute, weights once */
} canvas_cost;

/* ---- the primitives (docs/kernel.md) ------------------------------------------------------- */

typedef enum canvas_format { CANVAS_TEXT, CANVAS_JSON, CANVAS_MARKDOWN } canvas_format;

/* The primitive table: as columns, as a JSON list of {name, family, inputs, attributes, facts,
 * meaning}, or as the table of docs/kernel.md. */
char *canvas_primitives_print(canvas_format format);

/* ---- targets: the layers to replace -------------------------------------------------------- */

/* One line per layer, `name C_in C_out H W kernel stride groups` (H and W of the layer's input; the
 * kernel is `3` or `3x1`; commas or blanks; # comments), or "C,H,W;C,H,W" for dense 3x3 C -> C. */
canvas_status canvas_targets_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_targets **out);
void canvas_targets_free(canvas_targets *targets);
char *canvas_targets_print(const canvas_targets *targets); /* long form, parses back */
int canvas_targets_count(const canvas_targets *targets);
const char *canvas_targets_name(const canvas_targets *targets, int target);
/* The convolution that is replaced, without bias; target -1: the sum of all. */
canvas_status canvas_targets_cost(canvas_context *ctx, const canvas_targets *targets, int target,
                                  canvas_cost *out);
/* As JSON: {"macs", "flops", "params", "activations", "elementwise", "bytes", "targets": [...]}. */
canvas_status canvas_targets_cost_json(canvas_context *ctx, const canvas_targets *targets,
                                       char **out);

/* ---- kernels: micro-DAGs with symbolic sizes (docs/kernel.md) ------------------------------ */

/* The only kernel of a text; the bind lines of a pack are read and dropped. Errors name line and
 * column. */
canvas_status canvas_kernel_parse(canvas_context *ctx, const char *text, size_t length,
                                  canvas_kernel **out);
void canvas_kernel_free(canvas_kernel *kernel);
char *canvas_kernel_print(const canvas_kernel *kernel); /* canonical: print(parse(t)) is stable */
const char *canvas_kernel_name(const canvas_kernel *kernel);

/* Equal for isomorphic kernels (names, numbering of x, order of independent nodes and swapped
 * commutative inputs do not count), different otherwise. */
typedef struct canvas_hash {
  char hex[33]; /* 128 bits as 32 lower-case digits */
  bool decided; /* false: too symmetric to decide (no kernel is known); a kernel that is written in
                 * another way has another hash, though it may be the same one */
} canvas_hash;
canvas_hash canvas_kernel_hash(const canvas_kernel *kernel);

/* The same kernel with what says nothing taken away (relu of relu, a group that only the output reads,
 * shifts that cancel): equal up to rounding at all sizes and for all weights of the nodes that stay. */
canvas_kernel *canvas_kernel_simplify(const canvas_kernel *kernel);

/* NULL if the kernel sees neighbours along H and W and mixes all channels with weights; else
 * why not. */
const char *canvas_kernel_reach(const canvas_kernel *kernel);

typedef struct canvas_kernel_facts {
  int primitives; /* input and output not counted */
  int variables;  /* free sizes x0, x1, ... */
  bool has_weights;
  bool uses_groups;    /* G occurs: a binding must give it */
  bool needs_fixed_hw; /* the shape of a weight depends on H or W */
} canvas_kernel_facts;
canvas_kernel_facts canvas_kernel_describe(const canvas_kernel *kernel);

char *canvas_kernel_dot(const canvas_kernel *kernel); /* a picture in Graphviz's language */
char *canvas_kernel_svg(const canvas_kernel *kernel); /* a picture; its <desc> holds the text */

/* A pack with one binding, from "C=64,H=56,W=56,G=4,x0=64": C, or Cin and Cout; H and W of the
 * layer's input; K, or KH and KW (default 3); stride (default 1). Every size must fit the kernel. */
canvas_status canvas_kernel_bind(canvas_context *ctx, const canvas_kernel *kernel, const char *at,
                                 size_t length, canvas_pack **out);

/* ---- a text of many kernels and packs ------------------------------------------------------ */

/* Copies the text. The reader answers what stands in it one after another; a bare kernel is a pack
 * without bindings. */
canvas_status canvas_reader_open(canvas_context *ctx, const char *text, size_t length,
                                 canvas_reader **out);
void canvas_reader_close(canvas_reader *reader);
/* CANVAS_NONE at the end. Errors name line and column within the whole text. */
canvas_status canvas_reader_next(canvas_context *ctx, canvas_reader *reader, canvas_pack **out);

/* All kernels of a text in canonical form, a blank line between two; bind lines are dropped. */
canvas_status canvas_kernels_print(canvas_context *ctx, const char *text, size_t length,
                                   char **out);

/* ---- the sampler --------------------------------------------------------------------------- */

/* Draws for these targets; draw i is a pure function of (targets, options, seed, i) on any machine.
 * Options as text: "primitives=5..12 require=reach|none groups=4 draws=rules|paper", "" = defaults;
 * docs/kernel.md has those that change `draws=`. CANVAS_BAD_INPUT if nothing can be drawn for these
 * targets at all. */
canvas_status canvas_sampler_new(canvas_context *ctx, const canvas_targets *targets,
                                 const char *options, size_t length, uint64_t seed,
                                 canvas_sampler **out);
void canvas_sampler_free(canvas_sampler *sampler);
/* CANVAS_NONE: this index is skipped, the message says what its tries died of. `groups`: the G that
 * was drawn with the kernel. One thread per sampler. */
canvas_status canvas_sampler_draw(canvas_context *ctx, canvas_sampler *sampler, uint64_t index,
                                  canvas_kernel **out, int64_t *groups);

/* A child of one or two kernels: of one, with one to three edits (a primitive inserted, removed or
 * replaced, an input read from elsewhere, an attribute changed); of two, with a part of the second in
 * place of a primitive of the first, and up to two edits more. It is simplified, legal at all targets
 * as a draw is, has at most as many primitives as a draw, and is no parent written otherwise.
 * parent_groups: the G that each parent came with. Child i is a pure function of (targets, options,
 * seed, i, parents). CANVAS_NONE: no legal child was found; the next index may have one. */
enum { CANVAS_PARENTS_MAX = 2 };
canvas_status canvas_sampler_mutate(canvas_context *ctx, canvas_sampler *sampler, uint64_t index,
                                    const canvas_kernel *const *parents,
                                    const int64_t *parent_groups, int count, canvas_kernel **out,
                                    int64_t *groups);
/* Whether draw `index` is one of the share that no rule of drawing holds for. */
canvas_status canvas_draw_is_free(canvas_context *ctx, const char *options, size_t length,
                                  uint64_t seed, uint64_t index, bool *out);
/* The names of the rules of drawing that a pack breaks, with blanks between; "" where there is none.
 * Those are judged that the options leave on. */
canvas_status canvas_pack_broken_rules(canvas_context *ctx, const canvas_pack *pack,
                                       const char *options, size_t length, char **out);

/* ---- budgets and the solver (paper 6.3) ---------------------------------------------------- */

/* "macs=0.5x,params=0.5x" (of the layers replaced), "macs=900M", "macs=0.2x..0.5x", "params=none";
 * what is not named keeps 1.0x of MACs and of params. */
canvas_status canvas_budget_parse(canvas_context *ctx, const char *text, size_t length,
                                  canvas_budget **out);
void canvas_budget_free(canvas_budget *budget);

/* After every weight inside a kernel; a weight whose values the kernel hands on has none. */
typedef enum canvas_norm { CANVAS_NORM_NONE, CANVAS_NORM_BATCH } canvas_norm;

typedef struct canvas_solve_options {
  int64_t groups;   /* G of every binding; 0: none given */
  bool exempt;      /* side-by-side copies without weights (the identity control) are allowed, and
                       weights that cannot matter on a small image */
  canvas_norm norm; /* what the pack is trained with; counted in its parameters */
} canvas_solve_options;
/* "G=4 exempt=1 norm=batch", separated by blanks or commas; "" = {0, false, CANVAS_NORM_NONE}. */
canvas_status canvas_solve_options_parse(canvas_context *ctx, const char *text, size_t length,
                                         canvas_solve_options *out);

/* Sizes for every target that fill the budget. `options` may be NULL. CANVAS_NONE: no solution, the
 * message names the constraint that failed. */
canvas_status canvas_kernel_solve(canvas_context *ctx, const canvas_kernel *kernel,
                                  const canvas_targets *targets, const canvas_budget *budget,
                                  const canvas_solve_options *options, canvas_pack **out);

/* ---- packs: a kernel and its sizes at each target ------------------------------------------ */

/* The only pack of a text. */
canvas_status canvas_pack_parse(canvas_context *ctx, const char *text, size_t length,
                                canvas_pack **out);
void canvas_pack_free(canvas_pack *pack);
char *canvas_pack_print(const canvas_pack *pack);
const canvas_kernel *canvas_pack_kernel(const canvas_pack *pack);
int canvas_pack_count(const canvas_pack *pack);                      /* bindings */
const char *canvas_pack_target(const canvas_pack *pack, int target); /* the layer's name */
/* NULL if the kernel reaches (canvas_kernel_reach) on the images of its targets, else why not. An axis
 * of one pixel in all of them has no neighbours to see. Without bindings as canvas_kernel_reach. */
const char *canvas_pack_reach(const canvas_pack *pack);
/* A line for each target whose image is small (at most 3 pixels along an axis, or fewer than the
 * window) and where a weight cannot matter: its numbers get no gradient. "" where there is none. */
canvas_status canvas_pack_idle_weights(canvas_context *ctx, const canvas_pack *pack, char **out);
/* Of one target, or with target -1 the sum of all; copies, pooling and averaging included.
 * CANVAS_BAD_INPUT for a pack without bindings and where a number passes 2^62. */
canvas_status canvas_pack_cost(canvas_context *ctx, const canvas_pack *pack, int target,
                               canvas_cost *out);
/* As JSON: {"kernel", "hash", "macs", "flops", "params", "activations", "elementwise", "bytes",
 * "targets": [{"name", "macs", ...}]}. */
canvas_status canvas_pack_cost_json(canvas_context *ctx, const canvas_pack *pack, char **out);
/* The text of a self-contained torch.nn.Module. `patterns`: whole runs of primitives as one operator
 * of PyTorch where there is one; the results are equal with and without. */
canvas_status canvas_pack_torch(canvas_context *ctx, const canvas_pack *pack, bool patterns,
                                char **out);
/* What the kernel means at one target, for `batch` >= 1 samples: inputs are the layer's input
 * [N, C_in, H, W] and the weights in the layout that the pack's text shows. */
canvas_status canvas_pack_lower(canvas_context *ctx, const canvas_pack *pack, int target,
                                int64_t batch, canvas_program **out);

/* ---- programs: tensor expressions with numbers (docs/program.md) --------------------------- */

canvas_status canvas_program_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_program **out);
void canvas_program_free(canvas_program *program);
char *canvas_program_print(const canvas_program *program);

/* bf16 is rounded to nearest even when it is stored; i32 is for indices, and for inputs only. */
typedef enum canvas_dtype { CANVAS_F32, CANVAS_F64, CANVAS_BF16, CANVAS_I32 } canvas_dtype;

enum { CANVAS_RANK_MAX = 32 };
typedef struct canvas_tensor {
  const char *name;
  canvas_dtype dtype;
  int rank;
  int64_t sizes[CANVAS_RANK_MAX];
  int64_t elements;    /* the product of the sizes; 1 for a scalar */
  int64_t least, most; /* of i32: the range of its elements, both included; else 0 */
  bool rising;         /* ... which never fall along the last axis, from least to most */
  bool constant;       /* an input that is the same in many calls, as weights are */
} canvas_tensor;
int canvas_program_inputs(const canvas_program *program);
int canvas_program_outputs(const canvas_program *program);
canvas_tensor canvas_program_input(const canvas_program *program, int input);
canvas_tensor canvas_program_output(const canvas_program *program, int output);

/* Standard normal numbers (zeros where there is no memory to draw them); those of every input but the first are divided by the root of the product
 * of its sizes but the first (a fan-in). Inputs of i32 hold numbers of their range, sorted if they
 * rise. A pure function of (seed, input, program). */
void canvas_program_fill(const canvas_program *program, int input, uint64_t seed, double *out);

/* The interpreter, the definition of meaning: double precision, only what is asked for is computed.
 * inputs[i] is all of input i, row-major; writes to out[k] the element elements[k] (flat, row-major)
 * of output `output`, k < count; elements NULL means 0 .. count-1. CANVAS_BAD_INPUT: a number out of
 * range, of an output, of an element or in a load, or an input of i32 that is not what the program says; CANVAS_IO: it would
 * take too much memory or time. */
canvas_status canvas_program_evaluate(canvas_context *ctx, const canvas_program *program,
                                      const double *const *inputs, int output, int64_t count,
                                      const int64_t *elements, double *out);

/* ---- networks: calls of programs, one after another (docs/networks.md) ---------------------- */

canvas_status canvas_network_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_network **out);
void canvas_network_free(canvas_network *network);
char *canvas_network_print(const canvas_network *network);

/* Inputs differ from run to run, weights do not; outputs are what some of its calls give. Each are
 * numbered from 0, in the order of the text. */
typedef enum canvas_role { CANVAS_INPUT, CANVAS_WEIGHT, CANVAS_OUTPUT } canvas_role;
int canvas_network_count(const canvas_network *network, canvas_role role);
canvas_tensor canvas_network_tensor(const canvas_network *network, canvas_role role, int index);
/* The name of a weight where it comes from, say "layer1.0.conv1.weight"; NULL: the text says none. */
const char *canvas_network_source(const canvas_network *network, int weight);
/* For an input or a weight, as canvas_program_fill; weights alone are divided by the root of a
 * fan-in. */
void canvas_network_fill(const canvas_network *network, canvas_role role, int index, uint64_t seed,
                         double *out);

/* The interpreter: every call in order, whole tensors, double precision, rounded as each type stores it.
 * inputs[i], weights[i] and outputs[i] are whole tensors, row-major. CANVAS_BAD_INPUT: an input of i32 is
 * not what the network says; CANVAS_IO: it would take too much memory or time. */
canvas_status canvas_network_evaluate(canvas_context *ctx, const canvas_network *network,
                                      const double *const *inputs, const double *const *weights,
                                      double *const *outputs);

/* The same with large calls by a compiled reference in double precision, which is compared with the interpreter at
 * some places; values are not rounded between calls then. Takes seconds where the interpreter takes hours. */
canvas_status canvas_network_reference(canvas_context *ctx, const canvas_network *network,
                                       const double *const *inputs, const double *const *weights,
                                       double *const *outputs);

/* The network becomes one that computes the same faster: every pass but winograd and winograd4, or those that
 * `passes` names, with blanks or commas between, in that order (docs/networks.md). Inputs, weights and outputs
 * stay as they are; results may differ by rounding. What is faster is predicted for `machine` (NULL: this one); what
 * comes of it is right on every other. CANVAS_BAD_INPUT: there is no such pass. */
canvas_status canvas_network_optimize(canvas_context *ctx, canvas_network *network,
                                      const char *passes, const canvas_machine *machine);

/* Its programs, numbered from 0. `calls` (NULL is fine): how often a run calls it, 0 where it is called at
 * load alone, as of constant values. The program is the caller's own, freed as any other. */
int canvas_network_programs(const canvas_network *network);
canvas_program *canvas_network_program(const canvas_network *network, int index, int *calls);

/* Where its values lie in one arena: for each the first and the last call between which it lives, its
 * offset and its bytes, whose place it takes where it is computed in place, and what it is a part of where
 * nothing is copied; as columns, or as JSON
 * {"bytes", "least", "apart", "values": [{"name", "first", "last", "offset", "bytes"[,
 * "in_place_of"][, "part_of"][, "skipped"]}]}: bytes of the arena, of what is alive at once at most, and of all values. Outputs
 * are not in it: they are the caller's, as inputs and weights are. */
char *canvas_network_plan(const canvas_network *network);
char *canvas_network_plan_json(const canvas_network *network);

/* ---- operators: programs by name (docs/operators.md) --------------------------------------- */

/* The program of an operator, say "conv2d_nchw" with the arguments "in_channels=64 height=56 width=56
 * out_channels=64 kernel=3 padding=1": blanks between them, defaults for what is left away. Inputs are
 * the data X, then weights and bias, the output is Y. */
canvas_status canvas_operator_program(canvas_context *ctx, const char *name, const char *arguments,
                                      size_t length, canvas_program **out);
/* The library: as columns, as a JSON list of {name, arguments: {name: default or null}, meaning}, or
 * as the table of docs/operators.md. */
char *canvas_operators_print(canvas_format format);
/* One operator's arguments, a line each, with defaults and meanings. */
canvas_status canvas_operator_describe(canvas_context *ctx, const char *name, char **out);

/* What a stage takes whatever the schedule is: a multiply-add is two flops; of each tensor that is
 * loaded the bytes of what its indices can reach, once. With bounds that are data, at most so much. */
typedef struct canvas_count {
  int64_t points;        /* elements of the stage */
  int64_t reduction;     /* points that are reduced for one element; 1 without a reduction */
  int64_t flops;         /* of all its elements */
  int64_t read, written; /* bytes */
} canvas_count;
int canvas_program_stages(const canvas_program *program);
const char *canvas_program_stage(const canvas_program *program, int stage); /* its name */
/* Of one stage, or with stage -1 the sum of all (reduction 0). CANVAS_BAD_INPUT where a number passes
 * 2^62, and for a stage that there is not. */
canvas_status canvas_program_count(canvas_context *ctx, const canvas_program *program, int stage,
                                   canvas_count *out);
/* As JSON: {"program", "points", "flops", "read", "written", "stages": [{"name", "points",
 * "reduction", "flops", "read", "written"}]}. */
canvas_status canvas_program_count_json(canvas_context *ctx, const canvas_program *program,
                                        char **out);

/* The program after an edit; `program` stays as it is. Edits: `cache Y as CC`, `cache X in Y as XC`,
 * `pack W as WP [co/32, ci, kh, kw, co%32]`, `inline P`, `rfactor Y k 16 as YP`, `overlap P in Y h 8 as PO`,
 * `outline Y exp(X[c]) as E`, `columns Y X[h+kh] as XC`, `reciprocal Y sqrt(V[n]+1) as D`, `straight Y X[(w+20)%56] w`,
 * `turn P w as PT`, `merge axes`, `normalize conditions`, `border Y`, `type X bf16`, `winograd Y 4` (docs/program.md).
 * All but the last two keep what is computed, up to the order of sums; `border` that of finite numbers, `reciprocal` up
 * to one rounding.
 * CANVAS_BAD_INPUT says why an edit is not allowed, with line and column of its text. */
canvas_status canvas_program_edit(canvas_context *ctx, const canvas_program *program,
                                  const char *edit, size_t length, canvas_program **out);

/* The program after edits that a stranger may have written, a line each: those that change values are refused, which are
 * `type`, `border Y` without a name, and `winograd` in tiles of more than that (0: all). CANVAS_BAD_INPUT as above,
 * with the number of the edit. */
canvas_status canvas_program_replay(canvas_context *ctx, const canvas_program *program,
                                    const char *edits, int winograd, canvas_program **out);

/* The edit `winograd` of every convolution that it takes, with tiles of 2 or 4. It rounds more than the
 * convolution: canvas_run_options.winograd permits that. CANVAS_BAD_INPUT: there is none. */
canvas_status canvas_program_winograd(canvas_context *ctx, const canvas_program *program, int tile,
                                      canvas_program **out);

/* ---- machines: what schedules are bound for (docs/machine.md) -------------------------------- */

/* The one that this process runs on, as far as the processor and the system say. */
canvas_machine *canvas_machine_here(void);
/* The only machine of a text. Errors name line and column. */
canvas_status canvas_machine_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_machine **out);
void canvas_machine_free(canvas_machine *machine);
char *canvas_machine_print(const canvas_machine *machine); /* all keys; parses back */

/* ---- schedules: how the loops of a program run (docs/schedule.md) --------------------------- */

/* Both forms are read, the tree is printed. Names are looked up in a program by the functions below. */
canvas_status canvas_schedule_parse(canvas_context *ctx, const char *text, size_t length,
                                    canvas_schedule **out);
void canvas_schedule_free(canvas_schedule *schedule);
char *canvas_schedule_print(const canvas_schedule *schedule);
/* Gives loops their numbers, "iw=14,yo=4". A list that is rejected changes nothing. */
canvas_status canvas_schedule_set(canvas_context *ctx, canvas_schedule *schedule,
                                  const char *numbers);
/* Correct for every program and machine, without search: tiles by a closed formula (docs/native.md). */
canvas_status canvas_schedule_default(canvas_context *ctx, const canvas_program *program,
                                      const canvas_machine *machine, canvas_schedule **out);

/* ---- bound: a program, a schedule and a machine, checked --------------------------------------- */

/* Whether the schedule is legal for the program on the machine; while it has holes (loops that need a
 * number), as far as can be said without them. `schedule` NULL: the default one, of the program after the
 * edits that come before it; the bound object owns both. Program and schedule are borrowed: they stay, and stay as they are, until it is freed; the
 * machine is copied. */
canvas_status canvas_bound_new(canvas_context *ctx, const canvas_program *program,
                               const canvas_schedule *schedule, const canvas_machine *machine,
                               canvas_bound **out);
void canvas_bound_free(canvas_bound *bound);
const canvas_schedule *canvas_bound_schedule(const canvas_bound *bound);

/* A hole is a loop that still needs a number; `following` more have theirs once the holes do. */
typedef struct canvas_bound_facts {
  int stages, loops, holes, following;
} canvas_bound_facts;
canvas_bound_facts canvas_bound_describe(const canvas_bound *bound);
char *canvas_bound_holes(const canvas_bound *bound); /* their names, "iw, yo"; "" without any */
/* What is legal and yet hardly meant, as tiles that fill more registers than there are: a line for
 * each, "warning: line 2, column 5: ..."; "" without any. */
char *canvas_bound_warnings(const canvas_bound *bound);

/* The loops with their steps, how often each runs, the bytes that an iteration touches and the cache
 * they fit in; the stages with their FLOPs (recomputation counted), how often each element is computed,
 * the vector registers of the tile, the bytes that come into each cache; the predicted time, at rates of this
 * machine that are measured once (docs/machine.md). With holes the loops only. CANVAS_BAD_INPUT where a number
 * passes 2^62. */
canvas_status canvas_bound_explain(canvas_context *ctx, const canvas_bound *bound, char **out);
/* For Graphviz: the loops as a tree over the stages, what flows between them, the splits of the axes. */
char *canvas_bound_dot(const canvas_bound *bound);

/* One change of the schedule, checked as a whole: *out is bound as `bound` is and owns its schedule;
 * it borrows the same program.
 *
 *     split LOOP INT                 merge OUTER INNER           extent LOOP INT|open|?
 *     reorder LOOP                   group LOOP {MARK}           ungroup LOOP
 *     mark LOOP {MARK} [pf INT]      tail LOOP mask|peel|none
 *     move STAGE to LOOP|root [before STAGE]
 *     keep STAGE NAME {, NAME} [reg|l1|heap]
 *
 * LOOP is a name, with `of STAGE` where several loops have it; MARK is para, vec, unroll or fold; `reorder`
 * and `group` take the loop and the only one in it. CANVAS_BAD_INPUT says why an edit is not allowed. */
canvas_status canvas_bound_edit(canvas_context *ctx, const canvas_bound *bound, const char *edit,
                                size_t length, canvas_bound **out);

/* The schedule for what canvas_program_edit makes of the program with the same edit, and yours: what it
 * said of the stages that are left, and a place for those that are new. CANVAS_BAD_INPUT: the edit is not
 * allowed, or no schedule can follow it. */
canvas_status canvas_bound_follow(canvas_context *ctx, const canvas_bound *bound, const char *edit,
                                  size_t length, canvas_schedule **out);

/* ---- code: bound programs as C (docs/native.md) ----------------------------------------------- */

typedef struct canvas_emit_options {
  const char *function; /* a C name; NULL: canvas_program_function */
  const char *source;   /* where it came from, for the comment at its head; NULL: nothing to say */
  bool header;          /* the declaration alone */
  bool prepare;         /* two functions, where canvas_bound_prepared says that there are */
} canvas_emit_options;
/* One C file with one function, which takes a pointer for each input and then each output: whole
 * tensors, row-major. `options` may be NULL. CANVAS_BAD_INPUT: it has holes, or the name is none. */
canvas_status canvas_bound_emit(canvas_context *ctx, const canvas_bound *bound,
                                const canvas_emit_options *options, char **out);
/* The tree of statements that is printed as C, as text, after the pass `after`: "build" before the first pass, NULL
 * after the last one. Of two functions (`prepare` above) the first text is that of NAME_prepare. For people: the text
 * may change. CANVAS_BAD_INPUT: the schedule has holes, or there is no such pass; the message lists them. */
canvas_status canvas_bound_statements(canvas_context *ctx, const canvas_bound *bound,
                                      const char *after, char **out);
/* The function's name: the program's, or one near it where that means something in C. */
char *canvas_program_function(const canvas_program *program);

/* Of stages that depend on constant inputs only (`in W f32 [..] const`), in nests of their own at the
 * schedule's root, a second function can be made: NAME_prepare takes the inputs of `prepare` and then
 * memory for `bytes` bytes at a multiple of 64, which it fills; NAME takes the inputs of `rest`, that
 * memory, and the outputs. Both lists are by input of the program, and NULL with `bytes` 0 where there is
 * nothing to prepare. The memory holds until an input of `prepare` changes. */
typedef struct canvas_prepared {
  int64_t bytes;
  bool *prepare, *rest;
} canvas_prepared;
canvas_status canvas_bound_prepared(canvas_context *ctx, const canvas_bound *bound,
                                    canvas_prepared *out);
void canvas_prepared_free(canvas_prepared *prepared);

/* Compiles it with an installed compiler ($CANVAS_CC, or cc, gcc, clang) for the target of the bound
 * machine; *out is the path of a shared object in the cache ($CANVAS_CACHE, or ~/.cache/canvas), freed
 * as a string. CANVAS_IO: no compiler works, or it rejects. */
canvas_status canvas_bound_compile(canvas_context *ctx, const canvas_bound *bound,
                                   const canvas_emit_options *options, char **out);
/* Loads such an object, or that of canvas_network_code_describe, once its folders, its owner and its checksum are
 * checked; *out is a handle of dlopen. CANVAS_IO: it was removed or damaged, or cannot be loaded. */
canvas_status canvas_object_load(canvas_context *ctx, const char *path, void **out);
char *canvas_compiler_name(
    canvas_context *ctx); /* with flags and version; NULL: an error message says why */

/* Compiles it for the machine that this process runs on, whatever it is bound for, and loads it.
 * CANVAS_IO: no compiler works, or what was compiled cannot be loaded. */
canvas_status canvas_code_open(canvas_context *ctx, const canvas_bound *bound, canvas_code **out);
/* inputs[i] and outputs[k] are whole tensors of the program, row-major, in the order of
 * canvas_program_input and canvas_program_output: float, double, uint16_t (bf16) or int32_t. They do not
 * overlap. Nothing is checked: memory that is too small, or an element of i32 out of its range, is read
 * and written all the same. Several threads may call one code. CANVAS_IO: there is no memory for its
 * buffers. */
canvas_status canvas_code_call(canvas_context *ctx, const canvas_code *code,
                               const void *const *inputs, void *const *outputs);
void canvas_code_close(canvas_code *code);

/* ---- networks as code (docs/networks.md) ------------------------------------------------------ */

/* 0 or NULL: what stands behind. */
typedef struct canvas_network_options {
  const canvas_machine *machine; /* that it is for: this one */
  const canvas_log *log;         /* tuned schedules, as far as it has them for this place: none */
  int threads;                   /* that share the work of long calls: 1 */
  const char *name;              /* of the functions: the network's */
} canvas_network_options;

/* Compiles a network: NAME_load, NAME_run and NAME_call, which docs/networks.md describes, in one shared
 * object of the cache. What is compiled for one network is found again for the next one that has the
 * same program. CANVAS_IO: no compiler works, or it rejects. */
canvas_status canvas_network_compile(canvas_context *ctx, const canvas_network *network,
                                     const canvas_network_options *options,
                                     canvas_network_code **out);
void canvas_network_code_free(canvas_network_code *code);

/* Texts belong to the code. */
typedef struct canvas_network_facts {
  const char *path;                  /* of the shared object */
  const char *function;              /* NAME */
  int64_t packed_bytes, arena_bytes; /* of the memory that its functions take */
  int calls;                         /* numbers that NAME_call knows */
  int made, found; /* functions of programs that were compiled, and that were found in the cache */
} canvas_network_facts;
canvas_network_facts canvas_network_code_describe(const canvas_network_code *code);

typedef struct canvas_network_call {
  const char *program;  /* "": a value that weights alone decide is copied to an output */
  int index;            /* its number for canvas_network_program; -1: it is such a copy */
  const char *results;  /* names of values, with commas between */
  int64_t flops, bytes; /* operations; of its arguments and results together */
  bool tuned, parallel; /* its schedule is of the log; threads share its work */
  bool simpler;         /* the schedule is simpler than asked for: code of that did not compile */
} canvas_network_call;
canvas_network_call canvas_network_code_call(const canvas_network_code *code, int call);

/* Loads it and prepares what weights alone decide; again when weights have changed. weights[i] is a whole tensor,
 * row-major, of its element type, and stays until the code is freed. CANVAS_BAD_INPUT: one is missing, or an
 * element of i32 is not what the network says. CANVAS_IO: it cannot be loaded, or there is no memory. */
canvas_status canvas_network_code_load(canvas_context *ctx, canvas_network_code *code,
                                       const void *const *weights);
/* Computes the outputs: whole tensors that overlap with nothing. Several threads may run one code. Inputs are
 * checked as weights are; CANVAS_BAD_INPUT also where it is not loaded. */
canvas_status canvas_network_code_run(canvas_context *ctx, canvas_network_code *code,
                                      const void *const *inputs, void *const *outputs);
/* One call of those that a run makes, from 0, with the values that the last run left: to be timed, in one thread.
 * Elements are not checked. */
canvas_status canvas_network_code_step(canvas_context *ctx, canvas_network_code *code, int call,
                                       const void *const *inputs, void *const *outputs);

/* The same as files that need nothing of Canvas: NAME.c, NAME.h and an example; in order, NULL behind the
 * last. Freed with canvas_network_files_free. */
typedef struct canvas_network_file {
  char *name, *text;
} canvas_network_file;
canvas_status canvas_network_files(canvas_context *ctx, const canvas_network *network,
                                   const canvas_network_options *options,
                                   canvas_network_file **out);
void canvas_network_files_free(canvas_network_file *files);

/* ---- running: checked, then timed (docs/native.md) ------------------------------------------ */

typedef enum canvas_failure {
  CANVAS_FAILED_NOT,     /* correct, and timed */
  CANVAS_FAILED_CHECK,   /* it has holes, or other inputs and outputs */
  CANVAS_FAILED_COMPILE, /* the compiler rejected it, died, hung or wrote nothing */
  CANVAS_FAILED_LOAD,    /* what was compiled cannot be loaded */
  CANVAS_FAILED_CRASH,   /* its process died, or ended by itself */
  CANVAS_FAILED_TIMEOUT,
  CANVAS_FAILED_MEMORY,
  CANVAS_FAILED_WRONG, /* an element is wrong, never written, or outside the output */
  CANVAS_FAILED_RUN    /* it answered with an error of its own */
} canvas_failure;
const char *canvas_failure_name(
    canvas_failure failure); /* "ok", "check", ...; NULL: there is none */

typedef struct canvas_verdict {
  canvas_failure failure;
  char message[1024]; /* one error message; "" if there was no failure */
  int64_t compared;   /* elements that were compared with the interpreter's */
  double worst;       /* largest error among them, as a part of what rounding explains */
  int repeats;        /* timed samples */
  double median, lower,
      upper;   /* seconds of one run (canvas_run_options): the median and quartiles */
  double cold; /* the median with nothing in the caches (canvas_run_options.cold); 0: not taken */
} canvas_verdict;

/* 0: what stands behind. A number below 0, or nan, is CANVAS_BAD_INPUT, and so are more than 1e9 seconds or
 * repeats and more than 65536 threads. */
typedef struct canvas_run_options {
  uint64_t seed; /* of the inputs (canvas_program_fill) */
  double
      seconds; /* of processor time for one candidate, of each thread: 10; ten times as many by the clock */
  double total_seconds; /* for all of one call: no limit */
  int repeats;          /* timed samples: 30 */
  int threads;          /* of parallel loops: 1; of more than one time is wall-clock */
  /* For many, of which the best shall be found and measured again without this: compiled by what compiles
   * fastest, and not timed on once one sample is twice, or five are a quarter above the best median that
   * this measurer has seen (canvas_verdict.repeats tells). */
  bool screen;
  /* 2 or 4: candidates may be what the edit `winograd` makes of the program with tiles up to that. They
   * are compared with the program's values, within the bounds of both added up. 0: such a one fails. */
  int winograd;
  /* Timed a second time, each run on another copy of inputs and outputs (and of what is prepared), of which
   * there are so many that none is in a cache of this machine when its turn comes, as inside a network:
   * twice the bytes of the caches, at most an eighth of the memory. */
  bool cold;
} canvas_run_options;
/* Keeps a compiler, the inputs and the values that are expected of one program over many candidates.
 * The program is borrowed. `options` NULL: seed 1. CANVAS_IO: there is no compiler, or the program takes
 * too much memory or time to evaluate. */
canvas_status canvas_measurer_new(canvas_context *ctx, const canvas_program *program,
                                  const canvas_run_options *options, canvas_measurer **out);
void canvas_measurer_free(canvas_measurer *measurer);
const char *canvas_measurer_compiler(const canvas_measurer *measurer); /* with flags and version */
/* Why the interpreter alone says what outputs have to be, at some elements of a large one; "" where a
 * compiled reference gives all of them, or none was needed. */
const char *canvas_measurer_no_reference(const canvas_measurer *measurer);
/* While `asked` answers true, whatever this thread compiles, runs or times ends as if its time were up. It is
 * asked every few milliseconds, by the process that set it alone; NULL takes it back. So a measurer judges no
 * further candidates (CANVAS_FAILED_TIMEOUT), and canvas_tune answers the best trial that there was. */
void canvas_stop_when(bool (*asked)(void *data), void *data);

/* Compiles, checks and times each of `count` candidates into out[0 .. count): the program, or what edits
 * made of it, bound with any schedule, for any machine, compiled for this one. Whatever one of them does,
 * the others are judged: a child with limits runs it, its outputs are compared with the interpreter's
 * before it is timed. A status other than CANVAS_OK: nothing was judged. One thread per measurer. */
canvas_status canvas_measurer_run(canvas_context *ctx, canvas_measurer *measurer,
                                  const canvas_bound *const *candidates, int count,
                                  canvas_verdict *out);

/* ---- tuning: the fastest schedule within a budget (docs/tune.md) -------------------------------- */

typedef struct canvas_tune_method {
  const char *name; /* NULL: there are no more */
  int trials;       /* that it takes unless told; 0: it measures nothing */
  const char *summary;
} canvas_tune_method;
canvas_tune_method canvas_tune_method_at(int i); /* from 0 */

enum { CANVAS_FAILURES = CANVAS_FAILED_RUN + 1 };

/* Where a search stands, after each batch of trials. */
typedef struct canvas_tune_progress {
  int trials, budget;            /* measured so far, and at most */
  int failures[CANVAS_FAILURES]; /* of them, by canvas_failure; [CANVAS_FAILED_NOT] were correct */
  double best;    /* seconds of the best trial, on few samples and few images; 0: none */
  double seconds; /* since it began */
  int program;    /* which of those of canvas_tune_many, that take turns; else 0 */
} canvas_tune_progress;

/* 0 or NULL: what stands behind. Numbers have the limits of canvas_run_options, trials those of repeats. */
typedef struct canvas_tune_options {
  const char *method; /* "quick" */
  uint64_t seed;      /* of what the method draws */
  int trials;         /* schedules that are compiled, checked and timed: the method's number */
  double seconds;     /* for all of it, of the clock or of processors: no limit */
  int patience;       /* so many trials in a row that were not better end it: no limit */
  double timeout;     /* of each trial's runs, seconds of processor time: 10 */
  int together;       /* schedules that are compiled at once, while others are timed: 20 */
  int threads;        /* of parallel loops: 1 */
  bool winograd;      /* rewrites that round more than the order of sums does are permitted: no */
  const char *sketch; /* a schedule with holes, instead of all that the program's shape suggests */
  const char *log;    /* a file to which each trial is added, and which is read before: none */
  bool (*progress)(const canvas_tune_progress *progress, void *data); /* false: it ends */
  bool (*enough)(void *data); /* after each batch; true: that was the last, and the best wins */
  void *data;
} canvas_tune_options;

typedef struct canvas_tuned {
  char rule[128];   /* the kind of schedule that won: "default", "lanes oc 32, ..." */
  double predicted; /* seconds, by the cost model; 0: not known */
  canvas_verdict
      verdict; /* of the winner, as canvas_measurer_run; repeats 0: it was not measured */
  double before,
      after;      /* seconds of the default schedule and of the winner, timed in turns; 0: not, as
                     where the search was stopped in its finals */
  double first;   /* ... and of the trial that had seemed best */
  int sketches;   /* schedules with holes, ... */
  int64_t points; /* ... and how many ways there are to fill them */
  int64_t images, tried; /* of the program's batch, and for how many of them trials were timed */
  int whole; /* where tried < images: schedules that were timed for all of them in the end; 0: `before` and
                `after` are for `tried` images, and their ratio is an estimate for all */
  int trials, failures[CANVAS_FAILURES];
  int64_t damaged; /* lines of the log that are no records and were left out */
  double seconds;  /* that it took */
} canvas_tuned;

/* Searches for the fastest schedule of a program on this machine. *out is the winner bound for it; it owns its
 * schedule and the program that edits made of yours. `options` may be NULL, and `tuned`, too.
 * CANVAS_BAD_INPUT: no such method, a sketch that is none, a log that is none. CANVAS_IO: there is no
 * compiler, or the log cannot be written. CANVAS_NONE: no schedule was correct, or progress ended it. Ended by
 * canvas_stop_when it answers the best trial, which no finals have compared with the default. */
canvas_status canvas_tune(canvas_context *ctx, const canvas_program *program,
                          const canvas_machine *machine, const canvas_tune_options *options,
                          canvas_bound **out, canvas_tuned *tuned);

/* Several programs under one budget: trials and seconds of the options are those of all together, and go to
 * where they are expected to save most, program i running weights[i] times (0 to 1e18; NULL: once). out[i] and tuned[i]
 * as of canvas_tune; out[i] is NULL, and tuned[i].verdict tells, where no schedule of a program was correct. */
canvas_status canvas_tune_many(canvas_context *ctx, const canvas_program *const *programs,
                               const double *weights, int count, const canvas_machine *machine,
                               const canvas_tune_options *options, canvas_bound **out,
                               canvas_tuned *tuned);

/* What it would choose from, as text: each sketch with the number of its points and its schedule; of each
 * the first `points` points, and whether they are legal. */
canvas_status canvas_tune_space(canvas_context *ctx, const canvas_program *program,
                                const canvas_machine *machine, const canvas_tune_options *options,
                                int points, char **out);

/* The program that a bound schedule is of: yours, or what edits made of it. As canvas_program_print. */
char *canvas_bound_program_print(const canvas_bound *bound);
/* The edits that made it of yours, a line each, as canvas_program_replay takes them; "" without any. */
char *canvas_bound_edits(const canvas_bound *bound);

/* ---- tuning logs: what was measured, to be used again (docs/tune.md) -------------------------- */

/* One measured candidate. Texts belong to the log. */
typedef struct canvas_record {
  char task[17];       /* 16 hexadecimal digits: a hash of `program` */
  const char *program; /* as it was given, in canonical form */
  const char
      *edits; /* the edits that were made before, a line each (docs/program.md); "" without any */
  const char *schedule;
  const char *rule, *method; /* what made the schedule, and which search tried it ... */
  uint64_t seed;             /* ... with this seed ... */
  int trial;                 /* ... as its so-manieth trial, from 0 */
  canvas_failure failure;
  const char *message;         /* "" where nothing failed */
  double median, lower, upper; /* seconds of one run (canvas_verdict); 0 where it failed */
  double cold;                 /* ... with nothing in the caches; 0: not taken */
  double network; /* ... as a call of a network, of which `median` is then, too; 0: run alone */
  int repeats, threads;
  bool screened; /* compiled quickly or timed shortly (canvas_run_options.screen): never the best */
  const char *machine, *processor; /* what it was bound for, and measured on */
  const char *compiler, *version;  /* the latter of canvas */
  int64_t time;                    /* when: seconds since 1970 */
} canvas_record;

/* All records of a file, in its order. CANVAS_BAD_INPUT: it is no tuning log, and it is told by its first
 * bytes; CANVAS_IO: it cannot be read. Lines that are damaged are left out, and counted. */
canvas_status canvas_log_read(canvas_context *ctx, const char *path, canvas_log **out);
/* The records of several logs, each once, in an order that does not depend on that of the logs: by program, time,
 * method, seed and trial. */
canvas_log *canvas_log_merge(const canvas_log *const *logs, int count);
void canvas_log_free(canvas_log *log);
int canvas_log_count(const canvas_log *log);
canvas_record canvas_log_record(const canvas_log *log, int record);
char *canvas_log_line(const canvas_log *log, int record); /* its JSON, with the line's end */
/* Lines of the file that are no records: how many, the number of the first, from 1, and why it is none. */
int64_t canvas_log_damaged(const canvas_log *log, int64_t *line, const char **why);
/* Records that were left out because an older version of canvas wrote what edits had made and not which they were: how
 * many, and the line of the first. */
int64_t canvas_log_outdated(const canvas_log *log, int64_t *line);

/* Where a record has to be from, to be trusted. */
typedef struct canvas_log_place {
  const canvas_machine *machine; /* bound for one like it: name, cores and memory do not count */
  const char *compiler;          /* canvas_compiler_name */
  int threads;                   /* measured with so many; 0: any number */
  int winograd; /* 2 or 4: what the edit `winograd` made with tiles up to that is let pass, too; 0: none */
  /* Neither machine and compiler count, nor that it is of this processor and this version of canvas. */
  bool anywhere;
  bool nameless; /* of a program that says the same under another name, too, as networks take it */
} canvas_log_place;
/* The fastest record of the program that is from there, neither failed nor screened; where no search of it came to
 * its finals, the fastest trial, whatever it was compiled with. A record of canvas_log_add_network stands for all
 * that were measured before it. Its edits can be made of the program, and its schedule fits what they make: a record
 * that cannot be used is passed over.
 * CANVAS_NONE: there is none, and the error message says what there is. */
canvas_status canvas_log_best(canvas_context *ctx, const canvas_log *log,
                              const canvas_program *program, const canvas_log_place *place,
                              int *record);
/* The same record, bound: *out owns its program, which the record's edits made of yours, and its schedule. Whatever a
 * record says, *out computes what the program says, but for the order of sums, products with a proved reciprocal in
 * place of quotients, and Winograd's convolution where the place lets it pass: edits that change values are refused,
 * and buffers that take many times the memory of the program's tensors. */
typedef struct canvas_log_taken {
  int record;
  int refused;   /* better ones that cannot be used ... */
  char why[512]; /* why the first of them cannot be used */
} canvas_log_taken;
canvas_status canvas_log_take(canvas_context *ctx, const canvas_log *log,
                              const canvas_program *program, const canvas_log_place *place,
                              canvas_bound **out, canvas_log_taken *taken);
/* This record, bound as by canvas_log_take, of the program that it holds. For the machine of the place, or for its own
 * where the place has none or is anywhere, or is NULL, which lets no Winograd pass. CANVAS_BAD_INPUT: it cannot be
 * used. */
canvas_status canvas_log_bind(canvas_context *ctx, const canvas_log *log, int record,
                              const canvas_log_place *place, canvas_bound **out);

/* Appends to a log, which is made where there is none, that this schedule is faster in a network than the one which
 * the log had for the program until now: a call took time->median seconds. `place`: compiler and threads.
 * CANVAS_BAD_INPUT: the file is no tuning log. CANVAS_IO: it cannot be written, and is as it was. */
canvas_status canvas_log_add_network(canvas_context *ctx, const char *path,
                                     const canvas_bound *bound, const canvas_log_place *place,
                                     const canvas_verdict *time);

/* All records of one program on one number of threads. */
typedef struct canvas_log_task {
  char task[17];
  char name[128]; /* of the program */
  int threads;
  int trials;                  /* records of what was run alone; of them ... */
  int failed[CANVAS_FAILURES]; /* ... by canvas_failure */
  int screened;                /* ... not failed, but trials only */
  int best;                    /* a record, as of canvas_log_best; -1: none */
  int refused;                 /* records that would be the best, and cannot be used ... */
  char why[256];               /* why the first of them cannot be used */
  int64_t first, last;         /* when */
} canvas_log_task;
/* In the order of their first records; *count of them, freed with canvas_log_tasks_free. */
canvas_log_task *canvas_log_tasks(const canvas_log *log, const canvas_log_place *place, int *count);
void canvas_log_tasks_free(canvas_log_task *tasks);

/* ---- the command line ---------------------------------------------------------------------- */

/* The canvas command: argv[0] is the program's name, argv[argc] is not read. Prints to stdout and
 * stderr, answers the exit status: 0, 1 where the answer is "none", 2 for bad input, or without memory. */
int canvas_main(int argc, char **argv);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
