/* Statements in C: lines of at most 100 columns if possible, braces only around more than one
 * statement. See print_c.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit/print_c.h"

static const struct code_statement *statement_at(const struct printer *p, int statement) {
  return &p->code->statements.data[statement];
}

static const struct code_variable *variable_at(const struct printer *p, int variable) {
  return &p->code->variables.data[variable];
}

/* ---- lines ---- */

enum { COLUMNS = 100 };

/* Where a long line is broken: at the blank with the fewest brackets around it, preferably after a
 * comma, the last such one in the second half. */
static size_t find_break(const char *text, size_t room) {
  size_t best = 0;
  int depth = 0, least = 1 << 30;
  for (size_t i = 1; i <= room; i++) {
    depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
    int rank = 2 * depth + (text[i - 1] != ',');
    if (text[i] != ' ' || (i < room / 2 && best)) continue;
    if (rank <= least || best < room / 2) {
      best = i;
      least = rank;
    }
  }
  return best;
}

void print_wrapped(const char *text, size_t length, int depth, struct buf *out) {
  size_t indent = 2 * (size_t)depth;
  for (;; indent = 2 * (size_t)depth + 4) {
    buf_pad(out, out->length, indent);
    size_t room = indent + 40 < COLUMNS ? COLUMNS - indent : 40;
    size_t cut = length > room ? find_break(text, room) : 0;
    if (!cut) break;
    buf_bytes(out, text, cut);
    buf_puts(out, "\n");
    text += cut + 1;
    length -= cut + 1;
  }
  buf_bytes(out, text, length);
}

/* Prints `text` as a line and empties it. */
static void put_line(struct buf *text, int depth, struct buf *out) {
  print_wrapped(text->text, text->length, depth, out);
  buf_puts(out, "\n");
  text->length = 0;
}

static void put_text(const char *text, int depth, struct buf *out) {
  print_wrapped(text, strlen(text), depth, out);
  buf_puts(out, "\n");
}

/* ---- declarations ---- */

/* = {0} of a vector, = 0.0f */
static void put_start(struct printer *p, int value, struct buf *out) {
  const struct code_expr *e = &p->code->exprs.data[value];
  buf_puts(out, " = ");
  const struct code_expr *of = e->op == CODE_BROADCAST ? &p->code->exprs.data[e->arg[0]] : NULL;
  if (of && of->op == PX_NUMBER && of->number == 0)
    buf_puts(out, "{0}");
  else
    print_expr(p, value, BOUND_NONE, out);
}

/* v16 acc_0 = {0}, acc_1 = {0}; of variables, _Alignas(64) float P[64]; of arrays */
static void put_declaration(struct printer *p, const struct code_statement *s, struct buf *out) {
  const struct code_variable *v = variable_at(p, s->variable);
  char type[16];
  if (v->storage == CODE_ARRAY) {
    buf_printf(out, "_Alignas(64) %s %s[%" PRId64 "];", print_type(p, v->type, type),
               p->name[s->variable], v->count);
    return;
  }
  buf_printf(out, "%s ", print_type(p, v->type, type));
  for (int64_t i = 0, declared = 0; i < v->count; i++) {
    if (s->unread >> i & 1) continue;
    buf_printf(out, "%s%s", declared++ ? ", " : "", p->name[s->variable]);
    if (v->count > 1) buf_printf(out, "_%" PRId64, i);
    if (s->value >= 0) put_start(p, s->value, out);
  }
  buf_puts(out, ";");
}

/* Clears the elements after a buffer's last row, which whole vectors load. Their values do not
 * matter, but a denormal number takes a hundred cycles per operation. `unless`: a condition under
 * which there is no buffer. */
static void put_rest(struct printer *p, int variable, const char *unless, int depth,
                     struct buf *out) {
  const struct code_variable *v = variable_at(p, variable);
  struct buf text = {0};
  if (v->count == v->written) return;
  buf_printf(&text, "for (%s i_ = %" PRId64 "; ", p->words->index, v->written);
  if (unless) buf_printf(&text, "!%s && ", unless);
  buf_printf(&text, "i_ < %" PRId64 "; i_++) %s[i_] = 0;", v->count, p->name[variable]);
  put_line(&text, depth, out);
  buf_free(&text);
}

/* ---- blocks ---- */

static int put_children(struct printer *p, int parent, int depth, struct buf *out);

/* A line and its body, in braces if that is more than one statement. */
static void put_under(struct printer *p, struct buf *head, int parent, int depth, struct buf *out) {
  struct buf body = {0};
  bool braces = put_children(p, parent, depth + 1, &body) > 1;
  print_wrapped(head->text, head->length, depth, out);
  buf_puts(out, braces ? " {\n" : "\n");
  buf_bytes(out, body.text, body.length);
  if (braces) put_text("}", depth, out);
  buf_free(&body);
}

static int put_if(struct printer *p, const struct code_statement *s, int at, int depth,
                  struct buf *out) {
  struct buf head = {0};
  buf_puts(&head, "if (");
  print_expr(p, s->condition, BOUND_NONE, &head);
  buf_puts(&head, s->other < 0 ? ")" : ") {");
  if (s->other < 0) {
    put_under(p, &head, at, depth, out);
  } else {
    put_line(&head, depth, out);
    put_children(p, at, depth + 1, out);
    put_text("} else {", depth, out);
    put_children(p, s->other, depth + 1, out);
    put_text("}", depth, out);
  }
  buf_free(&head);
  return s->other < 0 ? 1 : 2;
}

static int put_block(struct printer *p, int at, int depth, struct buf *out) {
  put_text("{", depth, out);
  put_children(p, at, depth + 1, out);
  put_text("}", depth, out);
  return 1;
}

/* ---- loops ---- */

static void put_pragma(struct printer *p, int loops, int depth, struct buf *out) {
  char text[64], collapse[32] = "";
  if (loops > 1) snprintf(collapse, sizeof collapse, " collapse(%d)", loops);
  snprintf(text, sizeof text, "PRAGMA(omp %sfor%s)", p->region ? "" : "parallel ", collapse);
  p->used |= HELP_PARALLEL;
  put_text(text, depth, out);
}

static void put_assignment(struct printer *p, const struct code_statement *s, struct buf *out);

/* The only statement of a loop that gathers a vector; NULL if the loop does anything else. */
static const struct code_statement *gathered(const struct printer *p,
                                             const struct code_statement *s) {
  const struct code_statement *only = s->first >= 0 ? statement_at(p, s->first) : NULL;
  if (!only || s->first != s->last || only->kind != CODE_ASSIGN) return NULL;
  const struct code_expr *to = &p->code->exprs.data[only->to];
  if (to->op != CODE_LANE) return NULL;
  return variable_at(p, p->code->exprs.data[to->arg[0]].variable)->reserved ? only : NULL;
}

/* If a loop sets the elements of a vector, gcc stores them one by one and waits to load the vector.
 */
static void put_lanes(struct printer *p, const struct code_statement *s, struct buf *head) {
  bool known =
      p->code->exprs.data[s->low].op == PX_INT && p->code->exprs.data[s->high].op == PX_INT;
  if (!known || !gathered(p, s)) return;
  p->used |= HELP_LANES_LOOP;
  buf_puts(head, "LANES ");
}

/* On one line, if there is room. */
static bool put_gather(struct printer *p, const struct code_statement *s, const struct buf *head,
                       int depth, struct buf *out) {
  const struct code_statement *only = gathered(p, s);
  if (!only) return false;
  struct buf line = {0};
  buf_printf(&line, "%s ", head->text);
  put_assignment(p, only, &line);
  bool fits = 2 * (size_t)depth + line.length <= COLUMNS;
  if (fits) put_line(&line, depth, out);
  buf_free(&line);
  return fits;
}

/* The expression has a remainder by a power of two n with n/2 < steps <= n. */
static bool wraps(const struct printer *p, int expr, int64_t steps) {
  if (expr < 0) return false;
  const struct code_expr *e = &p->code->exprs.data[expr];
  if (e->op == PX_MOD || e->op == CODE_FLOOR_MOD) {
    int64_t n = p->code->exprs.data[e->arg[1]].integer;
    if (!(n & (n - 1)) && n / 2 < steps && steps <= n) return true;
  }
  for (int i = 0; i < e->count && e->op == CODE_SUM; i++)
    if (wraps(p, p->code->terms.data[e->first + i].expr, steps)) return true;
  return wraps(p, e->arg[0], steps) || wraps(p, e->arg[1], steps) || wraps(p, e->arg[2], steps);
}

static bool any_wraps(const struct printer *p, int parent, int64_t steps) {
  for (int at = statement_at(p, parent)->first; at >= 0; at = statement_at(p, at)->next) {
    const struct code_statement *s = statement_at(p, at);
    bool has = s->kind == CODE_FOR       ? wraps(p, s->low, steps) || wraps(p, s->high, steps)
               : s->kind == CODE_IF      ? wraps(p, s->condition, steps)
               : s->kind == CODE_DECLARE ? wraps(p, s->value, steps)
               : s->kind == CODE_ASSIGN  ? wraps(p, s->to, steps) || wraps(p, s->value, steps)
                                         : false;
    if (has || any_wraps(p, at, steps)) return true;
    if (s->kind == CODE_IF && s->other >= 0 && any_wraps(p, s->other, steps)) return true;
  }
  return false;
}

/* A parallel loop, or one that is collapsed with it: no statement may precede it. */
static bool in_parallel(const struct printer *p, const struct code_statement *s) {
  int loops = 1;
  for (; s->kind == CODE_FOR && !s->parallel; s = statement_at(p, s->parent)) loops++;
  return s->kind == CODE_FOR && s->parallel >= loops;
}

/* The body of the innermost of the collapsed parallel loops. */
static bool last_in_parallel(const struct printer *p, const struct code_statement *s) {
  int loops = 1;
  for (; s->kind == CODE_FOR && !s->parallel; s = statement_at(p, s->parent)) loops++;
  return s->kind == CODE_FOR && s->parallel == loops;
}

/* X[i*3 % 32] in a loop of 17 to 32 constant steps: clang 14 vectorizes it as if i*3 were never
 * above 31. A parallel loop has no constant number of steps. */
static void put_scalar(struct printer *p, const struct code_statement *s, int at, int depth,
                       struct buf *out) {
  const struct code_expr *low = &p->code->exprs.data[s->low], *high = &p->code->exprs.data[s->high];
  if (low->op != PX_INT || high->op != PX_INT) return;
  if (!any_wraps(p, at, (high->integer - low->integer + s->step - 1) / s->step)) return;
  bool parallel = in_parallel(p, s);
  p->used |= parallel ? HELP_SCALAR_ALONE : HELP_SCALAR;
  put_text(parallel ? "SCALAR_ALONE" : "SCALAR", depth, out);
}

/* for (long i = 0; i < 8; i++) */
static int put_for(struct printer *p, const struct code_statement *s, int at, int depth,
                   struct buf *out) {
  const char *name = p->name[s->variable];
  bool narrow = variable_at(p, s->variable)->type.element == PROGRAM_I32;
  struct buf head = {0};
  if (s->parallel) {
    put_pragma(p, s->parallel, depth, out);
    if (p->region) p->loops_to_check = s->parallel;
  }
  put_scalar(p, s, at, depth, out);
  put_lanes(p, s, &head);
  buf_printf(&head, "for (%s %s = ", narrow ? p->words->narrow : p->words->index, name);
  print_expr(p, s->low, BOUND_NONE, &head);
  buf_printf(&head, "; %s < ", name);
  print_expr(p, s->high, BOUND_SUM, &head);
  buf_printf(&head, "; %s", name);
  if (s->step > 1)
    buf_printf(&head, " += %" PRId64 ")", s->step);
  else
    buf_puts(&head, "++)");
  if (!put_gather(p, s, &head, depth, out)) put_under(p, &head, at, depth, out);
  buf_free(&head);
  return 1;
}

/* ---- the heap ---- */

int64_t print_bytes_of(const struct code_variable *v) {
  static const int bytes[PROGRAM_DTYPES] = {4, 8, 2, 4};
  return (v->count * v->type.lanes * bytes[v->type.element] + 63) / 64 * 64;
}

/* float *P = aligned_alloc(64, 4096); `missing` is whether any of them is NULL */
static void put_allocations(struct printer *p, const struct code_statement *s, int depth,
                            struct buf *missing, struct buf *out) {
  struct buf text = {0};
  p->used |= HELP_HEAP;
  for (int i = 0; i < s->count; i++) {
    int variable = p->code->lists.data[s->first_list + i];
    const struct code_variable *v = variable_at(p, variable);
    char type[16];
    buf_printf(&text, "%s *%s = aligned_alloc(64, %" PRId64 ");", print_type(p, v->type, type),
               p->name[variable], print_bytes_of(v));
    put_line(&text, depth, out);
    buf_printf(missing, "%s!%s", i ? " || " : "", p->name[variable]);
  }
  buf_free(&text);
}

static void put_releases(struct printer *p, const struct code_statement *s, int depth,
                         struct buf *out) {
  struct buf text = {0};
  for (int i = 0; i < s->count; i++) {
    buf_printf(&text, "free(%s);", p->name[p->code->lists.data[s->first_list + i]]);
    put_line(&text, depth, out);
  }
  buf_free(&text);
}

/* The whole body, whose buffers are parameters. */
static void put_function_buffers(struct printer *p, const struct code_statement *s, int at,
                                 struct buf *out) {
  p->used |= HELP_HEAP;
  p->first_buffer = s->first_list;
  p->buffers = s->count;
  for (int i = 0; i < s->count; i++) { /* the frame names their types */
    char type[16];
    print_type(p, variable_at(p, p->code->lists.data[s->first_list + i])->type, type);
    put_rest(p, p->code->lists.data[s->first_list + i], NULL, 1, out);
  }
  put_children(p, at, 1, out);
}

/* Each thread allocates its buffers; one that cannot does no iteration, and the call fails. */
static void put_thread_buffers(struct printer *p, const struct code_statement *s, int at, int depth,
                               struct buf *out) {
  struct buf missing = {0}, text = {0};
  put_allocations(p, s, depth, &missing, out);
  buf_printf(&text, "failed = %s;", missing.text);
  put_line(&text, depth, out);
  for (int i = 0; i < s->count; i++)
    put_rest(p, p->code->lists.data[s->first_list + i], "failed", depth, out);
  put_children(p, at, depth, out);
  put_releases(p, s, depth, out);
  buf_free(&text);
  buf_free(&missing);
}

static int put_region(struct printer *p, int at, int depth, struct buf *out) {
  p->used |= HELP_PARALLEL;
  put_text("{", depth, out);
  put_text("int failed = 0;", depth + 1, out);
  put_text("PRAGMA(omp parallel reduction(| : failed))", depth + 1, out);
  put_text("{", depth + 1, out);
  p->region = true;
  put_children(p, at, depth + 2, out);
  p->region = false;
  put_text("}", depth + 1, out);
  put_text("if (failed) return 1;", depth + 1, out);
  put_text("}", depth, out);
  return 1;
}

/* ---- statements ---- */

static void put_assignment(struct printer *p, const struct code_statement *s, struct buf *out) {
  static const char *const how[] = {" = ", " += ", " *= "};
  print_target(p, s->to, out);
  buf_puts(out, how[s->how]);
  print_expr(p, s->value, s->how == CODE_MULTIPLY ? BOUND_SUM : BOUND_NONE, out);
  buf_puts(out, ";");
}

/* BF16_WRITE16(Y[i], x); of a vector that is stored as bf16; BF16_STORE16(Y[i], n, x); of the first
 * n lanes */
static void put_bf16_vector(struct printer *p, const struct code_statement *s, struct buf *out) {
  const struct code_expr *to = &p->code->exprs.data[s->to];
  const struct code_expr *value = &p->code->exprs.data[s->value];
  bool part = to->arg[1] >= 0;
  print_used_vector(p, part ? VECTOR_BF16_STORE : VECTOR_BF16_WRITE, to->type);
  p->used |= HELP_BF16_WRITE;
  buf_printf(out, "BF16_%s%d(", part ? "STORE" : "WRITE", to->type.lanes);
  print_part(p, to, out);
  buf_puts(out, ", ");
  print_expr(p, value->arg[0], BOUND_NONE, out);
  buf_puts(out, ");");
}

/* STORE_V16(Y[i], n, x); STORE_V16(Y[i], n, LOAD_V16(Y[i], n) + x); */
static void put_part(struct printer *p, const struct code_statement *s, struct buf *out) {
  static const char *const how[] = {"", " + ", " * "};
  const struct code_expr *to = &p->code->exprs.data[s->to];
  print_used_vector(p, VECTOR_STORE, to->type);
  buf_printf(out, "STORE_%c%d(", to->type.element == PROGRAM_F64 ? 'D' : 'V', to->type.lanes);
  print_part(p, to, out);
  buf_puts(out, ", ");
  if (s->how != CODE_SET) print_expr(p, s->to, BOUND_SUM, out);
  buf_puts(out, how[s->how]);
  print_expr(p, s->value,
             s->how == CODE_SET   ? BOUND_NONE
             : s->how == CODE_ADD ? BOUND_SUM + 1
                                  : BOUND_TIGHT,
             out);
  buf_puts(out, ");");
}

/* Whether it stores a whole vector of an output past the caches. */
static bool is_streamed(const struct printer *p, const struct code_statement *s) {
  const struct code_expr *to = &p->code->exprs.data[s->to];
  if (to->op != CODE_VECTOR || to->arg[1] >= 0 || s->how != CODE_SET) return false;
  const struct code_expr *first = &p->code->exprs.data[to->arg[0]];
  if (first->op != CODE_ELEMENT || !variable_at(p, first->variable)->streamed) return false;
  bool wide = to->type.element == PROGRAM_F64;
  int bytes = to->type.lanes * (wide ? 8 : 4);
  return (wide || to->type.element == PROGRAM_F32) && bytes >= 16 && bytes <= 64;
}

/* STREAM_V16(Y[i], x); */
static void put_stream(struct printer *p, const struct code_statement *s, struct buf *out) {
  const struct code_expr *to = &p->code->exprs.data[s->to];
  print_used_vector(p, VECTOR_STREAM, to->type);
  p->used |= HELP_STREAMED;
  buf_printf(out, "STREAM_%c%d(", to->type.element == PROGRAM_F64 ? 'D' : 'V', to->type.lanes);
  print_part(p, to, out);
  buf_puts(out, ", ");
  print_expr(p, s->value, BOUND_NONE, out);
  buf_puts(out, ");");
}

static void put_prefetch(struct printer *p, const struct code_statement *s, struct buf *out) {
  buf_puts(out, "__builtin_prefetch(&");
  print_expr(p, s->to, BOUND_NONE, out);
  buf_puts(out, ");");
}

static int put_simple(struct printer *p, const struct code_statement *s, int depth,
                      struct buf *out) {
  struct buf text = {0};
  if (s->kind == CODE_DECLARE)
    put_declaration(p, s, &text);
  else if (s->kind == CODE_PREFETCH)
    put_prefetch(p, s, &text);
  else if (p->code->exprs.data[s->to].op == CODE_VECTOR &&
           p->code->exprs.data[s->to].type.element == PROGRAM_BF16)
    put_bf16_vector(p, s, &text);
  else if (p->code->exprs.data[s->to].op == CODE_VECTOR && p->code->exprs.data[s->to].arg[1] >= 0)
    put_part(p, s, &text);
  else if (is_streamed(p, s))
    put_stream(p, s, &text);
  else
    put_assignment(p, s, &text);
  put_line(&text, depth, out);
  buf_free(&text);
  if (s->kind == CODE_DECLARE) put_rest(p, s->variable, NULL, depth, out);
  return 1;
}

/* How many statements were printed. */
static int put_statement(struct printer *p, int at, int depth, struct buf *out) {
  const struct code_statement *s = statement_at(p, at);
  switch (s->kind) {
    case CODE_BLOCK: return put_block(p, at, depth, out);
    case CODE_FOR: return put_for(p, s, at, depth, out);
    case CODE_IF: return put_if(p, s, at, depth, out);
    case CODE_ALLOCATE:
      if (p->region)
        put_thread_buffers(p, s, at, depth, out);
      else
        put_function_buffers(p, s, at, out);
      return 2;
    case CODE_REGION: return put_region(p, at, depth, out);
    default: return put_simple(p, s, depth, out);
  }
}

static int put_children(struct printer *p, int parent, int depth, struct buf *out) {
  int statements = 0;
  if (statement_at(p, parent)->kind == CODE_FOR && p->loops_to_check && --p->loops_to_check == 0) {
    put_text("if (failed) continue;", depth, out);
    statements++;
  }
  for (int i = statement_at(p, parent)->first; i >= 0; i = statement_at(p, i)->next) {
    if (out->length > EMIT_BYTES) break; /* also in the enclosing statements; reported at the end */
    statements += put_statement(p, i, depth, out);
    if (!print_sums_end(p, i)) continue;
    p->used |= HELP_SUMS_END;
    put_text("SUMS_END();", depth, out);
    statements++;
  }
  if (p->streams && last_in_parallel(p, statement_at(p, parent))) {
    p->used |= HELP_STREAMED;
    put_text("STREAMED();", depth, out);
    statements++;
  }
  return statements;
}

/* ---- a function ---- */

void print_open(struct printer *p, const char *function, const char *const *suffixes) {
  int count = p->code->variables.count;
  p->name = arena_alloc(&p->names.arena, (size_t)count * sizeof *p->name + 1);
  p->read = arena_alloc(&p->names.arena, (size_t)count * sizeof *p->read + 1);
  p->function = names_choose(&p->names, function, true);
  for (; *suffixes; suffixes++) names_add(&p->names, p->function, *suffixes);
  for (int i = 0; i < count; i++) {
    const struct code_variable *v = variable_at(p, i);
    p->name[i] = v->reserved ? v->name : names_choose(&p->names, v->name, false);
    p->streams |= v->streamed;
  }
}

void print_close(struct printer *p) {
  buf_free(&p->out);
  names_free(&p->names);
}

canvas_status print_body(struct printer *p) {
  put_children(p, 0, 1, &p->out);
  if (p->used & HELP_STREAMED) put_text("STREAMED();", 1, &p->out);
  put_text("return 0;", 1, &p->out);
  if (p->out.length <= EMIT_BYTES) return CANVAS_OK;
  return fail(p->ctx, CANVAS_BAD_INPUT, "the C text is longer than %d MiB, unroll less",
              EMIT_BYTES >> 20);
}
