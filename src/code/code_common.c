/* Common subexpressions of indices get a name: sums and quotients that occur several times.
 *
 *     for k in 0..16                        for k in 0..16
 *       acc_0 += X[y*512 + k*8]         ->    let X_at index = y*512 + k*8
 *       acc_1 += X[y*512 + k*8 + 64]          acc_0 += X[X_at]
 *       acc_2 += X[y*512 + k*8 + 128]         acc_1 += X[X_at + 64]
 *                                             acc_2 += X[X_at + 128]
 *
 * A form is some of the terms of a sum without its constant, or a multiple of them (h + kh of h*14
 * + kh*14). It is named at the start of the innermost loop that counts one of its terms, the
 * outermost place where all of them are known. The gain of a name is u*(n - 1) - n for u uses and n
 * operands. The form with the largest gain is named first, of equal ones the first in the text,
 * until no form has a gain. Inner loops come first.
 *
 * Keeps: a name is computed in 64 bits and cannot overflow, by the ranges of its loops. It may be
 * computed where no use of it runs. A load from an input is therefore named only where one use runs
 * whenever the loop's body does. Results are the same without this pass.
 */
#include <stdlib.h>
#include <string.h>

#include "code/code_facts.h"

enum {
  FORM_TERMS = 16, /* limit of terms of a form; longer sums are unchanged */
  MOST_FORMS = 32, /* forms compared for common parts; later ones only get names of these */
  MOST_ATOMS = 64,
  MOST_NAMES = 64, /* names in one loop */
  UNKNOWN = 1 << 20
};

/* The sum of coef*atom over its terms. */
struct form {
  struct {
    int atom;
    int64_t coef;
  } term[FORM_TERMS];
  int count;
  int uses;
  int array;    /* the array whose elements it indexes; -1: several or none */
  bool certain; /* at least one use runs whenever the body does */
};

struct finder {
  struct code *c;
  struct facts facts; /* depths of counters and, within their loop, of names; else UNKNOWN */
  int loops;          /* depth of the current loop */
  int group;          /* loops that are still to be collapsed with the current one */
  int level;          /* depth of the loop whose names are chosen */
  bool certain;
  int array; /* the array whose index is visited; -1 */
  int atom[MOST_ATOMS], atoms;
  struct form form[MOST_FORMS];
  int forms;
  struct form best; /* the form that gets a name */
  int name;
};

static const struct code_expr *expr_at(const struct finder *f, int expr) {
  return &f->c->exprs.data[expr];
}

static struct code_statement *statement(const struct finder *f, int at) {
  return &f->c->statements.data[at];
}

/* ---- what is pure ---------------------------------------------------------------------------- */

static bool is_load(const struct finder *f, const struct code_expr *e) {
  return e->op == CODE_ELEMENT && e->type.element == PROGRAM_I32 &&
         f->c->variables.data[e->variable].storage == CODE_INPUT;
}

static int deepest(int a, int b) {
  return a > b ? a : b;
}

/* The depth of the innermost loop that an index depends on; UNKNOWN: it cannot be named. */
static int depth_of(const struct finder *f, int expr) {
  const struct code_expr *e = expr_at(f, expr = code_bare(f->c, expr));
  int depth = 0;
  if (e->op == PX_INT) return 0;
  if (e->op == CODE_VARIABLE) return f->facts.counters.data[e->variable].depth;
  if (e->op == CODE_SUM) {
    for (int i = 0; i < e->count; i++)
      depth = deepest(depth, depth_of(f, f->c->terms.data[e->first + i].expr));
    return depth;
  }
  if (is_load(f, e)) return depth_of(f, e->arg[0]);
  if (!code_is_index_operation(f->c, expr)) return UNKNOWN;
  return deepest(depth_of(f, e->arg[0]), depth_of(f, e->arg[1]));
}

static bool loads(const struct finder *f, int expr) {
  const struct code_expr *e = expr_at(f, code_bare(f->c, expr));
  if (e->op == CODE_ELEMENT) return true;
  for (int i = 0; i < e->count; i++)
    if (loads(f, f->c->terms.data[e->first + i].expr)) return true;
  return (e->arg[0] >= 0 && loads(f, e->arg[0])) || (e->arg[1] >= 0 && loads(f, e->arg[1]));
}

/* Number of operands: constants, variables and element loads. */
static int operands(const struct finder *f, int expr) {
  const struct code_expr *e = expr_at(f, code_bare(f->c, expr));
  int sum = e->op == CODE_SUM ? e->integer != 0 : e->op == CODE_ELEMENT;
  for (int i = 0; i < e->count; i++) sum += operands(f, f->c->terms.data[e->first + i].expr);
  for (int i = 0; i < 2; i++) sum += e->arg[i] >= 0 ? operands(f, e->arg[i]) : 0;
  return sum ? sum : 1;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static int atom_of(struct finder *f, int expr) {
  expr = code_bare(f->c, expr);
  for (int i = 0; i < f->atoms; i++)
    if (code_same(f->c, f->atom[i], expr)) return i;
  if (f->atoms == MOST_ATOMS) return -1;
  f->atom[f->atoms] = expr;
  return f->atoms++;
}

static int64_t divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}

/* Whether a term depends on the loop itself, so that no enclosing loop can name the form. */
static bool belongs_here(const struct finder *f, const struct form *a) {
  for (int i = 0; i < a->count; i++)
    if (depth_of(f, f->atom[a->term[i].atom]) == f->level) return true;
  return false;
}

static bool same_form(const struct form *a, const struct form *b) {
  if (a->count != b->count) return false;
  for (int i = 0; i < a->count; i++)
    if (a->term[i].atom != b->term[i].atom || a->term[i].coef != b->term[i].coef) return false;
  return true;
}

/* A form without terms; the term array stays uninitialised. */
static void make_empty(struct form *a) {
  a->count = a->uses = 0;
  a->array = -1;
  a->certain = false;
}

/* The terms of a sum that are known in this loop; false: they do not form a sum that belongs
 * here. */
static bool form_of(struct finder *f, const struct code_expr *e, struct form *a) {
  bool here = false;
  make_empty(a);
  for (int i = 0; i < e->count; i++) {
    const struct affine_term t = f->c->terms.data[e->first + i];
    int depth = depth_of(f, t.expr);
    if (depth > f->level) continue;
    int atom = atom_of(f, t.expr);
    if (atom < 0 || a->count == FORM_TERMS) return false;
    a->term[a->count].atom = atom;
    a->term[a->count++].coef = t.coef;
    here |= depth == f->level;
  }
  return here;
}

/* A form of one term, for an index that is no sum. */
static bool form_of_one(struct finder *f, int expr, struct form *a) {
  if (depth_of(f, expr) != f->level || operands(f, expr) < 2) return false;
  make_empty(a);
  a->count = 1;
  a->term[0].atom = atom_of(f, expr);
  a->term[0].coef = 1;
  return a->term[0].atom >= 0;
}

static void note(struct finder *f, struct form *a) {
  a->uses = 1;
  a->array = f->array;
  a->certain = f->certain;
  for (int i = 0; i < f->forms; i++) {
    struct form *b = &f->form[i];
    if (!same_form(a, b)) continue;
    b->uses++;
    b->certain |= a->certain;
    if (b->array != a->array) b->array = -1;
    return;
  }
  if (f->forms < MOST_FORMS) f->form[f->forms++] = *a;
}

/* ---- the forms of a loop --------------------------------------------------------------------- */

static void find_in_expr(struct finder *f, int expr, bool inside);

/* Visits operands. Terms of a sum are not forms of their own. */
static void find_below(struct finder *f, const struct code_expr *e, bool inside) {
  int array = f->array;
  bool certain = f->certain;
  f->array = e->op == CODE_ELEMENT ? e->variable : -1;
  for (int i = 0; i < e->count; i++) find_in_expr(f, f->c->terms.data[e->first + i].expr, true);
  for (int i = 0; i < 3; i++) {
    find_in_expr(f, e->arg[i], inside);
    if (e->op == PX_SELECT || e->op == PX_AND || e->op == PX_OR) f->certain = false;
  }
  f->array = array;
  f->certain = certain;
}

static void find_in_expr(struct finder *f, int expr, bool inside) {
  struct form a;
  if (expr < 0) return;
  const struct code_expr *e = expr_at(f, expr);
  bool conversion = code_bare(f->c, expr) != expr;
  bool form = e->op == CODE_SUM ? form_of(f, e, &a) : !inside && form_of_one(f, expr, &a);
  if (form) note(f, &a);
  find_below(f, e, conversion && (form || inside));
}

static bool runs(const struct finder *f, const struct code_statement *s) {
  const struct code_expr *low = expr_at(f, s->low), *high = expr_at(f, s->high);
  return low->op == PX_INT && high->op == PX_INT && low->integer < high->integer;
}

static void find_in_children(struct finder *f, int parent);

static void find_in_statement(struct finder *f, int at) {
  const struct code_statement *s = statement(f, at);
  bool certain = f->certain;
  switch (s->kind) {
    case CODE_FOR:
      find_in_expr(f, s->low, false);
      find_in_expr(f, s->high, false);
      f->certain = certain && runs(f, s);
      break;
    case CODE_IF:
      find_in_expr(f, s->condition, false);
      f->certain = false;
      break;
    case CODE_DECLARE: find_in_expr(f, s->value, false); break;
    case CODE_PREFETCH: f->certain = false; /* fall through */
    case CODE_ASSIGN:
      find_in_expr(f, s->to, false);
      if (s->kind == CODE_ASSIGN) find_in_expr(f, s->value, false);
      break;
    default: break;
  }
  find_in_children(f, at);
  if (s->other >= 0) find_in_children(f, s->other);
  f->certain = certain;
}

static void find_in_children(struct finder *f, int parent) {
  for (int i = statement(f, parent)->first; i >= 0; i = statement(f, i)->next)
    find_in_statement(f, i);
}

/* ---- choosing the form ----------------------------------------------------------------------- */

/* The multiple of `part` that `whole` contains; 0: none. */
static int64_t times_in(const struct form *whole, const struct form *part) {
  int64_t times = 0, product;
  for (int i = 0; i < part->count; i++) {
    int j = 0;
    while (j < whole->count && whole->term[j].atom != part->term[i].atom) j++;
    if (j == whole->count) return 0;
    if (!times) times = whole->term[j].coef / part->term[i].coef;
    if (!times || __builtin_mul_overflow(times, part->term[i].coef, &product) ||
        product != whole->term[j].coef)
      return 0;
  }
  return times;
}

static void divide_by_common(struct form *a) {
  int64_t common = 0;
  for (int i = 0; i < a->count; i++) common = divisor(common, a->term[i].coef);
  if (a->term[0].coef < 0) common = -common;
  for (int i = 0; i < a->count; i++) a->term[i].coef /= common;
}

/* The common terms of both with the same ratio of coefficients as term `from` of a. */
static bool part_of_both(const struct form *a, const struct form *b, int from, struct form *part) {
  int64_t of_a = a->term[from].coef, of_b = 0, x, y;
  make_empty(part);
  for (int j = 0; j < b->count; j++)
    if (b->term[j].atom == a->term[from].atom) of_b = b->term[j].coef;
  for (int i = 0; i < a->count && of_b; i++)
    for (int j = 0; j < b->count; j++)
      if (a->term[i].atom == b->term[j].atom &&
          !__builtin_mul_overflow(a->term[i].coef, of_b, &x) &&
          !__builtin_mul_overflow(b->term[j].coef, of_a, &y) && x == y)
        part->term[part->count++] = a->term[i];
  if (part->count) divide_by_common(part);
  return part->count > 0;
}

/* Counts the uses of a form; sets its array, whether a use is certain, and the common multiple. */
static void count_uses(const struct finder *f, struct form *a, int64_t *multiple) {
  a->uses = 0;
  *multiple = 0;
  for (int i = 0; i < f->forms; i++) {
    const struct form *in = &f->form[i];
    int64_t times = times_in(in, a);
    if (!times) continue;
    a->array = !a->uses || a->array == in->array ? in->array : -1;
    a->uses += in->uses;
    a->certain |= in->certain;
    *multiple = divisor(*multiple, times);
  }
}

static bool may_be_named(const struct finder *f, const struct form *a) {
  struct fact_range sum = {true, 0, 0};
  bool load = false;
  for (int i = 0; i < a->count; i++) {
    int atom = f->atom[a->term[i].atom];
    sum = fact_range_add(sum, facts_range(&f->facts, atom), a->term[i].coef);
    load |= loads(f, atom);
  }
  return sum.known && (!load || a->certain);
}

static int worth_of(const struct finder *f, const struct form *a) {
  int sum = 0;
  for (int i = 0; i < a->count; i++) sum += operands(f, f->atom[a->term[i].atom]);
  return a->uses * (sum - 1) - sum;
}

static void consider(const struct finder *f, struct form *a, struct form *best, int *worth) {
  int64_t multiple;
  if (!belongs_here(f, a)) return;
  count_uses(f, a, &multiple);
  if (a->uses < 2 || worth_of(f, a) <= *worth) return;
  for (int i = 0; i < a->count; i++)
    if (__builtin_mul_overflow(a->term[i].coef, multiple, &a->term[i].coef)) return;
  if (!may_be_named(f, a)) return;
  *worth = worth_of(f, a);
  *best = *a;
}

static bool find_best(struct finder *f) {
  int worth = 0;
  struct form part, *best = &f->best;
  for (int i = 0; i < f->forms; i++)
    for (int j = i; j < f->forms; j++)
      for (int k = 0; k < f->form[i].count; k++)
        if (part_of_both(&f->form[i], &f->form[j], k, &part)) consider(f, &part, best, &worth);
  for (int i = 0; i < f->atoms; i++) {
    if (operands(f, f->atom[i]) < 2) continue;
    part = (struct form){.count = 1, .term = {{i, 1}}};
    consider(f, &part, best, &worth);
  }
  return worth > 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

static void note_name(const struct finder *f, int expr, struct buf *names, int *count) {
  const struct code_expr *e = expr_at(f, expr);
  if (e->variable >= 0) {
    buf_printf(names, "%s%s", *count ? "_" : "", f->c->variables.data[e->variable].name);
    ++*count;
  }
  for (int i = 0; i < e->count; i++)
    note_name(f, f->c->terms.data[e->first + i].expr, names, count);
  for (int i = 0; i < 2; i++)
    if (e->arg[i] >= 0) note_name(f, e->arg[i], names, count);
}

/* The suffix of a name, e.g. _div for k / 3. */
static const char *ending_of(int op) {
  if (op == PX_DIV || op == CODE_FLOOR_DIV) return "_div";
  if (op == PX_MOD || op == CODE_FLOOR_MOD) return "_mod";
  return op == PX_MIN ? "_min" : op == PX_MAX ? "_max" : "";
}

/* Hint for a name: X_at for an index of X alone, h_kh for few variables, at for many. */
static void hint_of(const struct finder *f, const struct form *a, struct buf *hint) {
  int count = 0;
  bool alone = a->count == 1 && a->term[0].coef == 1;
  for (int i = 0; i < a->count; i++) note_name(f, f->atom[a->term[i].atom], hint, &count);
  bool many = count > 3 || hint->length > 24, place = a->array >= 0 && !alone;
  if (place || many) hint->length = 0;
  if (place)
    buf_printf(hint, "%s_at", f->c->variables.data[a->array].name);
  else
    buf_puts(hint, many ? "at" : alone ? ending_of(expr_at(f, f->atom[a->term[0].atom])->op) : "");
}

static bool declares(const struct finder *f, int parent, int variable) {
  for (int i = statement(f, parent)->first; i >= 0; i = statement(f, i)->next) {
    const struct code_statement *s = statement(f, i);
    if (s->kind == CODE_DECLARE && s->variable == variable) return true;
    if (declares(f, i, variable)) return true;
    if (s->other >= 0 && declares(f, s->other, variable)) return true;
  }
  return false;
}

static int variable_of(struct finder *f, const char *name) {
  const struct code_variable *v = f->c->variables.data;
  for (int i = f->c->variables.count - 1; i >= 0; i--)
    if (v[i].storage == CODE_NAME && strcmp(v[i].name, name) == 0) return i;
  VEC_PUSH(&f->facts.counters, ((struct fact_counter){.depth = UNKNOWN}));
  return code_variable(f->c, name, CODE_NAME, code_type(CODE_INDEX, 1), 1);
}

/* The variable with the hint, or hint2 and so on, that nothing in the loop declares. Loops that are
 * not nested share it. */
static int choose_name(struct finder *f, int loop, const struct form *a) {
  struct buf hint = {0};
  hint_of(f, a, &hint);
  size_t length = hint.length;
  int variable = variable_of(f, hint.text);
  for (int i = 2; declares(f, loop, variable); i++) {
    hint.length = length;
    buf_printf(&hint, "%d", i);
    variable = variable_of(f, hint.text);
  }
  buf_free(&hint);
  return variable;
}

/* ---- replacing the form by its name ---------------------------------------------------------- */

static int put_name(struct finder *f, int expr);

static bool is_term_of(const struct finder *f, const struct form *a, int expr) {
  for (int i = 0; i < a->count; i++)
    if (code_same(f->c, f->atom[a->term[i].atom], expr)) return true;
  return false;
}

/* Replaces the form in a sum; the name takes the position of the form's first term. */
static int put_into_sum(struct finder *f, int expr) {
  const struct code_expr e = *expr_at(f, expr); /* a copy: the array may move */
  struct affine_term term[AFFINE_TERMS];
  struct form whole;
  int64_t times = form_of(f, &e, &whole) ? times_in(&whole, &f->best) : 0;
  int count = 0;
  bool named = false, changed = times != 0;
  for (int i = 0; i < e.count; i++) {
    struct affine_term t = f->c->terms.data[e.first + i];
    if (times && is_term_of(f, &f->best, t.expr)) {
      if (!named) term[count++] = (struct affine_term){code_variable_at(f->c, f->name, 0), times};
      named = true;
      continue;
    }
    term[count] = (struct affine_term){put_name(f, t.expr), t.coef};
    changed |= term[count++].expr != t.expr;
  }
  return changed ? code_sum(f->c, term, count, e.integer) : expr;
}

static int put_name(struct finder *f, int expr) {
  if (expr < 0) return -1;
  struct code_expr e = *expr_at(f, expr);
  const struct form *a = &f->best;
  bool changed = false;
  if (e.op == CODE_SUM) return put_into_sum(f, expr);
  if (a->count == 1 && a->term[0].coef == 1 && code_same(f->c, f->atom[a->term[0].atom], expr))
    return code_variable_at(f->c, f->name, 0);
  for (int i = 0; i < 3; i++) {
    int arg = put_name(f, e.arg[i]);
    changed |= arg != e.arg[i];
    e.arg[i] = arg;
  }
  if (!changed) return expr;
  if (e.op == CODE_CONVERT && code_same_type(e.type, expr_at(f, e.arg[0])->type)) return e.arg[0];
  VEC_PUSH(&f->c->exprs, e);
  return f->c->exprs.count - 1;
}

static void put_into_children(struct finder *f, int parent);

static void put_into_statement(struct finder *f, int at) {
  struct code_statement s = *statement(f, at);
  switch (s.kind) {
    case CODE_FOR:
      s.low = put_name(f, s.low);
      s.high = put_name(f, s.high);
      break;
    case CODE_IF: s.condition = put_name(f, s.condition); break;
    case CODE_ASSIGN: s.to = put_name(f, s.to); /* fall through */
    case CODE_DECLARE: s.value = put_name(f, s.value); break;
    case CODE_PREFETCH: s.to = put_name(f, s.to); break;
    default: break;
  }
  *statement(f, at) = s;
  put_into_children(f, at);
  if (s.other >= 0) put_into_children(f, s.other);
}

static void put_into_children(struct finder *f, int parent) {
  for (int i = statement(f, parent)->first; i >= 0; i = statement(f, i)->next)
    put_into_statement(f, i);
}

/* ---- the declaration ------------------------------------------------------------------------- */

static int value_of(struct finder *f, const struct form *a) {
  struct affine_term term[FORM_TERMS];
  for (int i = 0; i < a->count; i++) {
    int atom = f->atom[a->term[i].atom];
    if (a->count > 1 || a->term[i].coef != 1) atom = code_convert(f->c, atom, CODE_INDEX);
    term[i] = (struct affine_term){atom, a->term[i].coef};
  }
  return code_sum(f->c, term, a->count, 0);
}

/* Declares the name at the beginning of the loop, after all names that do not depend on it. */
static void declare(struct finder *f, int loop, int value) {
  int before = -1, at = f->c->statements.count;
  for (int i = statement(f, loop)->first; i >= 0; i = statement(f, i)->next) {
    const struct code_statement *s = statement(f, i);
    bool name = s->kind == CODE_DECLARE && f->c->variables.data[s->variable].storage == CODE_NAME;
    if (!name || code_mentions(f->c, s->value, f->name)) break;
    before = i;
  }
  struct code_statement s = {.kind = CODE_DECLARE,
                             .parent = loop,
                             .variable = f->name,
                             .value = value,
                             .first = -1,
                             .last = -1,
                             .other = -1};
  s.next = before < 0 ? statement(f, loop)->first : statement(f, before)->next;
  VEC_PUSH(&f->c->statements, s);
  if (before < 0)
    statement(f, loop)->first = at;
  else
    statement(f, before)->next = at;
  if (s.next < 0) statement(f, loop)->last = at;
}

/* ---- loops, the inner ones first ------------------------------------------------------------- */

static bool name_one(struct finder *f, int loop) {
  f->atoms = f->forms = 0;
  f->certain = true;
  f->array = -1;
  find_in_children(f, loop);
  if (!find_best(f)) return false;
  f->name = choose_name(f, loop, &f->best);
  int value = value_of(f, &f->best);
  put_into_children(f, loop);
  declare(f, loop, value);
  f->facts.counters.data[f->name] = (struct fact_counter){f->level, facts_range(&f->facts, value)};
  return true;
}

static void forget_names(struct finder *f, int loop) {
  for (int i = statement(f, loop)->first; i >= 0; i = statement(f, i)->next)
    if (statement(f, i)->kind == CODE_DECLARE)
      f->facts.counters.data[statement(f, i)->variable].depth = UNKNOWN;
}

static void name_in_children(struct finder *f, int parent);

/* Collapsed loops have no statements between them: all their counters are known in the last one. */
static void name_in_loop(struct finder *f, int at) {
  struct code_statement s = *statement(f, at);
  struct fact_counter *counter = &f->facts.counters.data[s.variable];
  struct fact_range low = facts_range(&f->facts, s.low), high = facts_range(&f->facts, s.high);
  if (s.parallel) f->group = s.parallel;
  if (f->group) f->group--;
  int more = f->group;
  f->loops++;
  counter->depth = f->loops + more;
  counter->range = (struct fact_range){low.known && high.known, low.low, high.high - 1};
  name_in_children(f, at);
  f->level = f->loops;
  for (int i = 0; !more && i < MOST_NAMES && name_one(f, at); i++) continue;
  forget_names(f, at);
  f->facts.counters.data[s.variable].depth = UNKNOWN;
  f->loops--;
}

static void name_in_children(struct finder *f, int parent) {
  for (int i = statement(f, parent)->first; i >= 0; i = statement(f, i)->next) {
    const struct code_statement *s = statement(f, i);
    bool loop = s->kind == CODE_FOR && !f->c->variables.data[s->variable].reserved;
    if (loop)
      name_in_loop(f, i);
    else
      name_in_children(f, i);
    if (statement(f, i)->other >= 0) name_in_children(f, statement(f, i)->other);
  }
}

void code_share_indices(struct code *c) {
  struct finder *f = mem_alloc(sizeof *f);
  f->c = c;
  facts_open(&f->facts, c);
  for (int i = 0; i < c->variables.count; i++) f->facts.counters.data[i].depth = UNKNOWN;
  name_in_children(f, 0);
  facts_close(&f->facts);
  mem_free(f);
}
