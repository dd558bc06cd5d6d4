/* Canvas: new neural operators for a network you already have.
 *
 * The public C API, in the order of the pipeline: targets -> sampler -> kernel -> solver -> pack ->
 * program -> schedule -> code. Everything but the sampler has a text form that parses back to the same
 * object.
 *
 * Ownership: the results of `_new`, `_parse`, `_draw`, `_mutate`, `_simplify`, `_next`, `_bind`, `_solve`,
 * `_lower`, `_default`, `_here`, `_read`, `_merge`, `_tasks` and `_open` belong to the caller, who releases them
 * with `_free` or `_close`, and a `char *` with canvas_string_free. Every other pointer is borrowed and lives as
 * long as the object that returned it.
 *
 * Errors: a function that can fail returns a status. It writes its result through its last argument only if the
 * status is CANVAS_OK, otherwise it leaves one error message in the context. Reading an object does not change it:
 * threads may share objects, each with its own context. There is no global state. `_free` and `_close` accept NULL.
 *
 * Arguments: a pointer may be NULL only where its function allows it; a context never is. Otherwise NULL, an
 * out-of-range index, a negative count and an invalid enum value return CANVAS_BAD_INPUT. A function without a
 * status returns NULL, 0 or a zeroed struct for them and writes nothing; texts of a struct may therefore be NULL.
 * Array lengths cannot be checked: an array must have as many elements as its count or its tensor has.
 *
 * Memory: a function that runs out of memory frees what it allocated. It returns CANVAS_IO with the message "out of
 * memory: N bytes could not be had", or, without a status, NULL or a zeroed struct. Its arguments are unchanged and
 * can be used again; this includes the network of canvas_network_optimize.
 *
 * Texts are bytes with a length, need no terminating NUL and have at most CANVAS_TEXT_LIMIT bytes. Sizes are
 * numbers of elements; MACs are multiply-accumulates, FLOPs are 2 * MACs.
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
#ifdef __GNUC__ /* exported symbols; all others are hidden */
#pragma GCC visibility push(default)
#endif

typedef enum canvas_status {
  CANVAS_OK,
  CANVAS_NONE,      /* no result: no solution, a skipped draw, the end of a text */
  CANVAS_BAD_INPUT, /* the message states what is wrong and where */
  CANVAS_IO         /* an unreadable file, out of memory, or a work limit */
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

/* version of the linked library; CANVAS_VERSION is that of the header */
const char *canvas_version(void);

canvas_context *canvas_context_new(void);
void canvas_context_free(canvas_context *ctx);
/* The error message of the last failure, "" before the first: no full stop, no line break, printable. */
const char *canvas_context_message(const canvas_context *ctx);

void canvas_string_free(char *text);

/* Cost of one sample at known sizes, the most important first. */
typedef struct canvas_cost {
  int64_t macs;        /* in contractions; PyTorch's FlopCounterMode counts twice as many */
  int64_t params;      /* weights */
  int64_t activations; /* elements written by computing primitives */
  int64_t elementwise; /* all other scalar operations */
  int64_t bytes;       /* read and written in fp32 by computing primitives, weights once */
} canvas_cost;

/* ---- the primitives (docs/kernel.md) ------------------------------------------------------- */

typedef enum canvas_format { CANVAS_TEXT, CANVAS_JSON, CANVAS_MARKDOWN } canvas_format;

/* The primitive table as columns, as a JSON list of {name, family, inputs, attributes, facts,
 * meaning}, or as the table of docs/kernel.md. */
char *canvas_primitives_print(canvas_format format);

/* ---- targets: the layers to replace -------------------------------------------------------- */

/* One line per layer, `name C_in C_out H W kernel stride groups dilation projected` (H and W of the
 * layer's input; the kernel is `3` or `3x1`; what is left out of the last four is 1 1 1 0; commas or
 * blanks; # comments), or "C,H,W;C,H,W" for dense 3x3 C -> C. `projected` 1: a learned 1x1
 * convolution to C_out channels stands before the kernel. */
canvas_status canvas_targets_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_targets **out);
void canvas_targets_free(canvas_targets *targets);
char *canvas_targets_print(const canvas_targets *targets); /* long form, parses back */
int canvas_targets_count(const canvas_targets *targets);
const char *canvas_targets_name(const canvas_targets *targets, int target);
/* Cost of the replaced convolution, without bias; target -1: the sum over all. */
canvas_status canvas_targets_cost(canvas_context *ctx, const canvas_targets *targets, int target,
                                  canvas_cost *out);
/* As JSON: {"macs", "flops", "params", "activations", "elementwise", "bytes", "targets": [...]}. */
canvas_status canvas_targets_cost_json(canvas_context *ctx, const canvas_targets *targets,
                                       char **out);

/* ---- kernels: micro-DAGs with symbolic sizes (docs/kernel.md) ------------------------------ */

/* Parse a text with exactly one kernel; bind lines of a pack are ignored. Errors name line and
 * column. */
canvas_status canvas_kernel_parse(canvas_context *ctx, const char *text, size_t length,
                                  canvas_kernel **out);
void canvas_kernel_free(canvas_kernel *kernel);
char *canvas_kernel_print(const canvas_kernel *kernel); /* canonical: print(parse(t)) is stable */
const char *canvas_kernel_name(const canvas_kernel *kernel);

/* Hash that is equal exactly for isomorphic kernels: names, numbering of x, order of independent
 * nodes and of commutative inputs do not matter. */
typedef struct canvas_hash {
  char hex[33]; /* 128 bits as 32 lower-case digits */
  /* false: too symmetric to decide (no such kernel is known), so that an isomorphic text may
   * have another hash */
  bool decided;
} canvas_hash;
canvas_hash canvas_kernel_hash(const canvas_kernel *kernel);

/* Remove redundant nodes: relu of relu, a group that only the output reads, shifts that cancel. The
 * result is equal up to rounding at all sizes and for all weights of the remaining nodes. */
canvas_kernel *canvas_kernel_simplify(const canvas_kernel *kernel);

/* A key of what a kernel computes: equal for kernels that exact arithmetic over a large prime field
 * on random images and weights cannot distinguish (docs/kernel.md). Simplify them first.
 * decided = false: the kernel has no small sizes to evaluate it at, the key is its hash. */
canvas_hash canvas_kernel_value(const canvas_kernel *kernel);

/* A kernel that takes the stride of its targets itself (S in its text, docs/kernel.md). `mode`:
 * "pool": the kernel as it is, whose input is average-pooled; "window": the first unfold along each
 * axis of each path takes stride=S; "output": the result is subsampled. CANVAS_BAD_INPUT where it
 * cannot: the kernel uses S already, or with "window" a size of it holds H or W. */
canvas_status canvas_kernel_stride(canvas_context *ctx, const canvas_kernel *kernel,
                                   const char *mode, canvas_kernel **out);

/* NULL if the output depends on several pixels along H and W and mixes all channels with weights;
 * otherwise the reason why not. */
const char *canvas_kernel_reach(const canvas_kernel *kernel);

typedef struct canvas_kernel_facts {
  int primitives; /* without input and output */
  int variables;  /* free sizes x0, x1, ... */
  bool has_weights;
  bool uses_groups;    /* G occurs: a binding must give it */
  bool uses_stride;    /* S occurs: the kernel takes the stride itself, its input is not pooled */
  bool needs_fixed_hw; /* the shape of a weight depends on H or W */
} canvas_kernel_facts;
canvas_kernel_facts canvas_kernel_describe(const canvas_kernel *kernel);

char *canvas_kernel_dot(const canvas_kernel *kernel); /* picture in Graphviz's language */
char *canvas_kernel_svg(const canvas_kernel *kernel); /* SVG picture; its <desc> holds the text */

/* Bind a kernel to the sizes in `at`, such as "C=64,H=56,W=56,G=4,x0=64": C, or Cin and Cout; H and
 * W of the layer's input; K, or KH and KW (default 3); stride (default 1). The sizes must fit the
 * kernel. */
canvas_status canvas_kernel_bind(canvas_context *ctx, const canvas_kernel *kernel, const char *at,
                                 size_t length, canvas_pack **out);

/* ---- a text of many kernels and packs ------------------------------------------------------ */

/* Open a text, which is copied. The reader returns its packs one after another; a kernel without
 * bind lines is a pack without bindings. */
canvas_status canvas_reader_open(canvas_context *ctx, const char *text, size_t length,
                                 canvas_reader **out);
void canvas_reader_close(canvas_reader *reader);
/* Read the next pack; CANVAS_NONE at the end. Errors name line and column within the whole text. */
canvas_status canvas_reader_next(canvas_context *ctx, canvas_reader *reader, canvas_pack **out);

/* Print all kernels of a text in canonical form, separated by blank lines; bind lines are dropped. */
canvas_status canvas_kernels_print(canvas_context *ctx, const char *text, size_t length,
                                   char **out);

/* ---- the sampler --------------------------------------------------------------------------- */

/* Of the draws and children: another version gives others for the same seed and index. */
#define CANVAS_SAMPLER_VERSION 2

/* Create a sampler for these targets. Draw i is a pure function of (targets, options, seed, i) on
 * every machine. Options are text, such as "primitives=5..12 require=reach|none groups=4
 * draws=rules|learned|paper", "" for the defaults; docs/kernel.md lists the others.
 * CANVAS_BAD_INPUT if no kernel can be drawn for these targets. */
canvas_status canvas_sampler_new(canvas_context *ctx, const canvas_targets *targets,
                                 const char *options, size_t length, uint64_t seed,
                                 canvas_sampler **out);
void canvas_sampler_free(canvas_sampler *sampler);
/* Draw kernel `index`, and its G. CANVAS_NONE: this index gives no kernel, the message states why its
 * attempts failed. A sampler must not be used by two threads at once. */
canvas_status canvas_sampler_draw(canvas_context *ctx, canvas_sampler *sampler, uint64_t index,
                                  canvas_kernel **out, int64_t *groups);

/* Make a child of one or two kernels. With one parent: one to three edits (insert, remove or
 * replace a primitive, change an input or an attribute). With two: a part of the second replaces a
 * primitive of the first, then up to two edits. The child is simplified, legal at all targets like
 * a draw, has at most as many primitives as a draw, and is not isomorphic to a parent.
 * parent_groups: the G of each parent. Child i is a pure function of (targets, options, seed, i,
 * parents). CANVAS_NONE: no legal child was found; the next index may have one. */
enum { CANVAS_PARENTS_MAX = 2 };
canvas_status canvas_sampler_mutate(canvas_context *ctx, canvas_sampler *sampler, uint64_t index,
                                    const canvas_kernel *const *parents,
                                    const int64_t *parent_groups, int count, canvas_kernel **out,
                                    int64_t *groups);
/* Whether draw `index` belongs to the share of draws that ignores the drawing rules. */
canvas_status canvas_draw_is_free(canvas_context *ctx, const char *options, size_t length,
                                  uint64_t seed, uint64_t index, bool *out);
/* The probability that one attempt of a draw gives the kernel (whatever G is), exact, as JSON: a list
 * with an object for each kind of draw: "share" (of the draws), "rules" (names of those that it keeps),
 * "probability", and "why" it is 0. Kernels of up to 20 primitives. */
canvas_status canvas_sampler_probability(canvas_context *ctx, canvas_sampler *sampler,
                                         const canvas_kernel *kernel, char **out);
/* How many of so many attempts give a kernel, as JSON: a list with an object for each kind of draw, in the
 * same order: "attempts", "successes", and "limit", the attempts that a draw may make. */
canvas_status canvas_sampler_successes(canvas_context *ctx, canvas_sampler *sampler,
                                       int64_t attempts, char **out);
/* Names of the drawing rules that a pack breaks, separated by blanks, "" if there are none. Rules
 * that the options switch off are not checked. */
canvas_status canvas_pack_broken_rules(canvas_context *ctx, const canvas_pack *pack,
                                       const char *options, size_t length, char **out);

/* ---- budgets and the solver (paper 6.3) ---------------------------------------------------- */

/* Parse a budget: "macs=0.5x,params=0.5x" (of the replaced layers), "macs=900M", "macs=0.2x..0.5x",
 * "params=none". MACs or params that are not named are limited to 1.0x. */
canvas_status canvas_budget_parse(canvas_context *ctx, const char *text, size_t length,
                                  canvas_budget **out);
void canvas_budget_free(canvas_budget *budget);

/* After every weight inside a kernel; a weight whose values the kernel hands on has none. */
typedef enum canvas_norm { CANVAS_NORM_NONE, CANVAS_NORM_BATCH } canvas_norm;

typedef struct canvas_solve_options {
  int64_t groups; /* G of every binding; 0: not given */
  /* allow equal copies without weights (as in the identity control) and weights that cannot
   * affect a small image */
  bool exempt;
  canvas_norm norm; /* norms that the pack is trained with; counted in its parameters */
} canvas_solve_options;
/* "G=4 exempt=1 norm=batch", separated by blanks or commas; "" = {0, false, CANVAS_NORM_NONE}. */
canvas_status canvas_solve_options_parse(canvas_context *ctx, const char *text, size_t length,
                                         canvas_solve_options *out);

/* Choose sizes for every target that fill the budget. `options` may be NULL. CANVAS_NONE: there is
 * no solution, the message names the constraint that failed. */
canvas_status canvas_kernel_solve(canvas_context *ctx, const canvas_kernel *kernel,
                                  const canvas_targets *targets, const canvas_budget *budget,
                                  const canvas_solve_options *options, canvas_pack **out);

/* ---- packs: a kernel and its sizes at each target ------------------------------------------ */

/* Parse a text with exactly one pack. A pack has one kernel for all targets, or several kernels
 * with targets of their own; targets may also be kept: their convolution stays. */
canvas_status canvas_pack_parse(canvas_context *ctx, const char *text, size_t length,
                                canvas_pack **out);
void canvas_pack_free(canvas_pack *pack);
char *canvas_pack_print(const canvas_pack *pack);
int canvas_pack_kernels(const canvas_pack *pack);                    /* 1 or more */
const canvas_kernel *canvas_pack_kernel(const canvas_pack *pack);    /* the first one */
int canvas_pack_count(const canvas_pack *pack);                      /* targets with a kernel */
const char *canvas_pack_target(const canvas_pack *pack, int target); /* the layer's name */
const canvas_kernel *canvas_pack_kernel_of(const canvas_pack *pack, int target);
int canvas_pack_kept(const canvas_pack *pack); /* targets that are kept */
const char *canvas_pack_kept_target(const canvas_pack *pack, int target);
canvas_cost canvas_pack_kept_cost(const canvas_pack *pack, int target); /* of its convolution */
/* A new pack of one kernel, 0 to canvas_pack_kernels(pack) - 1, and its targets; none is kept. */
canvas_pack *canvas_pack_part(const canvas_pack *pack, int kernel);
/* The kernel's hash; for several kernels or kept targets a hash of what each target has. Sizes do
 * not count. */
canvas_hash canvas_pack_hash(const canvas_pack *pack);
/* Why two packs differ, such as "target 'a' has different kernels"; "" if they are equal: the same
 * targets, each with isomorphic kernels of equal sizes and norms, or kept in both. Names of kernels
 * and the order of lines do not matter. CANVAS_NONE: a kernel is too symmetric to decide (none is
 * known). */
canvas_status canvas_pack_compare(canvas_context *ctx, const canvas_pack *a, const canvas_pack *b,
                                  char **out);
/* Each kernel as sums over indices, its sizes symbolic: text, or LaTeX with an align* environment for each
 * kernel. */
char *canvas_pack_formula(const canvas_pack *pack, bool latex);
/* SVG picture of each different kernel with its targets, one below the other, and the names of kept
 * targets; its <desc> holds the pack's text. For one kernel without kept targets the picture is that
 * of canvas_kernel_svg. */
char *canvas_pack_svg(const canvas_pack *pack);
/* As canvas_kernel_reach for each kernel, on its targets: an axis along which all of them have one pixel or a
 * window of one requires no neighbours. Without bindings the result is that of canvas_kernel_reach. */
const char *canvas_pack_reach(const canvas_pack *pack);
/* A line for each target with a small image (at most 3 pixels along an axis, or fewer than the
 * window) where some weight cannot affect the output and gets no gradient; "" if there is none. */
canvas_status canvas_pack_idle_weights(canvas_context *ctx, const canvas_pack *pack, char **out);
/* Cost of one target, or with target -1 of all, including copies, pooling and averaging; kept
 * targets count as dense convolutions.
 * CANVAS_BAD_INPUT for a pack without bindings, or if a number exceeds 2^62. */
canvas_status canvas_pack_cost(canvas_context *ctx, const canvas_pack *pack, int target,
                               canvas_cost *out);
/* As JSON: {"kernel", "hash", "macs", "flops", "params", "activations", "elementwise", "bytes",
 * "targets": [{"name", "kernel", "macs", ...}], "kept": [{"name", "kernel": null, ...}]}. */
canvas_status canvas_pack_cost_json(canvas_context *ctx, const canvas_pack *pack, char **out);
/* Source of a self-contained torch.nn.Module; for several kernels or kept targets of a module for
 * each kernel, and KERNELS, which maps a target to its module. `patterns`: replace sequences of primitives by one
 * PyTorch operator where one exists; the results are equal. */
canvas_status canvas_pack_torch(canvas_context *ctx, const canvas_pack *pack, bool patterns,
                                char **out);
/* Lower the kernel at one target to a program for `batch` >= 1 samples. Its inputs are the layer's
 * input [N, C_in, H, W] and the weights in the layout that the text of the pack shows. */
canvas_status canvas_pack_lower(canvas_context *ctx, const canvas_pack *pack, int target,
                                int64_t batch, canvas_program **out);

/* ---- programs: tensor expressions with numbers (docs/program.md) --------------------------- */

canvas_status canvas_program_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_program **out);
void canvas_program_free(canvas_program *program);
char *canvas_program_print(const canvas_program *program);
/* Python that defines the program in TVM's tensor expressions (te), as a function `name` (NULL: the
 * program's). CANVAS_BAD_INPUT for reductions whose bounds depend on data or on other axes. */
canvas_status canvas_program_tvm(canvas_context *ctx, const canvas_program *program,
                                 const char *name, char **out);

/* bf16 is rounded to nearest even when it is stored; i32 is only for inputs that hold indices. */
typedef enum canvas_dtype { CANVAS_F32, CANVAS_F64, CANVAS_BF16, CANVAS_I32 } canvas_dtype;

enum { CANVAS_RANK_MAX = 32 };
typedef struct canvas_tensor {
  const char *name;
  canvas_dtype dtype;
  int rank;
  int64_t sizes[CANVAS_RANK_MAX];
  int64_t elements;    /* the product of the sizes; 1 for a scalar */
  int64_t least, most; /* range of the elements of i32, both included; 0 for other types */
  bool rising;         /* elements of i32 never decrease along the last axis, from least to most */
  bool constant;       /* an input that is the same in many calls, such as weights */
} canvas_tensor;
int canvas_program_inputs(const canvas_program *program);
int canvas_program_outputs(const canvas_program *program);
canvas_tensor canvas_program_input(const canvas_program *program, int input);
canvas_tensor canvas_program_output(const canvas_program *program, int output);

/* Fill an input with standard normal numbers, or zeros if memory runs out. Inputs other than the
 * first are divided by the root of their fan-in, the product of all sizes but the first. Inputs of
 * i32 get numbers of their range, sorted if they are `rising`. A pure function of (seed, input,
 * program). */
void canvas_program_fill(const canvas_program *program, int input, uint64_t seed, double *out);

/* Evaluate a program with the interpreter, which defines its meaning, in double precision.
 * inputs[i] is the whole input i, row-major. out[k], k < count, gets element elements[k] (flat,
 * row-major) of output `output`; elements NULL means 0 .. count-1. Only the required elements are
 * computed. CANVAS_BAD_INPUT: an output, an element or a load is out of range, or an input of i32
 * violates its declaration. CANVAS_IO: memory or time limits. */
canvas_status canvas_program_evaluate(canvas_context *ctx, const canvas_program *program,
                                      const double *const *inputs, int output, int64_t count,
                                      const int64_t *elements, double *out);

/* ---- networks: calls of programs, one after another (docs/networks.md) ---------------------- */

canvas_status canvas_network_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_network **out);
void canvas_network_free(canvas_network *network);
char *canvas_network_print(const canvas_network *network);

/* Inputs change between runs, weights do not. Each role is numbered from 0, in the order of the
 * text. */
typedef enum canvas_role { CANVAS_INPUT, CANVAS_WEIGHT, CANVAS_OUTPUT } canvas_role;
int canvas_network_count(const canvas_network *network, canvas_role role);
canvas_tensor canvas_network_tensor(const canvas_network *network, canvas_role role, int index);
/* Name of a weight in its model, such as "layer1.0.conv1.weight"; NULL if the text has none. */
const char *canvas_network_source(const canvas_network *network, int weight);
/* As canvas_program_fill, for an input or a weight; only weights are divided by the root of their
 * fan-in. */
void canvas_network_fill(const canvas_network *network, canvas_role role, int index, uint64_t seed,
                         double *out);

/* Evaluate a network with the interpreter: every call in order, in double precision, rounded to the
 * type of each value. inputs[i], weights[i] and outputs[i] are whole tensors, row-major.
 * CANVAS_BAD_INPUT: an input of i32 violates its declaration. CANVAS_IO: memory or time limits. */
canvas_status canvas_network_evaluate(canvas_context *ctx, const canvas_network *network,
                                      const double *const *inputs, const double *const *weights,
                                      double *const *outputs);

/* As canvas_network_evaluate, but large calls run in compiled double-precision code, which is
 * compared with the interpreter at some elements; values are not rounded between calls. Takes
 * seconds where the interpreter takes hours. */
canvas_status canvas_network_reference(canvas_context *ctx, const canvas_network *network,
                                       const double *const *inputs, const double *const *weights,
                                       double *const *outputs);

/* Optimize a network in place: run every pass but winograd and winograd4, or the passes that
 * `passes` names, separated by blanks or commas, in that order (docs/networks.md). Inputs, weights
 * and outputs stay; results may differ by rounding. Speed is predicted for `machine` (NULL: this
 * one); the result is correct on every machine. CANVAS_BAD_INPUT: unknown pass. */
canvas_status canvas_network_optimize(canvas_context *ctx, canvas_network *network,
                                      const char *passes, const canvas_machine *machine);

/* Number of programs, and a copy of one that the caller frees. `calls` (may be NULL): calls of it
 * per run, 0 if it is called only at load time, on constant values. */
int canvas_network_programs(const canvas_network *network);
canvas_program *canvas_network_program(const canvas_network *network, int index, int *calls);

/* The memory plan of one arena, as columns or as JSON {"bytes", "least", "apart", "values": [{"name", "first",
 * "last", "offset", "bytes"[, "in_place_of"][, "part_of"][, "skipped"]}]}. For each value: the first and the last
 * call of its lifetime, offset and bytes, the value that it overwrites in place, and the value that it is a part of
 * without a copy. In total: bytes of the arena, of the largest set of live values, and of all values. Inputs,
 * weights and outputs belong to the caller and are not included. */
char *canvas_network_plan(const canvas_network *network);
char *canvas_network_plan_json(const canvas_network *network);

/* ---- operators: programs by name (docs/operators.md) --------------------------------------- */

/* Create the program of an operator, such as "conv2d_nchw" with the arguments "in_channels=64
 * height=56 width=56 out_channels=64 kernel=3 padding=1", separated by blanks; omitted arguments
 * are default. Inputs are the data X, then weights and bias; the output is Y. */
canvas_status canvas_operator_program(canvas_context *ctx, const char *name, const char *arguments,
                                      size_t length, canvas_program **out);
/* The operator library as columns, as a JSON list of {name, arguments: {name: default or null},
 * meaning}, or as the table of docs/operators.md. */
char *canvas_operators_print(canvas_format format);
/* Arguments of an operator, a line each, with defaults and meanings. */
canvas_status canvas_operator_describe(canvas_context *ctx, const char *name, char **out);

/* Counts of a stage, independent of the schedule. A multiply-add is two flops. `read` counts each
 * byte that the indices of a loaded tensor can reach once. If bounds depend on data, counts are
 * upper bounds. */
typedef struct canvas_count {
  int64_t points;        /* elements of the stage */
  int64_t reduction;     /* reduced points per element; 1 without a reduction */
  int64_t flops;         /* of all its elements */
  int64_t read, written; /* bytes */
} canvas_count;
int canvas_program_stages(const canvas_program *program);
const char *canvas_program_stage(const canvas_program *program, int stage); /* its name */
/* Counts of one stage, or with stage -1 of all (reduction 0). CANVAS_BAD_INPUT if the stage does
 * not exist or a number exceeds 2^62. */
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
 * All but the last two keep the values up to the order of sums; `border` keeps those of finite numbers, `reciprocal`
 * keeps them up to one rounding.
 * CANVAS_BAD_INPUT: the edit is not allowed; the message states why, with line and column. */
canvas_status canvas_program_edit(canvas_context *ctx, const canvas_program *program,
                                  const char *edit, size_t length, canvas_program **out);

/* Apply edits from an untrusted source, a line each. Edits that change values are rejected: `type`,
 * `border Y` without a name, and `winograd` with tiles larger than `winograd` (0: all).
 * CANVAS_BAD_INPUT as for canvas_program_edit, with the number of the edit. */
canvas_status canvas_program_replay(canvas_context *ctx, const canvas_program *program,
                                    const char *edits, int winograd, canvas_program **out);

/* Apply the edit `winograd` to every convolution that allows it, with tiles of 2 or 4. It rounds
 * more than the convolution: canvas_run_options.winograd permits that. CANVAS_BAD_INPUT: no
 * convolution allows it. */
canvas_status canvas_program_winograd(canvas_context *ctx, const canvas_program *program, int tile,
                                      canvas_program **out);

/* ---- machines: what schedules are bound for (docs/machine.md) -------------------------------- */

/* The machine of this process, as far as the processor and the system describe it. */
canvas_machine *canvas_machine_here(void);
/* Parse a text with exactly one machine. Errors name line and column. */
canvas_status canvas_machine_parse(canvas_context *ctx, const char *text, size_t length,
                                   canvas_machine **out);
void canvas_machine_free(canvas_machine *machine);
char *canvas_machine_print(const canvas_machine *machine); /* all keys; parses back */

/* ---- schedules: how the loops of a program run (docs/schedule.md) --------------------------- */

/* Both forms of the text are parsed; the tree form is printed. Functions below resolve names in a
 * program. */
canvas_status canvas_schedule_parse(canvas_context *ctx, const char *text, size_t length,
                                    canvas_schedule **out);
void canvas_schedule_free(canvas_schedule *schedule);
char *canvas_schedule_print(const canvas_schedule *schedule);
/* Set extents of loops, such as "iw=14,yo=4". A rejected list changes nothing. */
canvas_status canvas_schedule_set(canvas_context *ctx, canvas_schedule *schedule,
                                  const char *numbers);
/* The default schedule: correct for every program and machine, tiles by a closed formula, without
 * search (docs/native.md). */
canvas_status canvas_schedule_default(canvas_context *ctx, const canvas_program *program,
                                      const canvas_machine *machine, canvas_schedule **out);

/* ---- bound: a program, a schedule and a machine, checked --------------------------------------- */

/* Bind a schedule: check that it is legal for the program on the machine. Loops without an extent
 * (holes) are checked as far as possible. `schedule` NULL selects the default schedule, of the
 * program after its own edits; the bound object owns both. Otherwise program and schedule are
 * borrowed and must not change or be freed before the bound object; the machine is copied. */
canvas_status canvas_bound_new(canvas_context *ctx, const canvas_program *program,
                               const canvas_schedule *schedule, const canvas_machine *machine,
                               canvas_bound **out);
void canvas_bound_free(canvas_bound *bound);
const canvas_schedule *canvas_bound_schedule(const canvas_bound *bound);

/* A hole is a loop without an extent; `following` more loops get theirs from the holes. */
typedef struct canvas_bound_facts {
  int stages, loops, holes, following;
} canvas_bound_facts;
canvas_bound_facts canvas_bound_describe(const canvas_bound *bound);
/* Names of the holes, such as "iw, yo"; "" if there are none */
char *canvas_bound_holes(const canvas_bound *bound);
/* Warnings about legal schedules that are probably mistakes, such as tiles that need more registers
 * than there are, a line each: "warning: line 2, column 5: ..."; "" if there are none. */
char *canvas_bound_warnings(const canvas_bound *bound);

/* Explain a bound schedule. Loops: step, executions, bytes that an iteration touches, and the cache
 * that they fit. Stages: FLOPs (with recomputation), computations per element, vector registers of
 * the tile, and bytes loaded into each cache. Also the predicted time, at rates of this machine
 * that are measured once (docs/machine.md). With holes only the loops. CANVAS_BAD_INPUT if a number
 * exceeds 2^62. */
canvas_status canvas_bound_explain(canvas_context *ctx, const canvas_bound *bound, char **out);
/* The predicted time of a run without what is computed at load time, and seconds of each resource
 * alone, as JSON: {"seconds", "compute", "loads", "waits", "l2", "l3", "memory"}. Rates are likely
 * ones of the machine's vectors, nothing is measured: every such machine gives the same. */
canvas_status canvas_bound_cost_json(canvas_context *ctx, const canvas_bound *bound, char **out);
/* Graph for Graphviz: the tree of loops over the stages, the data flow between stages, the splits
 * of the axes. */
char *canvas_bound_dot(const canvas_bound *bound);

/* Apply one edit to the schedule and check the result: *out is bound to the same program and machine, owns
 * its schedule and borrows the program.
 *
 *     split LOOP INT                 merge OUTER INNER           extent LOOP INT|open|?
 *     reorder LOOP                   group LOOP {MARK}           ungroup LOOP
 *     mark LOOP {MARK} [pf INT]      tail LOOP mask|peel|none
 *     move STAGE to LOOP|root [before STAGE]
 *     keep STAGE NAME {, NAME} [reg|l1|heap]
 *
 * LOOP is a name, with `of STAGE` if several loops have it; MARK is para, vec, unroll or fold; `reorder` and
 * `group` act on the loop and the only loop inside it. CANVAS_BAD_INPUT: the edit is not allowed. */
canvas_status canvas_bound_edit(canvas_context *ctx, const canvas_bound *bound, const char *edit,
                                size_t length, canvas_bound **out);

/* Adapt the schedule to the program that canvas_program_edit makes with the same edit: remaining
 * stages keep their loops, new stages get a place. CANVAS_BAD_INPUT: the edit is not allowed, or no
 * schedule can follow it. */
canvas_status canvas_bound_follow(canvas_context *ctx, const canvas_bound *bound, const char *edit,
                                  size_t length, canvas_schedule **out);

/* ---- code: bound programs as C (docs/native.md) ----------------------------------------------- */

typedef struct canvas_emit_options {
  const char *function; /* a C name; NULL: canvas_program_function */
  const char *source;   /* origin for the head comment; NULL: none */
  bool header;          /* emit the declaration only */
  bool prepare;         /* emit two functions, if canvas_bound_prepared finds two */
} canvas_emit_options;
/* Emit one C file with one function, which takes a pointer for each input and then each output:
 * whole tensors, row-major. `options` may be NULL. CANVAS_BAD_INPUT: there are holes, or the name
 * is not a C name. */
canvas_status canvas_bound_emit(canvas_context *ctx, const canvas_bound *bound,
                                const canvas_emit_options *options, char **out);
/* The tree of statements that is printed as C, as text, after the pass `after`: "build" before the first pass, NULL
 * after the last one. Of two functions (`prepare` above) the first text is that of NAME_prepare. For people: the text
 * may change. CANVAS_BAD_INPUT: the schedule has holes, or there is no such pass; the message lists them. */
canvas_status canvas_bound_statements(canvas_context *ctx, const canvas_bound *bound,
                                      const char *after, char **out);
/* Name of the function: that of the program, changed if it has a meaning in C. */
char *canvas_program_function(const canvas_program *program);

/* Preprocessing of constant inputs. Stages that depend on constant inputs only (`in W f32 [..]
 * const`), in loop nests of their own at the root of the schedule, can be emitted as a second
 * function. NAME_prepare takes the inputs of `prepare` and then a buffer of `bytes` bytes, aligned
 * to 64, which it fills. NAME takes the inputs of `rest`, that buffer, and the outputs. Both lists
 * are indexed by input of the program; they are NULL and `bytes` is 0 if there is nothing to
 * prepare. The buffer is valid until an input of `prepare` changes. */
typedef struct canvas_prepared {
  int64_t bytes;
  bool *prepare, *rest;
} canvas_prepared;
canvas_status canvas_bound_prepared(canvas_context *ctx, const canvas_bound *bound,
                                    canvas_prepared *out);
void canvas_prepared_free(canvas_prepared *prepared);

/* Compile with an installed compiler ($CANVAS_CC, or cc, gcc, clang) for the target of the bound
 * machine. *out is the path of a shared object in the cache ($CANVAS_CACHE, or ~/.cache/canvas),
 * freed as a string. CANVAS_IO: no compiler works, or it rejects the code. */
canvas_status canvas_bound_compile(canvas_context *ctx, const canvas_bound *bound,
                                   const canvas_emit_options *options, char **out);
/* Load such an object, or that of canvas_network_code_describe, after a check of its folders, owner
 * and checksum; *out is a handle of dlopen. CANVAS_IO: it was removed or damaged, or cannot be
 * loaded. */
canvas_status canvas_object_load(canvas_context *ctx, const char *path, void **out);
char *canvas_compiler_name(
    /* with flags and version; NULL after an error, whose message is in ctx */
    canvas_context *ctx);

/* Compile for this machine, whatever the schedule is bound for, and load it. CANVAS_IO: no compiler
 * works, or the object cannot be loaded. */
canvas_status canvas_code_open(canvas_context *ctx, const canvas_bound *bound, canvas_code **out);
/* Run the code. inputs[i] and outputs[k] are whole tensors, row-major, in the order of
 * canvas_program_input and canvas_program_output, of float, double, uint16_t (bf16) or int32_t.
 * They must not overlap. Nothing is checked: a buffer that is too small or an i32 out of range
 * causes invalid reads and writes. Several threads may call one code. CANVAS_IO: out of memory for
 * its buffers. */
canvas_status canvas_code_call(canvas_context *ctx, const canvas_code *code,
                               const void *const *inputs, void *const *outputs);
void canvas_code_close(canvas_code *code);

/* ---- networks as code (docs/networks.md) ------------------------------------------------------ */

/* 0 or NULL selects the default given in the comment. */
typedef struct canvas_network_options {
  const canvas_machine *machine; /* machine of the code; default: this one */
  const canvas_log *log;         /* tuning log with schedules to use; default: none */
  int threads;                   /* threads that share the work of long calls; default: 1 */
  const char *name;              /* prefix of the functions; default: name of the network */
} canvas_network_options;

/* Compile a network into one shared object of the cache with NAME_load, NAME_run and NAME_call
 * (docs/networks.md). Compiled programs are reused by other networks that have the same program.
 * CANVAS_IO: no compiler works, or it rejects the code. */
canvas_status canvas_network_compile(canvas_context *ctx, const canvas_network *network,
                                     const canvas_network_options *options,
                                     canvas_network_code **out);
void canvas_network_code_free(canvas_network_code *code);

/* Facts of a compiled network; the texts belong to the code. */
typedef struct canvas_network_facts {
  const char *path;                  /* of the shared object */
  const char *function;              /* NAME */
  int64_t packed_bytes, arena_bytes; /* sizes of the buffers that its functions take */
  int calls;                         /* number of calls, the range of NAME_call */
  int made, found;                   /* functions compiled now, and functions found in the cache */
} canvas_network_facts;
canvas_network_facts canvas_network_code_describe(const canvas_network_code *code);

typedef struct canvas_network_call {
  const char *program;  /* name; "": a constant value that is copied to an output */
  int index;            /* index for canvas_network_program; -1: such a copy */
  const char *results;  /* names of values, separated by commas */
  int64_t flops, bytes; /* operations; bytes of its arguments and results */
  bool tuned, parallel; /* the schedule is from the log; threads share the work */
  bool simpler; /* a simpler schedule is used, because the code of a better one did not compile */
} canvas_network_call;
canvas_network_call canvas_network_code_call(const canvas_network_code *code, int call);

/* Load the code and preprocess the weights; call it again when weights have changed. weights[i] is
 * a whole tensor, row-major, of its element type, that must live until the code is freed.
 * CANVAS_BAD_INPUT: one is NULL, or an i32 violates its declaration. CANVAS_IO: the code cannot be
 * loaded, or out of memory. */
canvas_status canvas_network_code_load(canvas_context *ctx, canvas_network_code *code,
                                       const void *const *weights);
/* Compute the outputs, whole tensors that must not overlap with anything. Several threads may run
 * one code. Inputs are checked like weights; CANVAS_BAD_INPUT also if the code is not loaded. */
canvas_status canvas_network_code_run(canvas_context *ctx, canvas_network_code *code,
                                      const void *const *inputs, void *const *outputs);
/* Run call number `call` of a run, from 0, on the values that the last run left, in one thread: for
 * timing. Elements are not checked. */
canvas_status canvas_network_code_step(canvas_context *ctx, canvas_network_code *code, int call,
                                       const void *const *inputs, void *const *outputs);

/* Emit a network as files that need no Canvas: NAME.c, NAME.h and an example, in order, ended by a
 * NULL name. Free them with canvas_network_files_free. */
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
  CANVAS_FAILED_CHECK,   /* holes, or other inputs and outputs than the program */
  CANVAS_FAILED_COMPILE, /* the compiler rejected it, died, hung or wrote nothing */
  CANVAS_FAILED_LOAD,    /* the shared object cannot be loaded */
  CANVAS_FAILED_CRASH,   /* the process died or exited */
  CANVAS_FAILED_TIMEOUT,
  CANVAS_FAILED_MEMORY,
  CANVAS_FAILED_WRONG, /* an element is wrong, never written, or outside the output */
  CANVAS_FAILED_RUN    /* the code returned an error */
} canvas_failure;
const char *canvas_failure_name(
    canvas_failure failure); /* "ok", "check", ...; NULL: not an enum value */

typedef struct canvas_verdict {
  canvas_failure failure;
  char message[1024];          /* one error message; "" if there was no failure */
  int64_t compared;            /* elements compared with the interpreter */
  double worst;                /* largest error among them, relative to its rounding bound */
  int repeats;                 /* timed samples */
  double median, lower, upper; /* seconds of one run: median and quartiles */
  double cold; /* median with cold caches (canvas_run_options.cold); 0: not measured */
} canvas_verdict;

/* 0 selects the default given in the comment. CANVAS_BAD_INPUT: a negative number, nan, more than
 * 1e9 seconds or repeats, or more than 65536 threads. */
typedef struct canvas_run_options {
  uint64_t seed; /* of the inputs (canvas_program_fill) */
  /* limit of processor time per candidate and thread, and of ten times that in wall-clock time;
   * default: 10 */
  double seconds;
  double total_seconds; /* limit of one call; default: none */
  int repeats;          /* timed samples; default: 30 */
  /* threads of parallel loops, default 1; with several, times are wall-clock */
  int threads;
  /* For many candidates, the best of which are measured again without this: compile with the
   * fastest compiler, and stop timing when one sample is twice, or five are a quarter above, the
   * best median of this measurer so far (canvas_verdict.repeats shows that). */
  bool screen;
  /* 2 or 4: candidates may use the edit `winograd` with tiles up to that; outputs are compared
   * within the sum of both bounds. 0: such candidates fail. */
  int winograd;
  /* Time a second time with cold caches, as inside a network: each run uses another copy of inputs,
   * outputs and prepared buffers. The copies take twice the bytes of the caches, at most an eighth
   * of the memory. */
  bool cold;
} canvas_run_options;
/* Create a measurer, which keeps the compiler, the inputs and the expected outputs of one program
 * for many candidates. The program is borrowed. `options` NULL: seed 1. CANVAS_IO: there is no
 * compiler, or the program takes too much memory or time to evaluate. */
canvas_status canvas_measurer_new(canvas_context *ctx, const canvas_program *program,
                                  const canvas_run_options *options, canvas_measurer **out);
void canvas_measurer_free(canvas_measurer *measurer);
const char *canvas_measurer_compiler(const canvas_measurer *measurer); /* with flags and version */
/* Why only the interpreter gives expected outputs, at some elements of a large one; "" if a
 * compiled reference gives all of them, or none is needed. */
const char *canvas_measurer_no_reference(const canvas_measurer *measurer);
/* Set a callback for this thread that stops its work: while `asked` returns true, compilations,
 * runs and timings end as after a timeout. It is called every few milliseconds, only in the process
 * that set it; NULL removes it. A measurer then judges no further candidates
 * (CANVAS_FAILED_TIMEOUT), and canvas_tune returns the best trial so far. */
void canvas_stop_when(bool (*asked)(void *data), void *data);

/* Compile, verify and time each of `count` candidates into out[0 .. count). A candidate is the
 * program, or an edited version of it, bound with any schedule for any machine; it is compiled for
 * this one. A child process with limits runs it, so that a crash affects no other candidate; its
 * outputs are compared with the interpreter's before it is timed. A status other than CANVAS_OK:
 * nothing was judged. A measurer must not be used by two threads at once. */
canvas_status canvas_measurer_run(canvas_context *ctx, canvas_measurer *measurer,
                                  const canvas_bound *const *candidates, int count,
                                  canvas_verdict *out);

/* ---- tuning: the fastest schedule within a budget (docs/tune.md) -------------------------------- */

typedef struct canvas_tune_method {
  const char *name; /* NULL: after the last method */
  int trials;       /* default number of trials; 0: it measures nothing */
  const char *summary;
} canvas_tune_method;
canvas_tune_method canvas_tune_method_at(int i); /* from 0 */

enum { CANVAS_FAILURES = CANVAS_FAILED_RUN + 1 };

/* State of a search after each batch of trials. */
typedef struct canvas_tune_progress {
  int trials, budget;            /* trials measured so far, and their limit */
  int failures[CANVAS_FAILURES]; /* trials by canvas_failure; [CANVAS_FAILED_NOT]: correct ones */
  double best;                   /* seconds of the best trial, on few samples and images; 0: none */
  double seconds;                /* since the start */
  int program;                   /* index of the program in canvas_tune_many; else 0 */
} canvas_tune_progress;

/* 0 or NULL selects the default given in the comment. Numbers have the limits of
 * canvas_run_options, trials those of repeats. */
typedef struct canvas_tune_options {
  const char *method; /* default: "quick" */
  uint64_t seed;      /* seed of the method */
  int trials;         /* schedules to compile, verify and time; default: that of the method */
  /* limit of wall-clock or processor time, whichever is longer; default: none */
  double seconds;
  int patience;   /* end after so many trials in a row without improvement; default: no limit */
  double timeout; /* seconds of processor time for the runs of a trial; default: 10 */
  int together;   /* schedules compiled at once, while others are timed; default: 20 */
  int threads;    /* threads of parallel loops; default: 1 */
  /* allow Winograd, which rounds more than another order of sums; default: no */
  bool winograd;
  const char *sketch; /* schedule with holes to fill; default: the tuner's own sketches */
  const char *log;    /* tuning log that is read first, and gets each trial; default: none */
  /* returns false to end the search */
  bool (*progress)(const canvas_tune_progress *progress, void *data);
  /* called after each batch; returns true to end it with the best so far */
  bool (*enough)(void *data);
  void *data;
} canvas_tune_options;

typedef struct canvas_tuned {
  char rule[128];         /* kind of the fastest schedule: "default", "lanes oc 32, ..." */
  double predicted;       /* seconds predicted by the cost model; 0: unknown */
  canvas_verdict verdict; /* verdict on the fastest schedule; repeats 0: it was not measured */
  /* seconds of the default and of the fastest schedule, timed in alternation; 0: not measured, as
   * after a stop in the finals */
  double before, after;
  double first;   /* seconds of the trial that was fastest before the finals; 0: not measured */
  int sketches;   /* schedules with holes */
  int64_t points; /* ways to fill the holes of all sketches */
  int64_t images, tried; /* images of the batch, and images for which trials were timed */
  /* if tried < images: schedules that were timed for all images at the end; 0: `before` and
   * `after` are for `tried` images, and their ratio is an estimate for all */
  int whole;
  int trials, failures[CANVAS_FAILURES];
  int64_t damaged; /* damaged lines of the log, which are ignored */
  double seconds;  /* duration of the search */
} canvas_tuned;

/* Search for the fastest schedule of a program on this machine. *out is the best one bound for it;
 * it owns its schedule and the edited program. `options` and `tuned` may be NULL. CANVAS_BAD_INPUT:
 * unknown method, invalid sketch, or a file that is not a log. CANVAS_IO: no compiler, or the log
 * cannot be written. CANVAS_NONE: no schedule was correct, or `progress` ended the search. After
 * canvas_stop_when the result is the best trial, which was not compared with the default schedule.
 */
canvas_status canvas_tune(canvas_context *ctx, const canvas_program *program,
                          const canvas_machine *machine, const canvas_tune_options *options,
                          canvas_bound **out, canvas_tuned *tuned);

/* Tune several programs within one budget: trials and seconds of the options are for all together
 * and go where they are expected to save most; program i runs weights[i] times (0 to 1e18; NULL:
 * once). out[i] and tuned[i] are as of canvas_tune; if no schedule of a program was correct, out[i]
 * is NULL and tuned[i].verdict states why. */
canvas_status canvas_tune_many(canvas_context *ctx, const canvas_program *const *programs,
                               const double *weights, int count, const canvas_machine *machine,
                               const canvas_tune_options *options, canvas_bound **out,
                               canvas_tuned *tuned);

/* The search space as text: each sketch with its number of points and its schedule, and the first
 * `points` points of each with their legality. */
canvas_status canvas_tune_space(canvas_context *ctx, const canvas_program *program,
                                const canvas_machine *machine, const canvas_tune_options *options,
                                int points, char **out);

/* Text of the bound program, after edits, as of canvas_program_print. */
char *canvas_bound_program_print(const canvas_bound *bound);
/* The edits that led to it from the given program, a line each, as canvas_program_replay takes
 * them; "" if there are none. */
char *canvas_bound_edits(const canvas_bound *bound);

/* ---- tuning logs: what was measured, to be used again (docs/tune.md) -------------------------- */

/* One measured candidate. Texts belong to the log. */
typedef struct canvas_record {
  char task[17];       /* 16 hexadecimal digits: a hash of `program` */
  const char *program; /* given program in canonical form */
  const char *edits; /* edits of the program, a line each (docs/program.md); "" if there are none */
  const char *schedule;
  const char *rule, *method; /* kind of the schedule, and search method that tried it */
  uint64_t seed;             /* seed of the search */
  int trial;                 /* number of the trial in the search, from 0 */
  canvas_failure failure;
  const char *message;         /* "" without a failure */
  double median, lower, upper; /* seconds of one run (canvas_verdict); 0 after a failure */
  double cold;                 /* seconds with cold caches; 0: not measured */
  double network; /* seconds as a call of a network, then equal to `median`; 0: run alone */
  int repeats, threads;
  /* compiled fast or timed briefly (canvas_run_options.screen): never the best record */
  bool screened;
  const char *machine, *processor; /* machine that it was bound for, processor that measured it */
  const char *compiler, *version;  /* compiler, and version of Canvas */
  int64_t time;                    /* seconds since 1970 */
} canvas_record;

/* Read all records of a file, in its order. CANVAS_BAD_INPUT: it is not a tuning log, to judge by
 * its first bytes; CANVAS_IO: it cannot be read. Damaged lines are ignored and counted. */
canvas_status canvas_log_read(canvas_context *ctx, const char *path, canvas_log **out);
/* The records of several logs, each once, ordered by program, time, method, seed and trial. */
canvas_log *canvas_log_merge(const canvas_log *const *logs, int count);
void canvas_log_free(canvas_log *log);
int canvas_log_count(const canvas_log *log);
canvas_record canvas_log_record(const canvas_log *log, int record);
/* JSON of the record, with a line break */
char *canvas_log_line(const canvas_log *log, int record);
/* Number of damaged lines of the file, the first one from 1, and its error. */
int64_t canvas_log_damaged(const canvas_log *log, int64_t *line, const char **why);
/* Number of ignored records of an older version, which held edited programs without the edits, and
 * the line of the first. */
int64_t canvas_log_outdated(const canvas_log *log, int64_t *line);

/* Conditions on the origin of a record. */
typedef struct canvas_log_place {
  const canvas_machine *machine; /* machine of the record; name, cores and memory do not matter */
  const char *compiler;          /* canvas_compiler_name */
  int threads;                   /* number of threads of the measurement; 0: any */
  int winograd; /* 2 or 4: also allow the edit `winograd` with tiles up to that; 0: do not */
  /* ignore machine, compiler, processor and version of Canvas */
  bool anywhere;
  bool nameless; /* also allow an equal program of another name, as networks do */
} canvas_log_place;
/* Find the fastest usable record of the program that meets the conditions, neither failed nor
 * screened. If no search completed its finals, it is the fastest trial, however it was compiled. A
 * record of canvas_log_add_network replaces all that were measured before it. Records whose edits
 * or schedule do not fit the program are skipped. CANVAS_NONE: there is none, and the message states
 * what the log has. */
canvas_status canvas_log_best(canvas_context *ctx, const canvas_log *log,
                              const canvas_program *program, const canvas_log_place *place,
                              int *record);
/* Bind that record: *out owns its program, after the edits of the record, and its schedule.
 * Whatever the record contains, *out computes the program, except for the order of sums, products with
 * a proved reciprocal instead of quotients, and Winograd where the place allows it. Edits that
 * change values, and buffers of many times the memory of the program's tensors, are rejected. */
typedef struct canvas_log_taken {
  int record;
  int refused;   /* faster records that cannot be used */
  char why[512]; /* why the first of them cannot be used */
} canvas_log_taken;
canvas_status canvas_log_take(canvas_context *ctx, const canvas_log *log,
                              const canvas_program *program, const canvas_log_place *place,
                              canvas_bound **out, canvas_log_taken *taken);
/* Bind this record, as canvas_log_take does, with the program that it holds: for the machine of the
 * place, or for its own if the place has no machine, is `anywhere`, or is NULL (which allows no
 * Winograd). CANVAS_BAD_INPUT: it cannot be used. */
canvas_status canvas_log_bind(canvas_context *ctx, const canvas_log *log, int record,
                              const canvas_log_place *place, canvas_bound **out);

/* Append to a log, which is created if missing, that this schedule is faster in a network than the
 * best one of the log: a call took time->median seconds. `place`: compiler and threads.
 * CANVAS_BAD_INPUT: the file is not a tuning log. CANVAS_IO: it cannot be written, and is
 * unchanged. */
canvas_status canvas_log_add_network(canvas_context *ctx, const char *path,
                                     const canvas_bound *bound, const canvas_log_place *place,
                                     const canvas_verdict *time);

/* All records of one program and one number of threads. */
typedef struct canvas_log_task {
  char task[17];
  char name[128]; /* of the program */
  int threads;
  int trials;                  /* records measured outside a network */
  int failed[CANVAS_FAILURES]; /* trials by canvas_failure */
  int screened;                /* trials that did not fail but were screened */
  int best;                    /* index of the record of canvas_log_best; -1: none */
  int refused;                 /* records that would be the fastest but cannot be used */
  char why[256];               /* why the first of them cannot be used */
  int64_t first, last;         /* times of the first and the last record */
} canvas_log_task;
/* The tasks of a log in the order of their first records, *count of them; free them with
 * canvas_log_tasks_free. */
canvas_log_task *canvas_log_tasks(const canvas_log *log, const canvas_log_place *place, int *count);
void canvas_log_tasks_free(canvas_log_task *tasks);

/* ---- the command line ---------------------------------------------------------------------- */

/* Run the canvas command: argv[0] is the program's name, argv[argc] is not read. It prints to
 * stdout and stderr and returns the exit status: 0, 1 if there is no result, 2 for bad input or out
 * of memory. */
int canvas_main(int argc, char **argv);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
