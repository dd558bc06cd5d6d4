/* Scattered stores become transpositions: vectors that are stored lane by lane, one beside the
 * other, are transposed in registers and stored as vectors. See code.h.
 *
 *     block                                   block
 *       let lanes0 f32x4 = acc_0                let across0 f32x4 = permute(acc_0, acc_1: 0 4 1 5)
 *       for lane in 0..4                        let across1 f32x4 = permute(acc_2, acc_3: 0 4 1 5)
 *         Y[lane*9 + at] = lanes0[lane]   ->    ..
 *     (the same of acc_1 to                     Y[at, 4 lanes] = permute(across0, across1:
 *      Y[lane*9 + at + 1],                          0 1 4 5)
 *      and of acc_2 and acc_3)                  Y[at + 9, 4 lanes] = permute(across0, across1:
 *                                                   2 3 6 7)
 *                                               ..
 *
 * Four lanes of four vectors are transposed at a time, then such quarters of vectors as a whole.
 * Each step is one instruction on a processor with vectors of this length, and crosses no more
 * quarters than it has to. A vector that is missing is replaced by another one, whose lanes are not
 * stored.
 *
 * Keeps: every lane is stored at its place, and no other element is written. Results are the same
 * without this pass.
 */
#include <stdio.h>
#include <string.h>

#include "code/code.h"

enum {
  FEWEST = 4, /* least adjacent vectors that are transposed */
  MOST = 64,  /* limit of stores considered together */
  QUARTER = 4,
  LONGEST = 16 /* maximum lanes */
};

/* A scattered store: Y[lane * stride + index + constant] = value[lane]. */
struct across {
  int statement;
  int value;        /* expression of the vector */
  int array, index; /* the array; the index without lane and constant */
  int64_t stride, constant;
};

struct transposer {
  struct code *c;
  int first; /* the first variable that the pass adds */
  bool changed;
};

static struct code_statement *statement(const struct transposer *t, int at) {
  return &t->c->statements.data[at];
}

static const struct code_expr *expr_at(const struct transposer *t, int expr) {
  return &t->c->exprs.data[expr];
}

static bool is_integer(const struct transposer *t, int expr, int64_t value) {
  return expr_at(t, expr)->op == PX_INT && expr_at(t, expr)->integer == value;
}

/* ---- recognising scattered stores ------------------------------------------------------------ */

/* Splits the index into counter * stride, other terms, and a constant. */
static bool split_index(const struct transposer *t, int index, int counter, struct across *a) {
  const struct code_expr e = *expr_at(t, index); /* a copy: the array may move */
  struct affine_term term[AFFINE_TERMS];
  int count = 0;
  if (e.op != CODE_SUM || e.count > AFFINE_TERMS) return false;
  a->stride = 0;
  a->constant = e.integer;
  for (int i = 0; i < e.count; i++) {
    struct affine_term of = t->c->terms.data[e.first + i];
    int bare = code_bare(t->c, of.expr);
    if (expr_at(t, bare)->op == CODE_VARIABLE && expr_at(t, bare)->variable == counter)
      a->stride += of.coef;
    else if (code_mentions(t->c, of.expr, counter))
      return false;
    else
      term[count++] = of;
  }
  a->index = code_sum(t->c, term, count, 0);
  return a->stride > 1;
}

/* Whether the block is let v = value; for lane in 0..lanes: Y[..] = v[lane]. */
static bool is_across(const struct transposer *t, int at, struct across *a) {
  const struct code_statement *s = statement(t, at);
  if (s->kind != CODE_BLOCK || s->first < 0) return false;
  const struct code_statement *vector = statement(t, s->first);
  if (vector->kind != CODE_DECLARE || vector->value < 0 || vector->next != s->last) return false;
  const struct code_statement *loop = statement(t, s->last);
  const struct code_variable *v = &t->c->variables.data[vector->variable];
  if (!v->reserved || v->type.element != PROGRAM_F32 || v->type.lanes < QUARTER) return false;
  if (loop->kind != CODE_FOR || !t->c->variables.data[loop->variable].reserved) return false;
  if (!is_integer(t, loop->low, 0) || !is_integer(t, loop->high, v->type.lanes)) return false;
  if (loop->first < 0 || loop->first != loop->last || v->type.lanes > LONGEST) return false;
  const struct code_statement *set = statement(t, loop->first);
  if (set->kind != CODE_ASSIGN || set->how != CODE_SET) return false;
  const struct code_expr *to = expr_at(t, set->to), *from = expr_at(t, set->value);
  if (to->op != CODE_ELEMENT || to->type.element != PROGRAM_F32 || from->op != CODE_LANE)
    return false;
  int lane = code_bare(t->c, from->arg[1]), of = from->arg[0], counter = loop->variable;
  if (expr_at(t, lane)->op != CODE_VARIABLE || expr_at(t, lane)->variable != counter) return false;
  if (expr_at(t, of)->op != CODE_VARIABLE || expr_at(t, of)->variable != vector->variable)
    return false;
  a->statement = at;
  a->value = vector->value;
  a->array = to->variable;
  return expr_at(t, a->value)->type.lanes == v->type.lanes &&
         !code_mentions(t->c, a->value, a->array) && split_index(t, to->arg[0], counter, a);
}

static bool go_together(const struct transposer *t, const struct across *a,
                        const struct across *b) {
  return a->array == b->array && a->stride == b->stride && code_same(t->c, a->index, b->index) &&
         expr_at(t, a->value)->type.lanes == expr_at(t, b->value)->type.lanes;
}

/* Whether the two stores write to a common element. */
static bool meet(const struct across *a, const struct across *b, int lanes) {
  int64_t distance = a->constant - b->constant;
  return distance % a->stride == 0 && distance / a->stride < lanes && distance / a->stride > -lanes;
}

/* ---- transposing ----------------------------------------------------------------------------- */

/* A permutation of x and y, declared as a variable unless `number` is NULL. */
static int zipped(struct transposer *t, int x, int y, enum code_zip how, int *number) {
  int lanes[CODE_LANES], count = expr_at(t, x)->type.lanes;
  char name[24];
  for (int i = 0; i < count; i++) lanes[i] = code_zip_lane(how, count, i);
  int value = code_permute(t->c, x, y, lanes);
  if (!number) return value;
  snprintf(name, sizeof name, "across%d", (*number)++);
  int variable = code_local(t->c, t->first, name, expr_at(t, value)->type);
  code_declare(t->c, variable, value);
  return code_variable_at(t->c, variable, 0);
}

/* Transposes four rows: out[j] has lanes j, 4 + j, 8 + j, .. of each, four by four. */
static void transpose_four(struct transposer *t, const int *rows, int *out, int *number) {
  int pair[QUARTER];
  bool twice = rows[0] == rows[2] && rows[1] == rows[3];
  for (int j = 0; j < QUARTER; j++) {
    const int *two = rows + (j & 2);
    pair[j] =
        twice && j > 1 ? pair[j - 2] : zipped(t, two[0], two[1], CODE_ZIP_LOW + j % 2, number);
  }
  for (int j = 0; j < QUARTER; j++)
    out[j] = zipped(t, pair[j / 2], pair[2 + j / 2], CODE_ZIP_PAIRS_LOW + j % 2, number);
}

/* For 16 lanes: joins quarters k of row[0], row[4], .. to out[0], out[4], .. */
static void join_four(struct transposer *t, const int *row, int *out, int *number) {
  for (int k = 0; k < 2; k++) {
    enum code_zip part = CODE_QUARTERS_EVEN + k;
    int low = zipped(t, row[0], row[4], part, number), high = low;
    if (row[8] != row[0]) high = zipped(t, row[8], row[12], part, number);
    for (int l = 0; l < 2; l++)
      out[4 * k + 8 * l] = zipped(t, low, high, CODE_QUARTERS_EVEN + l, NULL);
  }
}

/* Transposes as many vectors as lanes: out[i] has lane i of each in[j]. */
static void transpose(struct transposer *t, const int *in, int lanes, int *out) {
  int row[LONGEST], number = 0;
  for (int i = 0; i < lanes; i += QUARTER) {
    int known = 0; /* equal rows were transposed before */
    while (known < i && in[known] != in[i]) known += QUARTER;
    if (known < i)
      memcpy(row + i, row + known, QUARTER * sizeof *row);
    else
      transpose_four(t, in + i, row + i, &number);
  }
  for (int j = 0; j < QUARTER; j++) {
    if (lanes == QUARTER) out[j] = row[j];
    for (int k = 0; lanes == 2 * QUARTER && k < 2; k++)
      out[j + 4 * k] = zipped(t, row[j], row[4 + j], CODE_QUARTERS_EVEN + k, NULL);
    if (lanes == LONGEST) join_four(t, row + j, out + j, &number);
  }
}

/* ---- replacing the statements ---------------------------------------------------------------- */

/* Whether, of `lanes` lanes from the element on, those after `count` are in the unused end of a
 * row. */
static bool is_unused(const struct transposer *t, const struct across *a, int count, int lanes) {
  const struct code_variable *v = &t->c->variables.data[a->array];
  const struct code_expr *at = expr_at(t, a->index);
  if (!v->row || a->stride % v->row || (at->op != CODE_SUM && at->op != PX_INT)) return false;
  for (int i = 0; at->op == CODE_SUM && i < at->count; i++)
    if (t->c->terms.data[at->first + i].coef % v->row) return false;
  int64_t begin = (at->integer + a->constant) % v->row;
  return begin + count == v->used && begin + lanes <= v->row;
}

static void store(struct transposer *t, const struct across *a, int lane, int count, int value) {
  int lanes = expr_at(t, value)->type.lanes;
  const struct code_expr at = *expr_at(t, a->index); /* a copy: the array may move */
  struct affine_term term[AFFINE_TERMS] = {{a->index, 1}};
  int terms = at.op == PX_INT ? 0 : 1;
  for (int i = 0; at.op == CODE_SUM && i < at.count; i++)
    term[terms = i] = t->c->terms.data[at.first + i];
  terms += at.op == CODE_SUM;
  int place = code_sum(t->c, term, terms, lane * a->stride + a->constant);
  /* the next vector, which follows at once, overwrites the surplus */
  bool streamed = t->c->variables.data[a->array].streamed;
  bool covered = a->stride == count && (lanes - lane) * count >= lanes && !streamed;
  bool whole = covered || count == lanes || is_unused(t, a, count, lanes);
  int first = whole ? -1 : code_int(t->c, count);
  int to = code_first_lanes(t->c, code_element(t->c, a->array, place), lanes, first);
  code_assign(t->c, to, CODE_SET, value);
}

/* Transposes and stores `count` adjacent vectors. */
static void write_transposed(struct transposer *t, const struct across *a, int count) {
  int in[LONGEST], out[LONGEST], lanes = expr_at(t, a->value)->type.lanes;
  int group = (count + QUARTER - 1) / QUARTER * QUARTER;
  if (group > lanes / 2) group = lanes;
  int block = code_open_block(t->c);
  for (int i = 0; i < lanes; i++) {
    int row = i % group;
    in[i] = a[row < count ? row : count - 1].value;
  }
  transpose(t, in, lanes, out);
  for (int i = 0; i < lanes; i++) store(t, a, i, count, out[i]);
  code_close(t->c, block);
}

static void sort(struct across *a, int count) {
  for (int i = 1; i < count; i++)
    for (int j = i; j > 0 && a[j].constant < a[j - 1].constant; j--) {
      struct across kept = a[j];
      a[j] = a[j - 1];
      a[j - 1] = kept;
    }
}

/* Number of adjacent vectors from the first one on. */
static int beside(const struct transposer *t, const struct across *a, int count) {
  int together = 1, lanes = expr_at(t, a->value)->type.lanes;
  while (together < count && together < lanes && together < a->stride &&
         a[together].constant == a[0].constant + together)
    together++;
  return together;
}

static bool all_beside(const struct transposer *t, const struct across *a, int count) {
  int lanes = expr_at(t, a->value)->type.lanes;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < i; j++)
      if (meet(&a[i], &a[j], lanes)) return false;
  for (int i = 0, together; i < count; i += together) {
    together = beside(t, &a[i], count - i);
    if (together < FEWEST) return false;
  }
  return count >= FEWEST;
}

/* Moves the last child of `parent` after `before` (-1: to the front). */
static void move_last(struct transposer *t, int parent, int before) {
  struct code_statement *p = statement(t, parent);
  int at = p->last, last = p->first;
  while (statement(t, last)->next != at) last = statement(t, last)->next;
  statement(t, last)->next = -1;
  p->last = last;
  statement(t, at)->next = before < 0 ? p->first : statement(t, before)->next;
  if (before < 0)
    p->first = at;
  else
    statement(t, before)->next = at;
  if (before == last) p->last = at;
}

/* Transposes the run of scattered stores from `at` on, which follows `before`; returns its last
 * statement afterwards. */
static int transpose_run(struct transposer *t, int parent, int before, int at) {
  struct across a[MOST];
  int count = 0, next = at, last = at;
  while (next >= 0 && count < MOST && is_across(t, next, &a[count]) &&
         (count == 0 || go_together(t, &a[0], &a[count]))) {
    count++;
    last = next;
    next = statement(t, next)->next;
  }
  sort(a, count);
  if (count == 0 || !all_beside(t, a, count)) return last;
  int kept = t->c->at;
  if (before < 0)
    statement(t, parent)->first = next;
  else
    statement(t, before)->next = next;
  if (next < 0) statement(t, parent)->last = before;
  t->c->at = parent;
  for (int i = 0, together; i < count; i += together) {
    together = beside(t, &a[i], count - i);
    write_transposed(t, &a[i], together);
    int made = statement(t, parent)->last;
    if (next >= 0) move_last(t, parent, before);
    before = made;
  }
  t->c->at = kept;
  t->changed = true;
  return before;
}

static void transpose_in(struct transposer *t, int parent) {
  int before = -1;
  for (int i = statement(t, parent)->first; i >= 0; i = statement(t, i)->next) {
    struct across a;
    if (is_across(t, i, &a)) {
      i = transpose_run(t, parent, before, i);
    } else {
      transpose_in(t, i);
      if (statement(t, i)->other >= 0) transpose_in(t, statement(t, i)->other);
    }
    before = i;
  }
}

bool code_transpose(struct code *c) {
  struct transposer t = {.c = c, .first = c->variables.count};
  transpose_in(&t, 0);
  return t.changed;
}
