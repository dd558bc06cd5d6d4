/* C from a tree of code (code/code.h): what the files of the printer share.
 *
 *     print_c.c        statements and lines
 *     print_c_sums.c   where the sums of a tile end
 *     print_c_value.c  expressions
 *     emit_operations.c  the operations of expressions in C
 *     emit_names.c     names that are free in C
 *     emit_c.c         the words of C, the helpers that a text needs before it, the frame
 *     emit_workspace.c the frame of a function with buffers
 *
 * A printer of another language of the family is another table of words and another frame.
 */
#ifndef CANVAS_EMIT_PRINT_C_H
#define CANVAS_EMIT_PRINT_C_H

#include "code/code.h"
#include "emit/emit.h"
#include "program/scalar_ops.h"

#define EMIT_BYTES (32 << 20) /* longest text of a function */

extern const char *const c_operations[PX_OPS][2]; /* emit_operations.c: {"expf", "exp"} */

/* The words of a target. Functions and types exist for fp32 and for fp64. */
struct spelling {
  const char *index;                 /* type of loops */
  const char *narrow;                /* type of loops that count lanes */
  const char *type[PROGRAM_DTYPES];  /* of elements in memory */
  const char *const (*operation)[2]; /* by enum px_op: expf, exp */
  const char *infinity, *nan;
};

/* Helpers that the text needs defined before it. */
enum helper {
  HELP_MAX_F32 = 1 << 0,
  HELP_MAX_F64 = 1 << 1,
  HELP_MIN_F32 = 1 << 2,
  HELP_MIN_F64 = 1 << 3,
  HELP_FLOOR_DIV = 1 << 4,
  HELP_FLOOR_MOD = 1 << 5,
  HELP_LEAST_OF = 1 << 6,
  HELP_MOST_OF = 1 << 7,
  HELP_BF16_READ = 1 << 8,
  HELP_BF16_WRITE = 1 << 9,
  HELP_BF16_ROUND = 1 << 10,
  HELP_MATH = 1 << 11,
  HELP_HEAP = 1 << 12,
  HELP_PARALLEL = 1 << 13,
  HELP_CLAMP_F32 = 1 << 14,
  HELP_SCALAR = 1 << 15,
  HELP_SCALAR_ALONE = 1 << 16,
  HELP_STREAMED = 1 << 17,
  HELP_LANES_LOOP = 1 << 18,
  HELP_SUMS_END = 1 << 19
};

/* Vector helpers. LOAD and STORE take the first lanes, SOME the lanes from one to another, STREAM
 * stores past the caches, ZIP is a step of a transposition. */
enum vector_helper {
  VECTOR_TYPE,
  VECTOR_ALL,
  VECTOR_PICK,
  VECTOR_PERMUTE,
  VECTOR_PERMUTE_TWO,
  VECTOR_ZIP, /* enum code_zip */
  VECTOR_LOAD = VECTOR_ZIP + CODE_ZIPS,
  VECTOR_SOME,
  VECTOR_STORE,
  VECTOR_STREAM,
  VECTOR_BF16_LOAD,
  VECTOR_BF16_STORE,
  VECTOR_BF16_READ,
  VECTOR_BF16_WRITE
};
enum {
  VECTOR_LANES = VECTOR_BF16_WRITE + 1 + PX_OPS, /* after those of enum px_op: CODE_LANES_ADD .. */
  VECTOR_HELPERS = VECTOR_LANES + 4
};

/* Names that are taken. */
struct names {
  struct arena arena;
  VEC(const char *);
};

struct printer {
  canvas_context *ctx;
  const struct code *code;
  const struct spelling *words;
  struct names names;
  const char *function;
  const char **name; /* by variable */
  bool *read;        /* by variable */
  struct buf out;    /* the function's body */
  int first_buffer;  /* in code->lists: the buffers of the function, which are parameters of
                        NAME_body */
  int buffers;
  bool streams;       /* an output is stored past the caches */
  bool region;        /* inside a parallel region, whose threads share a loop */
  int loops_to_check; /* loops to go until the body that checks its thread's memory; 0: none */
  unsigned used;      /* enum helper */
  uint64_t used_vectors[VECTOR_HELPERS][2];
};

/* emit_c.c */
const char *c_type_name(enum program_dtype dtype); /* of elements in memory */

/* emit_workspace.c */
extern const char *const workspace_suffixes[]; /* of the functions that it adds; ends with NULL */
int64_t workspace_bytes(const struct code *c); /* 0: the function has no such buffers */
void workspace_print_buffers(struct printer *p, struct buf *out); /* parameters of NAME_body */
/* Where the memory of the buffers comes from. */
enum workspace {
  WORKSPACE_KEPT,  /* allocated once and kept for the next call */
  WORKSPACE_ONCE,  /* allocated in each call, of a function that is rarely called */
  WORKSPACE_GIVEN, /* given by the caller as the last parameter */
};
/* The functions around NAME_body, of these parameters, names given after `arguments`; `linkage`,
 * say "static ", before that of the name. */
void workspace_print(struct printer *p, const char *parameters, const char *arguments,
                     enum workspace from, const char *linkage, struct buf *out);

/* emit_names.c. Freed with names_free. */
const char *names_choose(struct names *names, const char *hint, bool global);
void names_add(struct names *names, const char *name, const char *suffix); /* reserves the name */
void names_free(struct names *names);

/* print_c.c */
/* Chooses the names; the function's with one of the suffixes (NULL behind the last) is kept free.
 */
void print_open(struct printer *p, const char *function, const char *const *suffixes);
int64_t print_bytes_of(const struct code_variable *v); /* that is allocated: a multiple of 64 */
canvas_status print_body(struct printer *p);           /* into p->out */
bool print_sums_end(const struct printer *p, int statement); /* print_c_sums.c: right behind it */
void print_close(struct printer *p);
void print_wrapped(const char *text, size_t length, int depth, struct buf *out);

/* print_c_value.c */
extern const char *const lanes_words[4]; /* by CODE_LANES_ADD ..: SUM_OF_V16(x) */
enum { BOUND_NONE, BOUND_SUM, BOUND_PRODUCT, BOUND_TIGHT }; /* how firmly an operand is bound */
void print_expr(struct printer *p, int expr, int bound, struct buf *out);
void print_target(struct printer *p, int expr, struct buf *out); /* left of an assignment */
void print_part(struct printer *p, const struct code_expr *vector,
                struct buf *out); /* place, lanes */
const char *print_type(struct printer *p, struct code_type type, char name[16]);
void print_used_vector(struct printer *p, int helper, struct code_type type);
extern const char *const print_zips[CODE_ZIPS]; /* names of macros */

#endif
