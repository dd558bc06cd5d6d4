/* Blocked summation: a variable that sums many iterations is added to another one after each block
 * of them, so the rounding error grows with the block and the number of blocks, not with all
 * iterations. Many blocks are summed in blocks again. See code.h.
 *
 *     let acc f32 = 0                          let acc f32 = 0
 *     for k in 0..16384                        let acc_sum f32 = 0
 *       acc += X[k]                      ->    for k_block in 0..16384 step 128
 *                                                for k in k_block..k_block + 128
 *                                                  acc += X[k]
 *                                                acc_sum += acc
 *                                                acc = 0
 *                                              acc += acc_sum
 *
 * Keeps: the same terms in each sum, in another grouping. Sums of f64 are exact enough without it,
 * and sums in memory are left alone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "code/code.h"

enum { NUMBERS = 64 }; /* limit of variables of one name */

/* Additions beyond which a sum is blocked, and additions per block. Contractions, which must be
 * fast, have longer blocks, as in other libraries. */
enum { LONG = 512, BLOCK = 128, LONG_OF_PRODUCTS = 8192, BLOCK_OF_PRODUCTS = 512 };

/* The variables of one name that a loop only adds to. */
struct sum {
  int variable, total; /* the variable; its total */
  uint64_t numbers;
};

struct sums {
  struct code *c;
  struct {
    VEC(struct sum);
  } all;
  double block; /* additions per block */
};

static struct code_statement *statement(const struct code *c, int at) {
  return &c->statements.data[at];
}

static const struct code_expr *expr_at(const struct code *c, int expr) {
  return &c->exprs.data[expr];
}

/* ---- additions in a loop --------------------------------------------------------------------- */

/* Whether the statement is acc += value. */
static bool is_addition(const struct code *c, const struct code_statement *s, int variable) {
  return s->kind == CODE_ASSIGN && s->how == CODE_ADD && expr_at(c, s->to)->op == CODE_VARIABLE &&
         expr_at(c, s->to)->variable == variable;
}

static bool is_used_in(const struct code *c, const struct code_statement *s, int variable) {
  switch (s->kind) {
    case CODE_FOR: return code_mentions(c, s->low, variable) || code_mentions(c, s->high, variable);
    case CODE_IF: return code_mentions(c, s->condition, variable);
    case CODE_DECLARE: return s->variable == variable || code_mentions(c, s->value, variable);
    case CODE_ASSIGN:
      return code_mentions(c, s->value, variable) ||
             (code_mentions(c, s->to, variable) && !is_addition(c, s, variable));
    case CODE_PREFETCH: return code_mentions(c, s->to, variable);
    default: return false;
  }
}

/* Whether the statement, or one inside it, uses the variable other than by adding to it. */
static bool is_used(const struct code *c, int at, int variable) {
  const struct code_statement *s = statement(c, at);
  if (is_used_in(c, s, variable)) return true;
  if (s->other >= 0 && is_used(c, s->other, variable)) return true;
  for (int i = s->first; i >= 0; i = statement(c, i)->next)
    if (is_used(c, i, variable)) return true;
  return false;
}

/* The trip count of a loop; 1 if data or other loops determine it. */
static double steps_of(const struct code *c, const struct code_statement *s) {
  const struct code_expr *low = expr_at(c, code_bare(c, s->low)),
                         *high = expr_at(c, code_bare(c, s->high));
  if (low->op != PX_INT || high->op != PX_INT || high->integer <= low->integer) return 1;
  int64_t steps = (high->integer - low->integer + s->step - 1) / s->step;
  return (double)steps;
}

/* Counts additions to each number of the variable by one run of the statement. */
static void add_up(const struct code *c, int at, int variable, double times, double *count) {
  const struct code_statement *s = statement(c, at);
  if (is_addition(c, s, variable)) count[expr_at(c, s->to)->integer] += times;
  if (s->kind == CODE_FOR) times *= steps_of(c, s);
  for (int i = s->first; i >= 0; i = statement(c, i)->next) add_up(c, i, variable, times, count);
}

static double additions(const struct code *c, int at, int variable) {
  double count[NUMBERS] = {0}, most = 0;
  add_up(c, at, variable, 1, count);
  for (int i = 0; i < NUMBERS; i++)
    if (count[i] > most) most = count[i];
  return most;
}

static double most_additions(const struct sums *s, int at) {
  double most = 0;
  for (int i = 0; i < s->all.count; i++) {
    double count = additions(s->c, at, s->all.data[i].variable);
    if (count > most) most = count;
  }
  return most;
}

/* Whether the product is of a loaded number and a vector, as of matrix rows and panels, whose loads
 * are shared. Products of two vectors or two numbers are limited by loads instead. */
static bool is_of_matrix(const struct code *c, const struct code_expr *e) {
  if (e->op != PX_MUL || !code_is_value(e->type)) return false;
  const struct code_expr *x = expr_at(c, e->arg[0]), *y = expr_at(c, e->arg[1]);
  return x->type.lanes != y->type.lanes && x->op != PX_NUMBER && y->op != PX_NUMBER;
}

static bool multiplies(const struct code *c, int expr) {
  if (expr < 0) return false;
  const struct code_expr *e = expr_at(c, expr);
  if (is_of_matrix(c, e)) return true;
  return multiplies(c, e->arg[0]) || multiplies(c, e->arg[1]) || multiplies(c, e->arg[2]);
}

/* Whether the statement, or one inside it, adds such products to the variable. */
static bool adds_products(const struct code *c, int at, int variable) {
  const struct code_statement *s = statement(c, at);
  if (is_addition(c, s, variable)) return multiplies(c, s->value);
  for (int i = s->first; i >= 0; i = statement(c, i)->next)
    if (adds_products(c, i, variable)) return true;
  return false;
}

static bool is_long(struct sums *s, int loop, int variable) {
  const struct code_variable *v = &s->c->variables.data[variable];
  if (v->storage != CODE_LOCAL || v->type.element != PROGRAM_F32 || v->count > NUMBERS)
    return false;
  double count = additions(s->c, loop, variable);
  if (count <= LONG || is_used(s->c, loop, variable)) return false;
  bool products = adds_products(s->c, loop, variable);
  if (count <= (products ? LONG_OF_PRODUCTS : LONG)) return false;
  s->block = fmax(s->block, products ? BLOCK_OF_PRODUCTS : BLOCK);
  return true;
}

/* Finds all variables to which the statement, or one inside it, adds. */
static void find(struct sums *s, int at) {
  const struct code_statement *x = statement(s->c, at);
  const struct code_expr *to = x->kind == CODE_ASSIGN ? expr_at(s->c, x->to) : NULL;
  if (to && to->op == CODE_VARIABLE && is_addition(s->c, x, to->variable)) {
    int known = 0;
    while (known < s->all.count && s->all.data[known].variable != to->variable) known++;
    if (known == s->all.count) VEC_PUSH(&s->all, ((struct sum){to->variable, -1, 0}));
    if (to->integer < NUMBERS) s->all.data[known].numbers |= (uint64_t)1 << to->integer;
  }
  for (int i = x->first; i >= 0; i = statement(s->c, i)->next) find(s, i);
  if (x->other >= 0) find(s, x->other);
}

static void find_long(struct sums *s, int loop) {
  int count = 0;
  find(s, loop);
  for (int i = 0; i < s->all.count; i++)
    if (is_long(s, loop, s->all.data[i].variable)) s->all.data[count++] = s->all.data[i];
  s->all.count = count;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int zero(struct code *c, struct code_type type) {
  return code_broadcast(c, code_number(c, type.element, 0), type.lanes);
}

/* Adds total += acc; acc = 0 at the end of the block. */
static void put_totals(struct sums *s, int block) {
  struct code *c = s->c;
  c->at = block;
  for (int i = 0; i < s->all.count; i++) {
    struct sum sum = s->all.data[i];
    for (int j = 0; j < NUMBERS; j++) {
      if (!(sum.numbers >> j & 1)) continue;
      code_assign(c, code_variable_at(c, sum.total, j), CODE_ADD,
                  code_variable_at(c, sum.variable, j));
      code_assign(c, code_variable_at(c, sum.variable, j), CODE_SET,
                  zero(c, c->variables.data[sum.variable].type));
    }
  }
}

/* Iterations per block: a divisor of the loop's iterations if one is near. */
static int64_t steps_of_block(double all, double most) {
  int64_t steps = (int64_t)most;
  for (int64_t i = steps; 2 * i > steps && all > 1; i--)
    if ((int64_t)all % i == 0) return i;
  return steps;
}

/* Wraps the loop in a loop over blocks, which takes over its statement. */
static void open_blocks(struct sums *s, int at, int64_t steps) {
  struct code *c = s->c;
  struct code_statement loop = *statement(c, at); /* a copy: the array may move */
  char name[PROGRAM_NAME + 16];
  double all = steps_of(c, &loop);
  snprintf(name, sizeof name, "%s_block", c->variables.data[loop.variable].name);
  int counter = code_variable(c, name, CODE_COUNTER, c->variables.data[loop.variable].type, 1);
  int low = code_variable_at(c, counter, 0);
  struct affine_term term = {low, 1};
  int high = code_sum(c, &term, 1, steps * loop.step);
  if (all <= 1 || (int64_t)all % steps)
    high = code_operation(c, PX_MIN, expr_at(c, high)->type, high, loop.high, -1);
  struct code_statement *blocks = statement(c, at);
  blocks->variable = counter;
  blocks->step = steps * loop.step;
  blocks->first = blocks->last = -1;
  c->at = at;
  int inner = code_open_for(c, loop.variable, low, high, loop.step, 0);
  statement(c, inner)->first = loop.first;
  statement(c, inner)->last = loop.last;
  for (int i = loop.first; i >= 0; i = statement(c, i)->next) statement(c, i)->parent = inner;
}

/* Blocks each loop inside the statement that adds more than one block. */
static void divide(struct sums *s, int at);

static void divide_loop(struct sums *s, int at) {
  double all = most_additions(s, at), steps = steps_of(s->c, statement(s->c, at));
  double each = all / steps;
  if (all <= s->block) return;
  if (each > s->block)
    divide(s, at);
  else if (2 * each <= s->block)
    open_blocks(s, at, steps_of_block(steps, s->block / each));
  put_totals(s, at);
}

static void divide(struct sums *s, int at) {
  for (int i = statement(s->c, at)->first; i >= 0; i = statement(s->c, i)->next)
    if (statement(s->c, i)->kind == CODE_FOR)
      divide_loop(s, i);
    else
      divide(s, i);
}

/* ---- around the loop ------------------------------------------------------------------------- */

static int declare_totals(struct sums *s, int parent, int before) {
  struct code *c = s->c;
  for (int i = 0; i < s->all.count; i++) {
    struct sum *sum = &s->all.data[i];
    const struct code_variable v = c->variables.data[sum->variable]; /* a copy */
    char name[PROGRAM_NAME + 16];
    snprintf(name, sizeof name, "%s_sum", v.name);
    sum->total = code_variable(c, name, CODE_LOCAL, v.type, v.count);
    uint64_t all = v.count < NUMBERS ? ((uint64_t)1 << v.count) - 1 : ~(uint64_t)0;
    before = code_insert(c, parent, before,
                         (struct code_statement){.kind = CODE_DECLARE,
                                                 .variable = sum->total,
                                                 .value = zero(c, v.type),
                                                 .unread = all & ~sum->numbers});
  }
  return before;
}

/* Adds acc += total after the loop. */
static void end_totals(struct sums *s, int parent, int loop) {
  struct code *c = s->c;
  for (int i = 0, before = loop; i < s->all.count; i++) {
    struct sum sum = s->all.data[i];
    for (int j = 0; j < NUMBERS; j++)
      if (sum.numbers >> j & 1)
        before = code_insert(c, parent, before,
                             (struct code_statement){.kind = CODE_ASSIGN,
                                                     .to = code_variable_at(c, sum.variable, j),
                                                     .how = CODE_ADD,
                                                     .value = code_variable_at(c, sum.total, j)});
  }
}

/* Blocks the loop, the statement after `before`; true: it was blocked. The totals may again be long
 * sums. */
static bool shorten(struct code *c, int parent, int before, int loop) {
  struct sums s = {.c = c};
  find_long(&s, loop);
  bool any = s.all.count > 0;
  if (any) {
    declare_totals(&s, parent, before);
    divide_loop(&s, loop);
    end_totals(&s, parent, loop);
  }
  mem_free(s.all.data);
  return any;
}

static void shorten_in(struct code *c, int parent) {
  for (int at = statement(c, parent)->first, before = -1; at >= 0; at = statement(c, at)->next) {
    if (statement(c, at)->kind == CODE_FOR && !statement(c, at)->parallel)
      while (shorten(c, parent, before, at)) continue;
    shorten_in(c, at);
    if (statement(c, at)->other >= 0) shorten_in(c, statement(c, at)->other);
    before = at;
  }
}

void code_block_sums(struct code *c) {
  int at = c->at;
  shorten_in(c, 0);
  c->at = at;
}
