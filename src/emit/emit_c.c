/* C: the words of the language, what a text needs defined before it, and its frame. See emit_base.h.
 *
 * The C is C11 with the vector types of gcc and clang; a vector's loads and stores are of a type
 * that may stand anywhere (aligned as its elements, aliasing them). Helpers on vectors are macros:
 * a function would pass them by an ABI that depends on the machine.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "emit/emit_base.h"

static const struct spelling c_words = {
    .index = "long",
    .type = {"float", "double", "uint16_t", "int32_t"},
    .operation = c_operations,
    .infinity = "INFINITY",
    .nan = "NAN",
};

/* ---- the prelude ---- */

/* A file may hold several such texts, one after the other: a macro and a type may be defined again as
 * they were. The names that end with _ are no user's (emit_names.c). */
static const struct {
  unsigned when; /* any of these is used */
  const char *text;
} helpers[] = {
    {HELP_PARALLEL,
     "#ifdef _OPENMP\n#define PRAGMA(text) _Pragma(#text)\n#else\n#define PRAGMA(text)\n#endif\n"},
    {HELP_MAX_F32 | HELP_MIN_F32 | HELP_MAX_F64 | HELP_MIN_F64, "/* nan if either is */\n"},
    {HELP_MAX_F32,
     "#define MAX_F32(x, y) ({ float x_ = (x), y_ = (y); y_ > x_ || y_ != y_ ? y_ : x_; })\n"},
    {HELP_MAX_F64,
     "#define MAX_F64(x, y) ({ double x_ = (x), y_ = (y); y_ > x_ || y_ != y_ ? y_ : x_; })\n"},
    {HELP_MIN_F32,
     "#define MIN_F32(x, y) ({ float x_ = (x), y_ = (y); y_ < x_ || y_ != y_ ? y_ : x_; })\n"},
    {HELP_MIN_F64,
     "#define MIN_F64(x, y) ({ double x_ = (x), y_ = (y); y_ < x_ || y_ != y_ ? y_ : x_; })\n"},
    {HELP_FLOOR_DIV | HELP_FLOOR_MOD, "/* of a positive number: towards minus infinity */\n"},
    {HELP_FLOOR_DIV, "#define FLOOR_DIV(i, n) ({ long i_ = (i); i_ / (n) - (i_ % (n) < 0); })\n"},
    {HELP_FLOOR_MOD,
     "#define FLOOR_MOD(i, n) ({ long i_ = (i) % (n); i_ < 0 ? i_ + (n) : i_; })\n"},
    {HELP_LEAST_OF, "#define LEAST_OF(i, j) ({ long i_ = (i), j_ = (j); i_ < j_ ? i_ : j_; })\n"},
    {HELP_MOST_OF, "#define MOST_OF(i, j) ({ long i_ = (i), j_ = (j); i_ > j_ ? i_ : j_; })\n"},
    {HELP_BF16_READ | HELP_BF16_WRITE | HELP_BF16_ROUND,
     "/* bf16 is the upper half of fp32, rounded to nearest, ties to even; nan stays nan */\n"},
    {HELP_BF16_READ | HELP_BF16_ROUND,
     "#define BF16_READ(half) \\\n"
     "  ({ union { uint32_t bits; float value; } x_ = {.bits = (uint32_t)(half) << 16}; x_.value; "
     "})\n"},
    {HELP_BF16_WRITE | HELP_BF16_ROUND,
     "#define BF16_WRITE(x) \\\n"
     "  ({ \\\n"
     "    union { uint32_t bits; float value; } x_ = {.value = (x)}; \\\n"
     "    (uint16_t)(x_.value != x_.value ? x_.bits >> 16 | 64 \\\n"
     "                                    : (x_.bits + 0x7fff + (x_.bits >> 16 & 1)) >> 16); \\\n"
     "  })\n"},
    {HELP_BF16_ROUND, "#define BF16_ROUND(x) BF16_READ(BF16_WRITE(x))\n"},
};

static const char *letters(bool wide, bool mask) {
  return mask ? (wide ? "n" : "m") : wide ? "d" : "v";
}

/* typedef float v16, its masks, its unaligned form V16(place) */
static void put_type(const struct emitter *e, bool wide, int lanes, struct buf *out) {
  int bytes = lanes * (wide ? 8 : 4), masked = 0;
  const char *v = letters(wide, false), *type = e->words->type[wide ? PROGRAM_F64 : PROGRAM_F32];
  const int mask_users[] = {VECTOR_PICK, VECTOR_BF16_READ, VECTOR_BF16_WRITE + 1 + PX_MAX,
                            VECTOR_BF16_WRITE + 1 + PX_MIN};
  for (int i = 0; i < 4; i++) masked |= e->used_vectors[mask_users[i]][wide] >> (lanes - 1) & 1;
  buf_printf(out, "typedef %s %s%d __attribute__((vector_size(%d)));\n", type, v, lanes, bytes);
  if (masked)
    buf_printf(out, "typedef %s %s%d __attribute__((vector_size(%d)));\n",
               wide ? "int64_t" : "int32_t", letters(wide, true), lanes, bytes);
  buf_printf(out,
             "typedef %s %s%d_anywhere __attribute__((vector_size(%d), aligned(%d), may_alias));\n",
             type, v, lanes, bytes, wide ? 8 : 4);
  buf_printf(out, "#define %c%d(place) (*(%s%d_anywhere *)&(place))\n", wide ? 'D' : 'V', lanes, v,
             lanes);
}

static void put_lane_function(const struct emitter *e, enum px_op op, bool wide, int lanes,
                              struct buf *out) {
  const char *v = letters(wide, false), *name = scalar_ops[op].name;
  bool two = scalar_ops[op].arity == 2;
  buf_printf(out, "#define %s_%c%d(x%s) \\\n  ({ \\\n    %s%d x_ = (x)%s; \\\n", name,
             wide ? 'D' : 'V', lanes, two ? ", y" : "", v, lanes, two ? ", y_ = (y)" : "");
  buf_printf(out,
             "    for (int i_ = 0; i_ < %d; i_++) x_[i_] = %s(x_[i_]%s); \\\n    x_; \\\n  })\n",
             lanes, e->words->operation[op][wide], two ? ", y_[i_]" : "");
}

static void put_vector_helper(const struct emitter *e, int helper, bool wide, int lanes,
                              struct buf *out) {
  const char *v = letters(wide, false), *m = letters(wide, true);
  char V = wide ? 'D' : 'V';
  switch (helper) {
    case VECTOR_ALL:
      buf_printf(out, "#define ALL_%c%d(x) ((x) - (%s%d){0})\n", V, lanes, v, lanes);
      return;
    case VECTOR_PICK:
      buf_printf(out,
                 "#define PICK_%c%d(mask, x, y) \\\n  ({ \\\n    %s%d mask_ = (mask); \\\n"
                 "    (%s%d)((mask_ & (%s%d)(x)) | (~mask_ & (%s%d)(y))); \\\n  })\n",
                 V, lanes, m, lanes, v, lanes, m, lanes, m, lanes);
      return;
    case VECTOR_BF16_READ:
      buf_printf(
          out,
          "#define BF16_READ%d(place) \\\n  ({ \\\n    const uint16_t *from_ = &(place); \\\n"
          "    m%d bits_; \\\n"
          "    for (int i_ = 0; i_ < %d; i_++) bits_[i_] = (int32_t)((uint32_t)from_[i_] << "
          "16); \\\n    (v%d)bits_; \\\n  })\n",
          lanes, lanes, lanes, lanes);
      return;
    case VECTOR_BF16_WRITE:
      buf_printf(out,
                 "#define BF16_WRITE%d(place, x) \\\n  do { \\\n    uint16_t *to_ = &(place); \\\n"
                 "    v%d from_ = (x); \\\n"
                 "    for (int i_ = 0; i_ < %d; i_++) to_[i_] = BF16_WRITE(from_[i_]); \\\n"
                 "  } while (0)\n",
                 lanes, lanes, lanes);
      return;
    case VECTOR_BF16_WRITE + 1 + PX_MAX:
    case VECTOR_BF16_WRITE + 1 + PX_MIN:
      buf_printf(out,
                 "#define %s_%c%d(x, y) \\\n  ({ \\\n    %s%d x_ = (x), y_ = (y); \\\n"
                 "    %s%d take_ = (y_ %c x_) | (y_ != y_); \\\n"
                 "    (%s%d)((take_ & (%s%d)y_) | (~take_ & (%s%d)x_)); \\\n  })\n",
                 helper == VECTOR_BF16_WRITE + 1 + PX_MAX ? "MAX" : "MIN", V, lanes, v, lanes, m,
                 lanes, helper == VECTOR_BF16_WRITE + 1 + PX_MAX ? '>' : '<', v, lanes, m, lanes, m,
                 lanes);
      return;
    default: put_lane_function(e, (enum px_op)(helper - VECTOR_BF16_WRITE - 1), wide, lanes, out);
  }
}

static void put_vectors(const struct emitter *e, struct buf *out) {
  for (int helper = 0; helper < VECTOR_HELPERS; helper++)
    for (int wide = 0; wide < 2; wide++)
      for (int lanes = 2; lanes <= MOST_LANES; lanes *= 2) {
        if (!(e->used_vectors[helper][wide] >> (lanes - 1) & 1)) continue;
        if (helper == VECTOR_TYPE)
          put_type(e, wide, lanes, out);
        else
          put_vector_helper(e, helper, wide, lanes, out);
      }
}

static bool needs_stdint(const struct emitter *e) {
  for (int i = 0; i < e->program->tensors.count; i++)
    if (e->program->tensors.data[i].dtype >= PROGRAM_BF16) return true;
  for (int wide = 0; wide < 2; wide++)
    if (e->used_vectors[VECTOR_PICK][wide] | e->used_vectors[VECTOR_BF16_WRITE + 1 + PX_MAX][wide] |
        e->used_vectors[VECTOR_BF16_WRITE + 1 + PX_MIN][wide])
      return true;
  return false;
}

static void put_includes(const struct emitter *e, struct buf *out) {
  if (e->used & HELP_MATH) buf_puts(out, "#include <math.h>\n");
  if (needs_stdint(e)) buf_puts(out, "#include <stdint.h>\n");
  if (e->used & HELP_HEAP) buf_puts(out, "#include <stdlib.h>\n");
  buf_puts(out, "\n");
}

static void put_prelude(const struct emitter *e, struct buf *out) {
  put_includes(e, out);
  size_t before = out->length;
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
    if (e->used & helpers[i].when) buf_puts(out, helpers[i].text);
  put_vectors(e, out);
  if (out->length > before) buf_puts(out, "\n");
}

/* ---- the frame ---- */

/* Foreign text within a comment. */
static void put_comment(const char *text, struct buf *out) {
  for (const char *at = text; *at;) {
    size_t length = strcspn(at, "\n");
    buf_puts(out, length ? " * " : " *");
    for (size_t i = 0; i < length; i++) {
      char c = at[i] < 32 || at[i] > 126 ? '?' : at[i];
      buf_bytes(out, &c, 1);
      bool mark = (c == '*' && at[i + 1] == '/') || (c == '/' && at[i + 1] == '*');
      if (mark) buf_puts(out, " ");
    }
    buf_puts(out, "\n");
    at += length + (at[length] == '\n');
  }
}

static void put_head(const struct emitter *e, const struct emit_options *options, struct buf *out) {
  struct buf text = {0};
  buf_printf(out, "/* %s, written by canvas %s", e->function, canvas_version());
  buf_puts(out, options && options->source ? " from\n *\n" : ".\n *\n");
  if (options && options->source) {
    put_comment(options->source, out);
    buf_puts(out, " *\n");
  }
  program_print(e->program, &text);
  put_comment(text.text, out);
  buf_free(&text);
  buf_puts(out, " *\n");
  schedule_print(e->schedule, &text);
  put_comment(text.text, out);
  buf_free(&text);
  buf_puts(out, " */\n");
}

void emit_c_parameters(const struct emitter *e, const char *restricted, struct buf *out) {
  const struct program *p = e->program;
  for (int i = 0; i < p->inputs.count + p->outputs.count; i++) {
    bool input = i < p->inputs.count;
    int tensor = input ? p->inputs.data[i] : p->outputs.data[i - p->inputs.count];
    buf_printf(out, "%s%s%s *%s%s", i ? ", " : "", input ? "const " : "",
               e->words->type[p->tensors.data[tensor].dtype], restricted, e->tensor_name[tensor]);
  }
}

/* int conv(const float *restrict X, float *restrict Y) {, broken like other lines */
static void put_function(const struct emitter *e, struct buf *out) {
  struct buf text = {0};
  buf_printf(&text, "int %s(", e->function);
  emit_c_parameters(e, "restrict ", &text);
  buf_puts(&text, ") {");
  emit_wrapped(text.text, text.length, 0, out);
  buf_puts(out, "\n");
  buf_free(&text);
}

/* (void)X; for inputs that no output needs */
static void put_unused(const struct emitter *e, struct buf *out) {
  for (int i = 0; i < e->program->inputs.count; i++) {
    int tensor = e->program->inputs.data[i];
    if (!e->loaded[tensor]) buf_printf(out, "  (void)%s;\n", e->tensor_name[tensor]);
  }
}

static canvas_status check(canvas_context *ctx, const struct emitter *e) {
  if (e->px->failed)
    return fail(ctx, CANVAS_BAD_INPUT, "an expression is too long once loops stand in it: %.200s",
                e->px->error);
  if (e->out.length > EMIT_BYTES)
    return fail(ctx, CANVAS_BAD_INPUT, "the C text is longer than %d MiB, unroll less",
                EMIT_BYTES >> 20);
  return CANVAS_OK;
}

canvas_status emit_c_open(canvas_context *ctx, struct emitter *e, const struct loop_tree *tree,
                          const struct emit_options *options) {
  if (tree->open)
    return fail(ctx, CANVAS_BAD_INPUT,
                "the schedule has %d holes without a number, give them with --set", tree->open);
  *e = (struct emitter){.ctx = ctx,
                        .tree = tree,
                        .program = tree->program,
                        .schedule = tree->schedule,
                        .words = &c_words,
                        .lane = -1,
                        .lanes = 1};
  loop_space_open(&e->space, tree);
  e->px = e->space.p;
  e->digit = e->space.digit;
  emit_plan(e, options && options->function ? options->function : tree->program->name);
  return CANVAS_OK;
}

void emit_c_close(struct emitter *e) {
  loop_space_close(&e->space);
  arena_free(&e->arena);
  free(e->names.data);
  free(e->known.data);
  buf_free(&e->before);
  buf_free(&e->out);
}

canvas_status emit_c(canvas_context *ctx, const struct loop_tree *tree,
                     const struct emit_options *options, struct buf *out) {
  struct emitter e;
  TRY(emit_c_open(ctx, &e, tree, options));
  emit_walk(&e);
  canvas_status status = check(ctx, &e);
  if (status == CANVAS_OK) {
    put_head(&e, options, out);
    put_prelude(&e, out);
    put_function(&e, out);
    put_unused(&e, out);
    buf_bytes(out, e.out.text, e.out.length);
    buf_puts(out, "}\n");
  }
  emit_c_close(&e);
  return status;
}
