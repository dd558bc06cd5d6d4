/* See program_edit.h. An edit is read, and the program built anew tensor by tensor: what it does not
 * concern is copied as it stands, loads go through load_edited. */
#include "program/program_edit.h"

#include <stdlib.h>
#include <string.h>

#include "program/program_layout.h"

enum edit_kind { EDIT_CACHE_WRITE, EDIT_CACHE_READ, EDIT_PACK, EDIT_INLINE, EDIT_TYPE };

struct edit {
  struct lexer lx;
  enum edit_kind kind;
  const struct program *from;
  struct program *to;
  int tensor;              /* of `from`: what is edited */
  int reader;              /* EDIT_CACHE_READ: the stage that reads the copy */
  const char *name;        /* of the new stage */
  enum program_dtype type; /* EDIT_TYPE */
  struct layout layout;    /* EDIT_PACK */
  int *number;             /* the tensors of `to` that stand for those of `from` */
  int fresh;               /* the new stage, -1 until there is one */
  bool edits;              /* loads of `tensor` in the stage that is copied now are others */
};

/* ---- what programs hold -------------------------------------------------------------------- */

static bool expr_loads(const struct program *p, int expr, int tensor) {
  const struct px_node *n = &p->nodes.data[expr];
  for (int i = 0; i < 3; i++)
    if (n->arg[i] >= 0 && expr_loads(p, n->arg[i], tensor)) return true;
  if (n->op != PX_LOAD) return false;
  for (int i = 0; i < p->tensors.data[n->tensor].rank; i++)
    if (expr_loads(p, p->indices.data[n->first + i], tensor)) return true;
  return n->tensor == tensor;
}

/* Only i32 is loaded by bounds, and no edit is for i32. */
static bool stage_loads(const struct program *p, int stage, int tensor) {
  const struct program_tensor *t = &p->tensors.data[stage];
  return !t->is_input && expr_loads(p, t->body, tensor);
}

static bool is_output(const struct program *p, int tensor) {
  for (int i = 0; i < p->outputs.count; i++)
    if (p->outputs.data[i] == tensor) return true;
  return false;
}

/* ---- reading an edit ----------------------------------------------------------------------- */

static canvas_status read_tensor(struct edit *e, const char *wanted, int *tensor) {
  struct token t = e->lx.token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, wanted);
  char *name = mem_strndup(t.start, (size_t)t.length);
  *tensor = program_find(e->from, name);
  free(name);
  if (*tensor < 0)
    return lexer_fail(&e->lx, &t, "the program has no tensor '%.*s'", t.length < 40 ? t.length : 40,
                      t.start);
  lexer_next(&e->lx);
  return CANVAS_OK;
}

/* `as NAME` */
static canvas_status read_new_name(struct edit *e) {
  TRY(lexer_expect(&e->lx, "as", "and the name of the new stage"));
  struct token t = e->lx.token;
  if (t.kind != TOKEN_NAME) return lexer_unexpected(&e->lx, "the name of the new stage");
  char *name = arena_strndup(&e->to->arena, t.start, (size_t)t.length);
  if (program_find(e->from, name) >= 0)
    return lexer_fail(&e->lx, &t, "there is a '%.40s' already, choose another name", name);
  e->name = name;
  lexer_next(&e->lx);
  return CANVAS_OK;
}

static canvas_status refuse_indices(struct edit *e, const struct token *at) {
  const struct program_tensor *t = &e->from->tensors.data[e->tensor];
  if (t->dtype != PROGRAM_I32) return CANVAS_OK;
  return lexer_fail(&e->lx, at, "'%.40s' is of i32: only inputs hold indices, so it stays one",
                    t->name);
}

static canvas_status read_cache(struct edit *e) {
  struct token at = e->lx.token, in;
  TRY(read_tensor(e, "the tensor to cache", &e->tensor));
  TRY(refuse_indices(e, &at));
  const struct program_tensor *t = &e->from->tensors.data[e->tensor];
  if (lexer_accept(&e->lx, "in")) {
    e->kind = EDIT_CACHE_READ;
    in = e->lx.token;
    TRY(read_tensor(e, "the stage that reads it", &e->reader));
    if (!stage_loads(e->from, e->reader, e->tensor))
      return lexer_fail(&e->lx, &in, "'%.40s' does not load '%.40s'",
                        e->from->tensors.data[e->reader].name, t->name);
  } else if (t->is_input) {
    return lexer_fail(&e->lx, &at,
                      "'%.40s' is an input: say for which stage, 'cache %.40s in STAGE as NAME'",
                      t->name, t->name);
  }
  return read_new_name(e);
}

static canvas_status read_pack(struct edit *e) {
  struct token at = e->lx.token;
  e->kind = EDIT_PACK;
  TRY(read_tensor(e, "the tensor to pack", &e->tensor));
  TRY(refuse_indices(e, &at));
  bool read = false;
  for (int i = e->tensor; i < e->from->tensors.count && !read; i++)
    read = stage_loads(e->from, i, e->tensor);
  if (!read)
    return lexer_fail(&e->lx, &at, "no stage loads '%.40s', there is nothing to pack it for",
                      e->from->tensors.data[e->tensor].name);
  TRY(read_new_name(e));
  return layout_parse(&e->lx, e->from, e->tensor, &e->layout);
}

static canvas_status read_inline(struct edit *e) {
  struct token at = e->lx.token;
  e->kind = EDIT_INLINE;
  TRY(read_tensor(e, "the stage to inline", &e->tensor));
  const struct program_tensor *t = &e->from->tensors.data[e->tensor];
  const char *why = t->is_input                     ? "is an input, it has no expression"
                    : t->reductions                 ? "reduces: its sum has no place in another"
                    : t->dtype == PROGRAM_BF16      ? "is of bf16, which rounds where it is stored"
                    : is_output(e->from, e->tensor) ? "is an output, it has to be stored"
                                                    : NULL;
  if (why) return lexer_fail(&e->lx, &at, "'%.40s' %s", t->name, why);
  return CANVAS_OK;
}

static canvas_status read_type(struct edit *e) {
  struct token at = e->lx.token;
  e->kind = EDIT_TYPE;
  TRY(read_tensor(e, "the tensor whose type changes", &e->tensor));
  TRY(refuse_indices(e, &at));
  for (int i = 0; i < PROGRAM_I32; i++)
    if (lexer_accept(&e->lx, program_dtype_name((enum program_dtype)i))) {
      e->type = (enum program_dtype)i;
      return CANVAS_OK;
    }
  return lexer_unexpected(&e->lx, "f32, f64 or bf16");
}

static canvas_status read_edit(struct edit *e) {
  struct lexer *lx = &e->lx;
  if (lexer_accept(lx, "cache"))
    TRY(read_cache(e));
  else if (lexer_accept(lx, "pack"))
    TRY(read_pack(e));
  else if (lexer_accept(lx, "inline"))
    TRY(read_inline(e));
  else if (lexer_accept(lx, "type"))
    TRY(read_type(e));
  else
    return lexer_unexpected(lx, "an edit (cache, pack, inline or type)");
  lexer_skip_newlines(lx);
  if (lx->token.kind == TOKEN_END) return CANVAS_OK;
  return lexer_unexpected(lx, "the end of the edit");
}

/* ---- building the program anew ------------------------------------------------------------- */

/* A load of `from`, its indices copied already. */
static int load_edited(struct program *to, int tensor, int rank, const int *indices, void *data) {
  struct edit *e = data;
  int places[PROGRAM_AXES];
  if (tensor != e->tensor || !e->edits) return px_load(to, e->number[tensor], rank, indices);
  if (e->kind == EDIT_CACHE_READ) return px_load(to, e->fresh, rank, indices);
  if (e->kind == EDIT_PACK) {
    layout_place(&e->layout, to, indices, places);
    return px_load(to, e->fresh, e->layout.rank, places);
  }
  struct px_map map = {.axis = indices, .load = load_edited, .data = data};
  return px_copy(to, e->from, e->from->tensors.data[tensor].body, &map);
}

static int new_tensor(struct edit *e, const struct program_tensor *t, const char *name,
                      bool is_input, enum program_dtype dtype) {
  const char *names[PROGRAM_AXES];
  int64_t sizes[PROGRAM_AXES];
  for (int i = 0; i < t->rank; i++) {
    names[i] = t->axes[i].name;
    sizes[i] = t->axes[i].size;
  }
  if (!is_input) return program_stage(e->to, name, dtype, t->rank, names, sizes);
  int made = program_input(e->to, name, dtype, t->rank, names, sizes);
  if (dtype == PROGRAM_I32) program_input_range(e->to, made, t->least, t->most, t->rising);
  return made;
}

/* Tensor `tensor` of `from` under a name in `to`. */
static int copy_tensor(struct edit *e, int tensor, const char *name) {
  const struct program_tensor *t = &e->from->tensors.data[tensor];
  bool retyped = e->kind == EDIT_TYPE && tensor == e->tensor;
  int axis[PROGRAM_AXES], made = new_tensor(e, t, name, t->is_input, retyped ? e->type : t->dtype);
  struct px_map map = {.axis = axis, .load = load_edited, .data = e, .verbatim = true};
  if (t->is_input) return made;
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(e->to, made, i);
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    const struct program_axis *a = &t->axes[i];
    if (a->low < 0) {
      axis[i] = program_reduce(e->to, made, t->reducer, a->name, a->size);
      continue;
    }
    int low = px_copy(e->to, e->from, a->low, &map), high = px_copy(e->to, e->from, a->high, &map);
    axis[i] = program_reduce_range(e->to, made, t->reducer, a->name, low, high);
  }
  program_define(e->to, made, px_copy(e->to, e->from, t->body, &map));
  return made;
}

/* A stage like tensor `like` of `from` that copies `source`, a tensor of `to`. */
static int copying_stage(struct edit *e, int like, const char *name, int source) {
  const struct program_tensor *t = &e->from->tensors.data[like];
  int axis[PROGRAM_AXES], made = new_tensor(e, t, name, false, t->dtype);
  for (int i = 0; i < t->rank; i++) axis[i] = program_axis(e->to, made, i);
  program_define(e->to, made, px_load(e->to, source, t->rank, axis));
  return made;
}

static int packed_stage(struct edit *e) {
  const struct layout *l = &e->layout;
  const struct program_tensor *t = &e->from->tensors.data[e->tensor];
  int made = program_stage(e->to, e->name, t->dtype, l->rank, l->names, l->sizes);
  int axis[PROGRAM_AXES], indices[PROGRAM_AXES];
  for (int i = 0; i < l->rank; i++) axis[i] = program_axis(e->to, made, i);
  int inside = layout_element(l, e->to, axis, indices);
  int element = px_load(e->to, e->number[e->tensor], t->rank, indices);
  program_define(e->to, made, px_select(e->to, inside, element, px_number(e->to, 0)));
  return made;
}

/* What stands before tensor i of `from`: the copy that it will read. */
static void begin_tensor(struct edit *e, int i) {
  if (e->kind == EDIT_CACHE_READ && i == e->reader)
    e->fresh = copying_stage(e, e->tensor, e->name, e->number[e->tensor]);
  if (e->kind == EDIT_PACK && e->fresh < 0 && stage_loads(e->from, i, e->tensor))
    e->fresh = packed_stage(e);
  e->edits = e->kind == EDIT_INLINE || (e->kind == EDIT_PACK && e->fresh >= 0) ||
             (e->kind == EDIT_CACHE_READ && i == e->reader);
}

static void rebuild(struct edit *e) {
  for (int i = 0; i < e->from->tensors.count && !e->to->failed; i++) {
    const char *name = e->from->tensors.data[i].name;
    begin_tensor(e, i);
    if (e->kind == EDIT_INLINE && i == e->tensor) continue;
    if (e->kind == EDIT_CACHE_WRITE && i == e->tensor)
      e->number[i] = copying_stage(e, i, name, copy_tensor(e, i, e->name));
    else
      e->number[i] = copy_tensor(e, i, name);
  }
  for (int i = 0; i < e->from->outputs.count; i++)
    program_output(e->to, e->number[e->from->outputs.data[i]]);
}

canvas_status program_edit(canvas_context *ctx, const struct program *p, const char *text,
                           size_t length, struct program **out) {
  struct edit e = {.from = p, .to = program_new(p->name), .fresh = -1};
  *out = NULL;
  e.number = mem_alloc((size_t)p->tensors.count * sizeof *e.number);
  canvas_status status = lexer_open(&e.lx, ctx, text, length);
  if (status == CANVAS_OK) status = read_edit(&e);
  if (status == CANVAS_OK) rebuild(&e);
  if (status == CANVAS_OK) status = program_verify(ctx, e.to);
  layout_free(&e.layout);
  free(e.number);
  if (status == CANVAS_OK)
    *out = e.to;
  else
    program_free(e.to);
  return status;
}
