// Trees of code: what simplifying leaves, what the verifier rejects, and that the code of a bound
// schedule is such a tree. Trees are built by hand; the neutral text says what they became.
#include "check.h"

#include <math.h>

#include "code/code.h"
#include "code/pipeline.h"
#include "random_edit.h"
#include "random_program.h"

static canvas_context ctx;

// A function of X f32[64] to Y f32[64] with a loop counter i, a variable a, an array P and a heap H.
struct sample {
  struct code *c;
  int X, Y, i, j, a, P, H;
};

static struct sample sample(void) {
  struct sample s = {.c = code_new("sample")};
  struct code_type f32 = code_type(PROGRAM_F32, 1), index = code_type(CODE_INDEX, 1);
  s.X = code_variable(s.c, "X", CODE_INPUT, f32, 64);
  s.Y = code_variable(s.c, "Y", CODE_OUTPUT, f32, 64);
  s.i = code_variable(s.c, "i", CODE_COUNTER, index, 1);
  s.j = code_variable(s.c, "j", CODE_COUNTER, index, 1);
  s.a = code_variable(s.c, "a", CODE_LOCAL, f32, 1);
  s.P = code_variable(s.c, "P", CODE_ARRAY, f32, 8);
  s.H = code_variable(s.c, "H", CODE_HEAP, f32, 8);
  return s;
}

static int counter(struct sample *s) {
  return code_variable_at(s->c, s->i, 0);
}

// 4*i + add
static int place(struct sample *s, int64_t add) {
  struct affine_term t = {counter(s), 4};
  return code_sum(s->c, &t, 1, add);
}

static int open_loop(struct sample *s, int64_t low, int64_t high) {
  return code_open_for(s->c, s->i, code_int(s->c, low), code_int(s->c, high), 1, 0);
}

static int truth(struct sample *s, bool value) {
  int expr = code_operation(s->c, PX_BOOL, code_type(CODE_TRUTH, 1), -1, -1, -1);
  s->c->exprs.data[expr].integer = value;
  return expr;
}

// i < 2
static int small(struct sample *s) {
  return code_operation(s->c, PX_LT, code_type(CODE_TRUTH, 1), counter(s), code_int(s->c, 2), -1);
}

// Y[at] = X[at]
static void move(struct sample *s, int at) {
  code_assign(s->c, code_element(s->c, s->Y, at), CODE_SET, code_element(s->c, s->X, at));
}

// ---- simplifying ----

static void one_trip(struct sample *s) {
  int loop = open_loop(s, 3, 4);
  move(s, place(s, 1));
  code_close(s->c, loop);
}

static void no_trip(struct sample *s) {
  int loop = open_loop(s, 3, 3);
  move(s, place(s, 1));
  code_close(s->c, loop);
}

static void known_condition(struct sample *s) {
  int outer = open_loop(s, 0, 4), yes = code_open_if(s->c, truth(s, true));
  move(s, place(s, 0));
  code_close(s->c, yes);
  int no = code_open_if(s->c, truth(s, false));
  move(s, place(s, 1));
  code_close(s->c, no);
  int other = code_open_else(s->c, no);
  move(s, place(s, 2));
  code_close(s->c, other);
  code_close(s->c, outer);
}

static void condition_of_one_trip(struct sample *s) {
  int loop = open_loop(s, 3, 4), inner = code_open_if(s->c, small(s));
  move(s, place(s, 0));
  code_close(s->c, inner);
  code_close(s->c, loop);
  move(s, code_int(s->c, 7));
}

static void nothing_is_seen(struct sample *s) {
  int loop = open_loop(s, 0, 4), inner = code_open_if(s->c, small(s));
  code_declare(s->c, s->a, code_number(s->c, PROGRAM_F32, 1));
  code_close(s->c, inner);
  code_close(s->c, loop);
  move(s, code_int(s->c, 7));
}

static void never_mentioned(struct sample *s) {
  code_declare(s->c, s->P, -1);
  move(s, code_int(s->c, 7));
}

static void blocks(struct sample *s) {
  int bare = code_open_block(s->c);
  move(s, code_int(s->c, 0));
  code_close(s->c, bare);
  int scope = code_open_block(s->c);
  code_declare(s->c, s->a, code_number(s->c, PROGRAM_F32, 1));
  code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, 1)), CODE_SET,
              code_variable_at(s->c, s->a, 0));
  code_close(s->c, scope);
}

static void empty_else(struct sample *s) {
  int loop = open_loop(s, 0, 4), yes = code_open_if(s->c, small(s));
  move(s, place(s, 0));
  code_close(s->c, yes);
  code_close(s->c, code_open_else(s->c, yes));
  code_close(s->c, loop);
}

static void more_than_one(struct sample *s) {
  int loop = code_open_for(s->c, s->i, code_int(s->c, 0), code_int(s->c, 16), 4, 0);
  move(s, counter(s));
  code_close(s->c, loop);
}

// ---- what nobody reads ----

// A local of four numbers.
static int local(struct sample *s, const char *name) {
  return code_variable(s->c, name, CODE_LOCAL, code_type(PROGRAM_F32, 1), 4);
}

static void set(struct sample *s, int variable, int number, int value) {
  code_assign(s->c, code_variable_at(s->c, variable, number), CODE_SET, value);
}

static int zero(struct sample *s) {
  return code_number(s->c, PROGRAM_F32, 0);
}

static void two_of_four(struct sample *s) {
  int v = local(s, "v");
  code_declare(s->c, v, zero(s));
  for (int i = 0; i < 4; i++) set(s, v, i, code_element(s->c, s->X, code_int(s->c, i)));
  for (int i = 0; i < 4; i += 3)
    code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, i)), CODE_SET,
                code_variable_at(s->c, v, i));
}

static void one_by_another(struct sample *s) {
  int v = local(s, "v"), w = local(s, "w");
  code_declare(s->c, v, zero(s));
  code_declare(s->c, w, zero(s));
  set(s, v, 0, code_element(s->c, s->X, code_int(s->c, 0)));
  set(s, w, 0, code_variable_at(s->c, v, 0));
  move(s, code_int(s->c, 7));
}

// The second copy of the block reads what the first does not.
static void two_copies(struct sample *s) {
  int v = local(s, "v");
  for (int copy = 0; copy < 2; copy++) {
    int block = code_open_block(s->c);
    code_declare(s->c, v, zero(s));
    for (int i = 0; i < 2; i++) set(s, v, i, code_element(s->c, s->X, code_int(s->c, i)));
    code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, copy)), CODE_SET,
                code_variable_at(s->c, v, copy));
    code_close(s->c, block);
  }
}

// Only adding to it reads it, or a place in another array: the array goes, the loop with it.
static void array_of_sums(struct sample *s) {
  code_declare(s->c, s->P, -1);
  int loop = open_loop(s, 0, 8);
  code_assign(s->c, code_element(s->c, s->P, counter(s)), CODE_ADD, zero(s));
  code_close(s->c, loop);
  move(s, code_int(s->c, 7));
}

static void array_that_is_read(struct sample *s) {
  code_declare(s->c, s->P, -1);
  code_assign(s->c, code_element(s->c, s->P, code_int(s->c, 1)), CODE_SET, zero(s));
  code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), CODE_SET,
              code_element(s->c, s->P, code_int(s->c, 2)));
}

// ---- what indices have in common ----

static int index_of(struct sample *s, int64_t of_i, int64_t of_j, int64_t add) {
  struct affine_term t[2] = {{counter(s), of_i}, {code_variable_at(s->c, s->j, 0), of_j}};
  return code_sum(s->c, t, 2, add);
}

struct two_loops {
  int outer, inner;
};

static struct two_loops open_two(struct sample *s, int parallel) {
  struct two_loops l;
  int low = code_int(s->c, 0), high = code_int(s->c, 6);
  l.outer = code_open_for(s->c, s->i, low, high, 1, parallel);
  l.inner = code_open_for(s->c, s->j, low, high, 1, 0);
  return l;
}

static void close_two(struct sample *s, struct two_loops l) {
  code_close(s->c, l.inner);
  code_close(s->c, l.outer);
}

static void place_of_one_array(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  for (int i = 0; i < 3; i++)
    code_assign(s->c, code_element(s->c, s->Y, index_of(s, 8, 1, i)), CODE_SET, zero(s));
  close_two(s, l);
}

static void too_few_uses(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  move(s, index_of(s, 8, 1, 0));
  close_two(s, l);
}

// i + j stands twice, and i*3 + j*3
static void multiples(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  move(s, index_of(s, 1, 1, 2));
  code_assign(s->c, code_element(s->c, s->Y, index_of(s, 3, 3, 1)), CODE_SET, zero(s));
  close_two(s, l);
}

static void collapsed(struct sample *s) {
  struct two_loops l = open_two(s, 2);
  for (int i = 0; i < 4; i++) move(s, place(s, i));
  for (int i = 0; i < 3; i++) move(s, index_of(s, 8, 1, i));
  close_two(s, l);
}

// The quotient is known in the outer loop.
static void outermost(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  int third =
      code_operation(s->c, PX_DIV, code_type(CODE_INDEX, 1), counter(s), code_int(s->c, 3), -1);
  for (int i = 1; i < 4; i++) {
    struct affine_term t[2] = {{third, 4 * i}, {code_variable_at(s->c, s->j, 0), 5 - i}};
    code_assign(s->c, code_element(s->c, s->Y, code_sum(s->c, t, 2, 0)), CODE_SET, zero(s));
  }
  close_two(s, l);
}

// Two loops, one after the other, share a name; both the same form.
static void one_after_the_other(struct sample *s) {
  place_of_one_array(s);
  place_of_one_array(s);
}

static int integers(struct sample *s) {
  return code_variable(s->c, "N", CODE_INPUT, code_type(PROGRAM_I32, 1), 64);
}

static void load_three_times(struct sample *s, int N) {
  for (int i = 0; i < 3; i++) {
    struct affine_term t = {code_convert(s->c, code_element(s->c, N, counter(s)), CODE_INDEX), 2};
    int from = code_element(s->c, s->X, code_sum(s->c, &t, 1, i));
    code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, i)), CODE_SET, from);
  }
}

static void load(struct sample *s) {
  int N = integers(s), loop = open_loop(s, 0, 4);
  load_three_times(s, N);
  code_close(s->c, loop);
}

static void guarded_load(struct sample *s) {
  int N = integers(s), loop = open_loop(s, 0, 4), inner = code_open_if(s->c, small(s));
  load_three_times(s, N);
  code_close(s->c, inner);
  code_close(s->c, loop);
}

// The inner loop runs as often as the data say: perhaps not once.
static void load_in_a_loop_of_data(struct sample *s) {
  int N = integers(s), loop = open_loop(s, 0, 4);
  int many = code_element(s->c, N, code_int(s->c, 0));
  int inner = code_open_for(s->c, s->j, code_int(s->c, 0), many, 1, 0);
  load_three_times(s, N);
  code_close(s->c, inner);
  code_close(s->c, loop);
}

// A form that is no array's place may be computed where none of its uses is: it cannot trap.
static void guarded_sum(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  int inner = code_open_if(s->c, small(s));
  for (int i = 0; i < 3; i++) move(s, index_of(s, 8, 1, i));
  code_close(s->c, inner);
  close_two(s, l);
}

// ... unless it could pass what 64 bits hold.
static void large_sum(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  int inner = code_open_if(s->c, small(s));
  for (int i = 0; i < 3; i++) move(s, index_of(s, INT64_C(1) << 61, 1, i));
  code_close(s->c, inner);
  close_two(s, l);
}

static void lanes_of_a_gather(struct sample *s) {
  s->c->variables.data[s->j].reserved = true;
  place_of_one_array(s);
}

// ---- gathers ----

// block: L[lane] = of[8*i + 2*lane + offset]; V = L
static void gather_into(struct sample *s, int v, int number, int of, int64_t offset) {
  struct code_type f32x4 = code_type(PROGRAM_F32, 4);
  int lanes = code_variable(s->c, "lanes0", CODE_LOCAL, f32x4, 1);
  s->c->variables.data[lanes].reserved = true;
  int block = code_open_block(s->c), zero = code_int(s->c, 0), four = code_int(s->c, 4);
  code_declare(s->c, lanes, -1);
  int loop = code_open_for(s->c, s->j, zero, four, 1, 0);
  int all = code_variable_at(s->c, lanes, 0), lane = code_variable_at(s->c, s->j, 0);
  int element = code_element(s->c, of, index_of(s, 8, 2, offset));
  code_assign(s->c, code_lane(s->c, all, lane), CODE_SET, element);
  code_close(s->c, loop);
  code_assign(s->c, code_variable_at(s->c, v, number), CODE_SET, all);
  code_close(s->c, block);
}

static void gathers_of(struct sample *s, int of, int64_t further) {
  s->c->variables.data[s->j].reserved = true;
  s->c->variables.data[s->j].type = code_type(PROGRAM_I32, 1);
  int loop = open_loop(s, 0, 6);
  int v = code_variable(s->c, "v", CODE_LOCAL, code_type(PROGRAM_F32, 4), 2);
  code_declare(s->c, v, -1);
  gather_into(s, v, 0, of, 0);
  gather_into(s, v, 1, of, further);
  if (of == s->Y)
    code_assign(s->c, code_element(s->c, s->Y, counter(s)), CODE_SET,
                code_number(s->c, PROGRAM_F32, 0));
  code_close(s->c, loop);
}

static void gathered_twice(struct sample *s) {
  gathers_of(s, s->X, 0);
}

// A variable of a stage that has the name which a pass gives, of lanes that Y has in the end.
static int namesake(struct sample *s, const char *name, int lanes) {
  int own = code_variable(s->c, name, CODE_LOCAL, code_type(PROGRAM_F32, lanes), 1);
  code_declare(s->c, own, code_broadcast(s->c, code_number(s->c, PROGRAM_F32, 1), lanes));
  return own;
}

static void is_seen(struct sample *s, int own, int lanes) {
  int to = code_vector(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), lanes);
  code_assign(s->c, to, CODE_SET, code_variable_at(s->c, own, 0));
}

static void gathered_beside_a_namesake(struct sample *s) {
  int own = namesake(s, "X_lanes", 4);
  gathers_of(s, s->X, 0);
  is_seen(s, own, 4);
}

static void gathered_once(struct sample *s) {
  gathers_of(s, s->X, 1);
}

static void gathered_of_what_changes(struct sample *s) {
  gathers_of(s, s->Y, 0);
}

// ---- loads of the first lanes ----

// f32x8(of[8*i], i - 1)
static int first_lanes(struct sample *s, int of) {
  struct affine_term t[2] = {{counter(s), 8}, {counter(s), 1}};
  int place = code_sum(s->c, &t[0], 1, 0), count = code_sum(s->c, &t[1], 1, -1);
  return code_first_lanes(s->c, code_element(s->c, of, place), 8, count);
}

// V = first lanes of `of`, so many times
static void load_first_lanes(struct sample *s, int of, int times) {
  int v = code_variable(s->c, "v", CODE_LOCAL, code_type(PROGRAM_F32, 8), 3);
  code_declare(s->c, v, -1);
  for (int i = 0; i < times; i++)
    code_assign(s->c, code_variable_at(s->c, v, i), CODE_SET, first_lanes(s, of));
}

static void lanes_twice(struct sample *s) {
  int loop = open_loop(s, 0, 8);
  load_first_lanes(s, s->X, 2);
  code_close(s->c, loop);
}

static void lanes_beside_a_namesake(struct sample *s) {
  int own = namesake(s, "X_part", 8);
  int loop = open_loop(s, 0, 8);
  load_first_lanes(s, s->X, 2);
  code_close(s->c, loop);
  is_seen(s, own, 8);
}

static void lanes_once(struct sample *s) {
  int loop = open_loop(s, 0, 8);
  load_first_lanes(s, s->X, 1);
  code_close(s->c, loop);
}

static void lanes_that_change(struct sample *s) {
  int loop = open_loop(s, 0, 8);
  load_first_lanes(s, s->Y, 2);
  code_assign(s->c, first_lanes(s, s->Y), CODE_SET, first_lanes(s, s->Y));
  code_close(s->c, loop);
}

static void value_as_count(struct sample *s) {
  int place = code_element(s->c, s->X, code_int(s->c, 0)), count = code_number(s->c, 0, 3);
  int to = code_vector(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), 8);
  code_assign(s->c, to, CODE_SET, code_first_lanes(s->c, place, 8, count));
}

// ---- borders ----

static int compare(struct sample *s, int op, int x, int y) {
  return code_operation(s->c, op, code_type(CODE_TRUTH, 1), x, y, -1);
}

static int logic(struct sample *s, int op, int x, int y) {
  return code_operation(s->c, op, code_type(CODE_TRUTH, 1), x, y, -1);
}

// Y[to] how= condition ? X[from] : other
static void choose(struct sample *s, enum code_how how, int condition, int from, double other) {
  int x = code_element(s->c, s->X, from), y = code_number(s->c, PROGRAM_F32, other);
  int value = code_operation(s->c, PX_SELECT, code_type(PROGRAM_F32, 1), condition, x, y);
  code_assign(s->c, code_element(s->c, s->Y, counter(s)), how, value);
}

static int inner(struct sample *s) {
  return code_variable_at(s->c, s->j, 0);
}

// low <= i + of_j*j && i + of_j*j < high
static int within(struct sample *s, int64_t of_j, int64_t low, int64_t high) {
  int x = of_j ? index_of(s, 1, of_j, 0) : counter(s);
  return logic(s, PX_AND, compare(s, PX_LE, code_int(s->c, low), x),
               compare(s, PX_LT, x, code_int(s->c, high)));
}

static void edges(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  choose(s, CODE_SET, within(s, 0, 1, 9), counter(s), 0);
  code_close(s->c, loop);
}

static void edges_of_a_sum(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  choose(s, CODE_ADD, within(s, 0, 1, 9), counter(s), 0);
  code_close(s->c, loop);
}

// max(Y[i], .. -inf): nothing is greater than what there is; and a sum to which 2 is added
static void edges_of_a_maximum(struct sample *s) {
  int loop = open_loop(s, 0, 10), x = code_element(s->c, s->X, counter(s));
  int infinite = code_number(s->c, PROGRAM_F32, -HUGE_VAL);
  int to = code_element(s->c, s->Y, counter(s));
  struct code_type f32 = code_type(PROGRAM_F32, 1);
  int value = code_operation(s->c, PX_SELECT, f32, within(s, 0, 1, 9), x, infinite);
  code_assign(s->c, to, CODE_SET, code_operation(s->c, PX_MAX, f32, to, value, -1));
  code_close(s->c, loop);
}

// Y[i] += (1 <= i < 9 ? X[i] : 0) * X[i + 1]
static void edges_of_a_product(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  struct affine_term after = {counter(s), 1};
  int x = code_element(s->c, s->X, counter(s));
  struct code_type f32 = code_type(PROGRAM_F32, 1);
  int zero = code_number(s->c, PROGRAM_F32, 0),
      next = code_element(s->c, s->X, code_sum(s->c, &after, 1, 1));
  int value = code_operation(s->c, PX_SELECT, f32, within(s, 0, 1, 9), x, zero);
  int to = code_element(s->c, s->Y, counter(s));
  code_assign(s->c, to, CODE_ADD, code_operation(s->c, PX_MUL, f32, value, next, -1));
  code_close(s->c, loop);
}

static void another_number(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  choose(s, CODE_ADD, within(s, 0, 1, 10), counter(s), 2);
  code_close(s->c, loop);
}

static void window_of(struct sample *s, int64_t of_j, int64_t low, int64_t high, int parallel) {
  struct two_loops l = open_two(s, parallel);
  choose(s, CODE_ADD, within(s, of_j, low, high), index_of(s, 1, 1, 0), 0);
  close_two(s, l);
}

static void window(struct sample *s) {
  window_of(s, 1, 2, 9, 0);
}

static void dilated(struct sample *s) {
  window_of(s, 2, 3, 12, 0);
}

static void backwards(struct sample *s) {
  window_of(s, -1, 0, 5, 0);
}

static void outer_alone(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  choose(s, CODE_ADD, within(s, 0, 1, 6), inner(s), 0);
  close_two(s, l);
}

static void parallel(struct sample *s) {
  struct two_loops l = open_two(s, 1);
  choose(s, CODE_ADD, within(s, 0, 1, 6), inner(s), 0);
  close_two(s, l);
}

static void not_or(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  int out = logic(s, PX_OR, compare(s, PX_GT, code_int(s->c, 1), counter(s)),
                  compare(s, PX_GE, counter(s), code_int(s->c, 9)));
  choose(s, CODE_ADD, logic(s, PX_NOT, out, -1), counter(s), 0);
  code_close(s->c, loop);
}

static void one_place(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  choose(s, CODE_SET, compare(s, PX_EQ, counter(s), code_int(s->c, 4)), code_int(s->c, 0), 1);
  code_close(s->c, loop);
}

static void every_other(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  int two = code_int(s->c, 2),
      odd = code_operation(s->c, PX_MOD, code_type(CODE_INDEX, 1), counter(s), two, -1);
  choose(s, CODE_ADD, compare(s, PX_EQ, odd, code_int(s->c, 0)), inner(s), 0);
  close_two(s, l);
}

static void steps(struct sample *s) {
  int loop = code_open_for(s->c, s->i, code_int(s->c, 0), code_int(s->c, 32), 4, 0);
  choose(s, CODE_SET, compare(s, PX_LE, code_int(s->c, 6), counter(s)), counter(s), 0);
  code_close(s->c, loop);
}

// Under a condition of its own, which decides.
static void under_a_guard(struct sample *s) {
  int loop = open_loop(s, 0, 10);
  int guard = code_open_if(s->c, compare(s, PX_LT, counter(s), code_int(s->c, 5)));
  choose(s, CODE_SET, compare(s, PX_LT, counter(s), code_int(s->c, 6)), counter(s), 0);
  code_close(s->c, guard);
  code_close(s->c, loop);
}

// Where not both hold, either may.
static void other_of_two(struct sample *s) {
  struct two_loops l = open_two(s, 0);
  int low = compare(s, PX_LT, counter(s), code_int(s->c, 3));
  int guard =
      code_open_if(s->c, logic(s, PX_AND, low, compare(s, PX_LT, inner(s), code_int(s->c, 2))));
  move(s, inner(s));
  code_close(s->c, guard);
  int other = code_open_else(s->c, guard);
  choose(s, CODE_SET, compare(s, PX_LT, inner(s), code_int(s->c, 2)), inner(s), 0);
  code_close(s->c, other);
  close_two(s, l);
}

// Y[4*i + lane] = lane within ? X[4*i + stride*lane - 1] : 0
static void lanes_of(struct sample *s, int64_t stride) {
  s->c->variables.data[s->j].reserved = true;
  s->c->variables.data[s->j].type = code_type(PROGRAM_I32, 1);
  int loop = open_loop(s, 0, 8), zero = code_int(s->c, 0), four = code_int(s->c, 4);
  int lane = code_open_for(s->c, s->j, zero, four, 1, 0);
  int inside = compare(s, PX_LE, code_int(s->c, 1), index_of(s, 4, 1, 0));
  int x = code_element(s->c, s->X, index_of(s, 4, stride, -1)),
      y = code_number(s->c, PROGRAM_F32, 0);
  int value = code_operation(s->c, PX_SELECT, code_type(PROGRAM_F32, 1), inside, x, y);
  code_assign(s->c, code_element(s->c, s->Y, index_of(s, 4, 1, 0)), CODE_SET, value);
  code_close(s->c, lane);
  code_close(s->c, loop);
}

static void lanes(struct sample *s) {
  lanes_of(s, 1);
}

static void lanes_apart(struct sample *s) {
  lanes_of(s, 2);
}

// Y[0] += 2 <= lane && lane < 5 ? X[lane] : 1
static void lanes_between(struct sample *s) {
  s->c->variables.data[s->j].reserved = true;
  int lane = code_open_for(s->c, s->j, code_int(s->c, 0), code_int(s->c, 8), 1, 0);
  int inside = logic(s, PX_AND, compare(s, PX_LE, code_int(s->c, 2), inner(s)),
                     compare(s, PX_LT, inner(s), code_int(s->c, 5)));
  int x = code_element(s->c, s->X, inner(s)), y = code_number(s->c, PROGRAM_F32, 1);
  int value = code_operation(s->c, PX_SELECT, code_type(PROGRAM_F32, 1), inside, x, y);
  code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), CODE_ADD, value);
  code_close(s->c, lane);
}

// Y[lane] = 1 <= lane + i && lane + i < 3 && i < 5 ? X[lane + i] : 0
static void lanes_of_both_ends(struct sample *s) {
  s->c->variables.data[s->j].reserved = true;
  s->c->variables.data[s->j].type = code_type(PROGRAM_I32, 1);
  int loop = open_loop(s, 0, 8), lane;
  lane = code_open_for(s->c, s->j, code_int(s->c, 0), code_int(s->c, 4), 1, 0);
  int at = index_of(s, 1, 1, 0);
  int inside = logic(s, PX_AND, compare(s, PX_LE, code_int(s->c, 1), at),
                     compare(s, PX_LT, at, code_int(s->c, 3)));
  inside = logic(s, PX_AND, inside, compare(s, PX_LT, counter(s), code_int(s->c, 5)));
  int value = code_operation(s->c, PX_SELECT, code_type(PROGRAM_F32, 1), inside,
                             code_element(s->c, s->X, at), code_number(s->c, PROGRAM_F32, 0));
  code_assign(s->c, code_element(s->c, s->Y, inner(s)), CODE_SET, value);
  code_close(s->c, lane);
  code_close(s->c, loop);
}

// Y[lane] = lane < 3 ? 1 : 0
static void lanes_of_a_number(struct sample *s) {
  s->c->variables.data[s->j].reserved = true;
  int lane = code_open_for(s->c, s->j, code_int(s->c, 0), code_int(s->c, 8), 1, 0);
  int value = code_operation(s->c, PX_SELECT, code_type(PROGRAM_F32, 1),
                             compare(s, PX_LT, inner(s), code_int(s->c, 3)),
                             code_number(s->c, PROGRAM_F32, 1), code_number(s->c, PROGRAM_F32, 0));
  code_assign(s->c, code_element(s->c, s->Y, inner(s)), CODE_SET, value);
  code_close(s->c, lane);
}

// ---- quotients and remainders of what is read ----

// Y[i] = X[(x/12)*by + (x%12)*times + 1], of x = I[i], or i itself
static void divide(struct sample *s, bool reads, int64_t by, int64_t times) {
  struct code *c = s->c;
  int I = code_variable(c, "I", CODE_INPUT, code_type(PROGRAM_I32, 1), 8);
  int loop = open_loop(s, 0, 8), twelve = code_int(c, 12);
  int x = reads ? code_element(c, I, counter(s)) : counter(s);
  struct code_type type = c->exprs.data[x].type;
  int quotient = code_operation(c, PX_DIV, type, x, twelve, -1);
  int remainder = code_operation(c, PX_MOD, type, x, twelve, -1);
  struct affine_term t[2] = {{code_convert(c, quotient, CODE_INDEX), by},
                             {code_convert(c, remainder, CODE_INDEX), times}};
  int from = code_element(c, s->X, code_sum(c, t, 2, 1));
  code_assign(c, code_element(c, s->Y, counter(s)), CODE_SET, from);
  code_close(c, loop);
}

static void divided_column(struct sample *s) {
  divide(s, true, 30, 2);
}

static void divided_counter(struct sample *s) {
  divide(s, false, 30, 2);
}

static void divided_for_nothing(struct sample *s) {
  divide(s, true, 24, 2);
}

// ---- vectors that are set piece by piece ----

struct a_piece {
  int64_t first, end, at; /* lanes, and where the first is in X; -1: 0 */
};

// let lanes0 [= 0]; lanes0[lane] = X[8*i + at + lane - first] for each piece; Y[8*i, 4 lanes] = lanes0
static void set_pieces(struct sample *s, bool zero, const struct a_piece *pieces, int count) {
  struct code *c = s->c;
  int loop = open_loop(s, 0, 6);
  int vector = code_variable(c, "lanes0", CODE_LOCAL, code_type(PROGRAM_F32, 4), 1);
  c->variables.data[vector].reserved = c->variables.data[s->j].reserved = true;
  int number = code_number(c, PROGRAM_F32, 0);
  code_declare(c, vector, zero ? code_broadcast(c, number, 4) : -1);
  for (int i = 0; i < count; i++) {
    const struct a_piece *p = &pieces[i];
    bool one = p->end == p->first + 1;
    int low = code_int(c, p->first), high = code_int(c, p->end), inside = -1;
    if (!one) inside = code_open_for(c, s->j, low, high, 1, 0);
    int lane = one ? low : inner(s);
    struct affine_term t[2] = {{counter(s), 8}, {inner(s), 1}};
    int place = code_sum(c, t, one ? 1 : 2, p->at - (one ? 0 : p->first));
    int value = p->at < 0 ? code_number(c, PROGRAM_F32, 0) : code_element(c, s->X, place);
    code_assign(c, code_lane(c, code_variable_at(c, vector, 0), lane), CODE_SET, value);
    if (!one) code_close(c, inside);
  }
  struct affine_term eight = {counter(s), 8};
  int to = code_vector(c, code_element(c, s->Y, code_sum(c, &eight, 1, 0)), 4);
  code_assign(c, to, CODE_SET, code_variable_at(c, vector, 0));
  code_close(c, loop);
}

static void piece_behind_zero(struct sample *s) {
  set_pieces(s, true, (struct a_piece[]){{0, 1, -1}, {1, 4, 2}}, 2);
}

static void piece_between_zeros(struct sample *s) {
  set_pieces(s, true, (struct a_piece[]){{1, 3, 2}, {3, 4, -1}}, 2);
}

static void piece_before_what_is_not_set(struct sample *s) {
  set_pieces(s, false, (struct a_piece[]){{0, 3, 1}}, 1);
}

static void row_that_is_rolled(struct sample *s) {
  set_pieces(s, false, (struct a_piece[]){{0, 1, 7}, {1, 4, 0}}, 2);
}

static void pieces_of_nothing(struct sample *s) {
  set_pieces(s, true, (struct a_piece[]){{0, 4, -1}}, 1);
}

static void three_pieces(struct sample *s) {
  set_pieces(s, false, (struct a_piece[]){{0, 1, 7}, {1, 3, 0}, {3, 4, 5}}, 3);
}

// ---- vectors that are stored across ----

// let lanes0 = v_i; Y[9*j + at + i] = lanes0[j], for i of `order`
static void store_across(struct sample *s, int lanes, int64_t stride, const int *order, int count) {
  struct code *c = s->c;
  int v = code_variable(c, "v", CODE_LOCAL, code_type(PROGRAM_F32, lanes), 8);
  int vector = code_variable(c, "lanes0", CODE_LOCAL, code_type(PROGRAM_F32, lanes), 1);
  c->variables.data[vector].reserved = c->variables.data[s->j].reserved = true;
  code_declare(c, v, code_broadcast(c, code_number(c, PROGRAM_F32, 1), lanes));
  for (int i = 0; i < count; i++) {
    int block = code_open_block(c);
    code_declare(c, vector, code_variable_at(c, v, i));
    int lane = code_open_for(c, s->j, code_int(c, 0), code_int(c, lanes), 1, 0);
    struct affine_term t = {inner(s), stride};
    int to = code_element(c, s->Y, code_sum(c, &t, 1, order[i] + 3));
    code_assign(c, to, CODE_SET, code_lane(c, code_variable_at(c, vector, 0), inner(s)));
    code_close(c, lane);
    code_close(c, block);
  }
  move(s, code_int(c, 0));
}

static void four_across(struct sample *s) {
  store_across(s, 4, 9, (int[]){2, 0, 1, 3}, 4);
}

static void four_across_close_together(struct sample *s) {
  store_across(s, 4, 4, (int[]){0, 1, 2, 3}, 4);
}

static void five_of_eight_across(struct sample *s) {
  store_across(s, 8, 5, (int[]){0, 1, 2, 3, 4}, 5);
}

// ... to rows of 8, of which as many are used: the other lanes may be stored
static void five_of_eight_in_rows(struct sample *s) {
  s->c->variables.data[s->Y].row = 8;
  s->c->variables.data[s->Y].used = 5;
  store_across(s, 8, 8, (int[]){-3, -2, -1, 0, 1}, 5);
}

// ... and one more, which is another's
static void five_of_six_in_rows(struct sample *s) {
  s->c->variables.data[s->Y].row = 8;
  s->c->variables.data[s->Y].used = 6;
  store_across(s, 8, 8, (int[]){-3, -2, -1, 0, 1}, 5);
}

static void three_across(struct sample *s) {
  store_across(s, 4, 9, (int[]){0, 1, 2}, 3);
}

static void across_with_a_gap(struct sample *s) {
  store_across(s, 4, 9, (int[]){0, 1, 2, 4}, 4);
}

// The first four of them write what the others do, a lane later.
static void across_in_one_place(struct sample *s) {
  store_across(s, 4, 9, (int[]){0, 1, 2, 3, 9, 10, 11, 12}, 8);
}

// ---- long sums ----

// let a = 0; for j in 0..times, for i in 0..steps: a += X[0], or X[0] * X[0]; Y[0] = a
static void sum_up(struct sample *s, int64_t times, int64_t steps, bool product) {
  struct code *c = s->c;
  int a = code_variable_at(c, s->a, 0), x = code_element(c, s->X, code_int(c, 0));
  code_declare(c, s->a, zero(s));
  int outer = times > 1 ? code_open_for(c, s->j, code_int(c, 0), code_int(c, times), 1, 0) : -1;
  int loop = open_loop(s, 0, steps);
  int value = product ? code_operation(c, PX_MUL, code_type(PROGRAM_F32, 1), x, x, -1) : x;
  code_assign(c, a, CODE_ADD, value);
  code_close(c, loop);
  if (outer >= 0) code_close(c, outer);
  code_assign(c, code_element(c, s->Y, code_int(c, 0)), CODE_SET, a);
}

static void long_sum(struct sample *s) {
  sum_up(s, 1, 1300, false);
}

static void long_sum_of_a_prime_number(struct sample *s) {
  sum_up(s, 1, 521, false);
}

static void very_long_sum(struct sample *s) {
  sum_up(s, 1, 1 << 20, true);
}

static void long_inner_sum(struct sample *s) {
  sum_up(s, 3, 256, false);
}

static void long_sum_of_short_ones(struct sample *s) {
  sum_up(s, 700, 4, false);
}

static void long_enough(struct sample *s) {
  sum_up(s, 8, 64, false);
}

static void long_sum_of_squares(struct sample *s) {
  sum_up(s, 1, 1300, true);
}

// v += number * f32x4(X[0]), with X[0] as a row of a matrix times a panel
static void add_products(struct sample *s, int64_t steps, bool constant) {
  struct code *c = s->c;
  struct code_type v4 = code_type(PROGRAM_F32, 4);
  int v = code_variable(c, "v", CODE_LOCAL, v4, 1), x = code_element(c, s->X, code_int(c, 0));
  int sum = code_variable_at(c, v, 0), panel = code_vector(c, x, 4);
  if (constant) x = code_number(c, PROGRAM_F32, 3);
  code_declare(c, v, code_broadcast(c, zero(s), 4));
  int loop = open_loop(s, 0, steps);
  code_assign(c, sum, CODE_ADD, code_operation(c, PX_MUL, v4, x, panel, -1));
  code_close(c, loop);
  code_assign(c, code_vector(c, code_element(c, s->Y, code_int(c, 0)), 4), CODE_SET, sum);
}

static void products(struct sample *s) {
  add_products(s, 8192, false);
}

static void long_sum_of_products(struct sample *s) {
  add_products(s, 16384, false);
}

static void long_sum_of_multiples(struct sample *s) {
  add_products(s, 1024, true);
}

// What is summed up so far is seen.
static void long_sum_that_is_read(struct sample *s) {
  struct code *c = s->c;
  int a = code_variable_at(c, s->a, 0);
  code_declare(c, s->a, zero(s));
  int loop = open_loop(s, 0, 2000);
  code_assign(c, a, CODE_ADD, code_element(c, s->X, code_int(c, 0)));
  code_assign(c, code_element(c, s->Y, code_int(c, 0)), CODE_SET, a);
  code_close(c, loop);
}

static void long_sum_in_double(struct sample *s) {
  struct code *c = s->c;
  c->variables.data[s->a].type.element = PROGRAM_F64;
  int x = code_element(c, s->X, code_int(c, 0));
  code_declare(c, s->a, code_number(c, PROGRAM_F64, 0));
  int loop = open_loop(s, 0, 2000);
  code_assign(c, code_variable_at(c, s->a, 0), CODE_ADD, code_convert(c, x, PROGRAM_F64));
  code_close(c, loop);
}

// ---- sums in memory ----

// Y[at] += X[i], or Y[at .. at+4] += f32x4(X[i]), of `lanes` fewer than 4 the first ones
static void add_to(struct sample *s, int array, int at, int lanes) {
  struct code *c = s->c;
  int to = code_element(c, array, at), x = code_element(c, s->X, counter(s));
  if (lanes > 1) x = code_vector(c, x, 4);
  if (lanes == 4) to = code_vector(c, to, 4);
  if (lanes > 1 && lanes < 4) to = code_first_lanes(c, to, 4, code_int(c, lanes));
  code_assign(c, to, CODE_ADD, x);
}

static void sum_in_memory(struct sample *s) {
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, code_int(s->c, 3), 1);
  code_close(s->c, loop);
  move(s, code_int(s->c, 7));
}

// Y[5] twice, as of a reduction that is unrolled.
static void sums_of_two_places(struct sample *s) {
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, code_int(s->c, 5), 1);
  add_to(s, s->Y, code_int(s->c, 9), 1);
  add_to(s, s->Y, code_int(s->c, 5), 1);
  code_close(s->c, loop);
}

static void sums_of_vectors(struct sample *s) {
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, code_int(s->c, 8), 4);
  add_to(s, s->Y, code_int(s->c, 12), 3);
  code_close(s->c, loop);
}

static void sum_of_places_that_move(struct sample *s) {
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, counter(s), 1);
  code_close(s->c, loop);
}

// What another branch adds stays there.
static void sum_beside_a_branch(struct sample *s, bool only) {
  int loop = open_loop(s, 0, 6), inner = code_open_if(s->c, small(s));
  add_to(s, s->Y, code_int(s->c, 3), 1);
  code_close(s->c, inner);
  if (!only) add_to(s, s->Y, code_int(s->c, 3), 1);
  code_close(s->c, loop);
}

static void sum_in_a_branch(struct sample *s) {
  sum_beside_a_branch(s, true);
}

static void sum_in_a_branch_and_beside(struct sample *s) {
  sum_beside_a_branch(s, false);
}

static void sum_that_is_read(struct sample *s) {
  struct code *c = s->c;
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, code_int(c, 3), 1);
  code_assign(c, code_element(c, s->Y, code_int(c, 4)), CODE_ADD,
              code_element(c, s->Y, code_int(c, 3)));
  code_close(c, loop);
}

static void sum_that_is_set(struct sample *s) {
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, code_int(s->c, 3), 1);
  move(s, counter(s));
  code_close(s->c, loop);
}

// The array is another one in each step.
static void sum_of_an_array_within(struct sample *s, bool heap) {
  struct code *c = s->c;
  int loop = open_loop(s, 0, 6), inner = -1;
  if (heap) inner = code_open_allocate(c, &s->H, 1);
  if (!heap) code_declare(c, s->P, -1);
  add_to(s, heap ? s->H : s->P, code_int(c, 3), 1);
  if (heap) code_close(c, inner);
  code_close(c, loop);
}

static void sum_of_a_declared_array(struct sample *s) {
  sum_of_an_array_within(s, false);
}

static void sum_of_an_allocated_array(struct sample *s) {
  sum_of_an_array_within(s, true);
}

// for j in 0..6: for i in 0..high: Y[place] += X[i]
static void sum_in_two_loops(struct sample *s, int high, int parallel, int place) {
  struct code *c = s->c;
  int outer = code_open_for(c, s->j, code_int(c, 0), code_int(c, 6), 1, 0);
  int loop = code_open_for(c, s->i, code_int(c, 0), high, 1, parallel);
  add_to(s, s->Y, place, 1);
  code_close(c, loop);
  code_close(c, outer);
}

static int outer_counter(struct sample *s) {
  return code_variable_at(s->c, s->j, 0);
}

static void sums_of_a_loop_within(struct sample *s) {
  sum_in_two_loops(s, code_int(s->c, 6), 0, outer_counter(s));
}

static void sum_of_two_loops(struct sample *s) {
  sum_in_two_loops(s, code_int(s->c, 6), 0, code_int(s->c, 2));
}

// Threads would share the variable.
static void sum_in_a_parallel_loop(struct sample *s) {
  sum_in_two_loops(s, code_int(s->c, 6), 1, code_int(s->c, 2));
}

// The loop runs for some steps of the one around alone: elsewhere the place may be beyond the array.
static void sum_of_a_loop_that_may_not_run(struct sample *s) {
  sum_in_two_loops(s, outer_counter(s), 0, outer_counter(s));
}

static void sum_of_two_that_may_not_run(struct sample *s) {
  sum_in_two_loops(s, outer_counter(s), 0, code_int(s->c, 2));
}

// Memory says which place it is, and may change.
static void sum_of_a_place_in_memory(struct sample *s) {
  struct code *c = s->c;
  int I = code_variable(c, "I", CODE_INPUT, code_type(PROGRAM_I32, 1), 8);
  int loop = open_loop(s, 0, 6);
  add_to(s, s->Y, code_convert(c, code_element(c, I, code_int(c, 0)), CODE_INDEX), 1);
  code_close(c, loop);
}

// ---- loops that do not always run ----

// for i in 0..4: for j in 0..max(2 - 4*i, least): Y[i*40] += X[0], which is beyond Y from the second step on
static void run_at_least(struct sample *s, int64_t least) {
  struct code *c = s->c;
  struct code_type index = code_type(CODE_INDEX, 1);
  int loop = open_loop(s, 0, 4);
  struct affine_term left = {counter(s), -4}, at = {counter(s), 40};
  int high = code_operation(c, PX_MAX, index, code_sum(c, &left, 1, 2), code_int(c, least), -1);
  int inner = code_open_for(c, s->j, code_int(c, 0), high, 1, 0);
  code_assign(c, code_element(c, s->Y, code_sum(c, &at, 1, 0)), CODE_ADD,
              code_element(c, s->X, code_int(c, 0)));
  code_close(c, inner);
  code_close(c, loop);
}

static void a_loop_that_runs_once(struct sample *s) {
  run_at_least(s, 0);
}

static void a_loop_that_always_runs(struct sample *s) {
  run_at_least(s, 1);
}

#define HEAD  "function sample(X f32[64], Y f32[64])\n"
#define LOOPS HEAD "  for i in 0..6\n    for j in 0..6\n"

struct pass_row {
  void (*build)(struct sample *);
  const char *expected; /* NULL: it stays as it was built */
};

static void drop(struct code *c) {
  if (code_drop_dead_code(c)) code_simplify(c);
}

static void check_pass(const struct pass_row *row, void (*pass)(struct code *)) {
  struct sample s = sample();
  struct buf before = {0}, out = {0};
  row->build(&s);
  CHECK_INT(code_verify(&ctx, s.c, "a test"), CANVAS_OK, ctx.message);
  code_print(s.c, &before);
  pass(s.c);
  CHECK_INT(code_verify(&ctx, s.c, "a test"), CANVAS_OK, ctx.message);
  code_print(s.c, &out);
  CHECK_TEXT(out.text, row->expected ? row->expected : before.text, before.text);
  buf_free(&before);
  buf_free(&out);
  code_free(s.c);
}

static void drops_dead(void **state) {
  static const struct pass_row rows[] = {
      {two_of_four, HEAD "  let v f32[4] = 0, no v_1, no v_2\n"
                         "  v_0 = X[0]\n"
                         "  v_3 = X[3]\n"
                         "  Y[0] = v_0\n"
                         "  Y[3] = v_3\n"},
      {one_by_another, HEAD "  Y[7] = X[7]\n"},
      {two_copies, HEAD "  block\n"
                        "    let v f32[4] = 0, no v_1, no v_2, no v_3\n"
                        "    v_0 = X[0]\n"
                        "    Y[0] = v_0\n"
                        "  block\n"
                        "    let v f32[4] = 0, no v_0, no v_2, no v_3\n"
                        "    v_1 = X[1]\n"
                        "    Y[1] = v_1\n"},
      {array_of_sums, HEAD "  Y[7] = X[7]\n"},
      {array_that_is_read, HEAD "  let P f32[8]\n  P[1] = 0\n  Y[0] = P[2]\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, drop);
}

static void gather(struct code *c) {
  if (code_share_gathers(c)) code_simplify(c);
}

static void gathers_once(void **state) {
  static const struct pass_row rows[] = {
      {gathered_twice, HEAD "  for i in 0..6\n"
                            "    let v f32x4[2]\n"
                            "    let X_lanes f32x4\n"
                            "    for j in 0..4\n"
                            "      X_lanes<j> = X[i*8 + j*2]\n"
                            "    v_0 = X_lanes\n"
                            "    v_1 = X_lanes\n"},
      {gathered_beside_a_namesake, HEAD "  let X_lanes f32x4 = f32x4.all(1)\n"
                                        "  for i in 0..6\n"
                                        "    let v f32x4[2]\n"
                                        "    let X_lanes f32x4\n"
                                        "    for j in 0..4\n"
                                        "      X_lanes<j> = X[i*8 + j*2]\n"
                                        "    v_0 = X_lanes\n"
                                        "    v_1 = X_lanes\n"
                                        "  f32x4(Y[0]) = X_lanes\n"},
      {gathered_once, HEAD "  for i in 0..6\n"
                           "    let v f32x4[2]\n"
                           "    block\n"
                           "      let lanes0 f32x4\n"
                           "      for j in 0..4\n"
                           "        lanes0<j> = X[i*8 + j*2]\n"
                           "      v_0 = lanes0\n"
                           "    block\n"
                           "      let lanes0 f32x4\n"
                           "      for j in 0..4\n"
                           "        lanes0<j> = X[i*8 + j*2 + 1]\n"
                           "      v_1 = lanes0\n"},
      {gathered_of_what_changes, HEAD "  for i in 0..6\n"
                                      "    let v f32x4[2]\n"
                                      "    block\n"
                                      "      let lanes0 f32x4\n"
                                      "      for j in 0..4\n"
                                      "        lanes0<j> = Y[i*8 + j*2]\n"
                                      "      v_0 = lanes0\n"
                                      "    block\n"
                                      "      let lanes0 f32x4\n"
                                      "      for j in 0..4\n"
                                      "        lanes0<j> = Y[i*8 + j*2]\n"
                                      "      v_1 = lanes0\n"
                                      "    Y[i] = 0\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, gather);
}

static void permute(struct code *c) {
  if (code_permute_gathers(c)) code_simplify(c);
}

// lanes0[lane] = X[8*i + lane/2*3]
static void gathered_from_two_places(struct sample *s) {
  gathered_once(s);
  struct code *c = s->c;
  for (int i = 0; i < c->exprs.count; i++) {
    struct code_expr *e = &c->exprs.data[i];
    for (int k = 0; e->op == CODE_SUM && k < e->count; k++) {
      struct affine_term *t = &c->terms.data[e->first + k];
      if (t->coef != 2) continue;
      int two = code_int(c, 2);
      int half = code_operation(c, PX_DIV, c->variables.data[s->j].type, t->expr, two, -1);
      c->terms.data[c->exprs.data[i].first + k] = (struct affine_term){half, 3};
      e = &c->exprs.data[i];
    }
  }
}

static void permutes_gathers(void **state) {
  static const struct pass_row rows[] = {
      {gathered_once, HEAD "  for i in 0..6\n"
                           "    let v f32x4[2]\n"
                           "    block\n"
                           "      let lanes0 f32x4\n"
                           "      lanes0 = permute(f32x4(X[i*8]), f32x4(X[i*8 + 4]): 0 2 4 6)\n"
                           "      v_0 = permute(f32x4(X[i*8]), f32x4(X[i*8 + 4]): 0 2 4 6)\n"
                           "    block\n"
                           "      let lanes0 f32x4\n"
                           "      lanes0 = permute(f32x4(X[i*8]), f32x4(X[i*8 + 4]): 1 3 5 7)\n"
                           "      v_1 = permute(f32x4(X[i*8]), f32x4(X[i*8 + 4]): 1 3 5 7)\n"},
      {gathered_from_two_places,
       HEAD "  for i in 0..6\n"
            "    let v f32x4[2]\n"
            "    block\n"
            "      let lanes0 f32x4\n"
            "      lanes0 = permute(f32x4(X[i*8]): 0 0 3 3)\n"
            "      v_0 = permute(f32x4(X[i*8]): 0 0 3 3)\n"
            "    block\n"
            "      let lanes0 f32x4\n"
            "      lanes0 = permute(f32x4.all(X[i*8 + 1]), f32x4.all(X[i*8 + 4]): 0 1 6 7)\n"
            "      v_1 = permute(f32x4.all(X[i*8 + 1]), f32x4.all(X[i*8 + 4]): 0 1 6 7)\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, permute);
}

static void joins_remainders(void **state) {
  static const struct pass_row rows[] = {
      {divided_column,
       "function sample(X f32[64], Y f32[64])\n"
       "  for i in 0..8\n"
       "    Y[i] = X[index((I[i] / 12))*6 + index(I[i])*2 + 1]\n"},
      {divided_counter, NULL},
      {divided_for_nothing, NULL},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_share_divisions);
}

static void shortens_sums(void **state) {
#define BEGIN     HEAD "  let a f32 = 0\n  let a_sum f32 = 0\n"
#define BLOCK_END "    a_sum += a\n    a = 0\n"
#define END       "  a += a_sum\n  Y[0] = a\n"
  static const struct pass_row rows[] = {
      {long_sum, BEGIN "  for i_block in 0..1300 step 100\n"
                       "    for i in i_block..i_block + 100\n"
                       "      a += X[0]\n" BLOCK_END END},
      {long_sum_of_a_prime_number, BEGIN "  for i_block in 0..521 step 128\n"
                                         "    for i in i_block..min(i_block + 128, 521)\n"
                                         "      a += X[0]\n" BLOCK_END END},
      {long_sum_of_squares, BEGIN "  for i_block in 0..1300 step 100\n"
                                  "    for i in i_block..i_block + 100\n"
                                  "      a += (X[0] * X[0])\n" BLOCK_END END},
      {very_long_sum, HEAD "  let a f32 = 0\n  let a_sum_sum f32 = 0\n  let a_sum f32 = 0\n"
                           "  for i_block_block in 0..1048576 step 16384\n"
                           "    for i_block in i_block_block..i_block_block + 16384 step 128\n"
                           "      for i in i_block..i_block + 128\n"
                           "        a += (X[0] * X[0])\n"
                           "      a_sum += a\n"
                           "      a = 0\n"
                           "    a_sum_sum += a_sum\n"
                           "    a_sum = 0\n"
                           "  a_sum += a_sum_sum\n" END},
      {long_sum_of_multiples, HEAD "  let v f32x4 = f32x4.all(0)\n"
                                   "  let v_sum f32x4 = f32x4.all(0)\n"
                                   "  for i_block in 0..1024 step 128\n"
                                   "    for i in i_block..i_block + 128\n"
                                   "      v += (3 * f32x4(X[0]))\n"
                                   "    v_sum += v\n"
                                   "    v = f32x4.all(0)\n"
                                   "  v += v_sum\n"
                                   "  f32x4(Y[0]) = v\n"},
      {long_sum_of_products, HEAD "  let v f32x4 = f32x4.all(0)\n"
                                  "  let v_sum f32x4 = f32x4.all(0)\n"
                                  "  for i_block in 0..16384 step 512\n"
                                  "    for i in i_block..i_block + 512\n"
                                  "      v += (X[0] * f32x4(X[0]))\n"
                                  "    v_sum += v\n"
                                  "    v = f32x4.all(0)\n"
                                  "  v += v_sum\n"
                                  "  f32x4(Y[0]) = v\n"},
      {long_inner_sum, BEGIN "  for j in 0..3\n"
                             "    for i_block in 0..256 step 128\n"
                             "      for i in i_block..i_block + 128\n"
                             "        a += X[0]\n"
                             "      a_sum += a\n"
                             "      a = 0\n" BLOCK_END END},
      {long_sum_of_short_ones, BEGIN "  for j_block in 0..700 step 28\n"
                                     "    for j in j_block..j_block + 28\n"
                                     "      for i in 0..4\n"
                                     "        a += X[0]\n" BLOCK_END END},
      {long_enough, NULL},
      {products, NULL},
      {long_sum_that_is_read, NULL},
      {long_sum_in_double, NULL},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_block_sums);
#undef BEGIN
#undef BLOCK_END
#undef END
}

static void nothing(struct code *c) {}

static void loops_are_conditions(void **state) {
  static const struct pass_row row = {a_loop_that_runs_once, NULL};
  check_pass(&row, nothing);
}

static void promotes_sums(void **state) {
  static const struct pass_row rows[] = {
      {sum_in_memory, HEAD "  let Y_sum f32 = 0\n"
                           "  for i in 0..6\n"
                           "    Y_sum += X[i]\n"
                           "  Y[3] += Y_sum\n"
                           "  Y[7] = X[7]\n"},
      {sums_of_two_places, HEAD "  let Y_sum f32[2] = 0\n"
                                "  for i in 0..6\n"
                                "    Y_sum_0 += X[i]\n"
                                "    Y_sum_1 += X[i]\n"
                                "    Y_sum_0 += X[i]\n"
                                "  Y[5] += Y_sum_0\n"
                                "  Y[9] += Y_sum_1\n"},
      {sums_of_vectors, HEAD "  let Y_sum f32x4[2] = f32x4.all(0)\n"
                             "  for i in 0..6\n"
                             "    Y_sum_0 += f32x4(X[i])\n"
                             "    Y_sum_1 += f32x4(X[i])\n"
                             "  f32x4(Y[8]) += Y_sum_0\n"
                             "  f32x4(Y[12], 3) += Y_sum_1\n"},
      {sums_of_a_loop_within, HEAD "  for j in 0..6\n"
                                   "    let Y_sum f32 = 0\n"
                                   "    for i in 0..6\n"
                                   "      Y_sum += X[i]\n"
                                   "    Y[j] += Y_sum\n"},
      {sum_of_two_loops, HEAD "  let Y_sum f32 = 0\n"
                              "  for j in 0..6\n"
                              "    for i in 0..6\n"
                              "      Y_sum += X[i]\n"
                              "  Y[2] += Y_sum\n"},
      {sum_in_a_branch_and_beside, HEAD "  let Y_sum f32 = 0\n"
                                        "  for i in 0..6\n"
                                        "    if (i < 2)\n"
                                        "      Y[3] += X[i]\n"
                                        "    Y_sum += X[i]\n"
                                        "  Y[3] += Y_sum\n"},
      {sum_of_places_that_move, NULL},
      {sum_in_a_branch, NULL},
      {sum_that_is_read, NULL},
      {sum_that_is_set, NULL},
      {sum_of_a_declared_array, NULL},
      {sum_of_an_allocated_array, NULL},
      {sum_of_a_place_in_memory, NULL},
      {sum_of_a_loop_that_may_not_run, NULL},
      {sum_of_two_that_may_not_run, NULL},
      {sum_in_a_parallel_loop, NULL},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_promote_sums);
}

static void join_pieces(struct code *c) {
  if (code_join_pieces(c)) code_simplify(c);
}

static void joins_pieces(void **state) {
  static const struct pass_row rows[] = {
      {piece_behind_zero, HEAD "  for i in 0..6\n"
                               "    let lanes0 f32x4 = f32x4(X[i*8 + 2], 4, 1)\n"
                               "    f32x4(Y[i*8]) = lanes0\n"},
      {piece_between_zeros, HEAD "  for i in 0..6\n"
                                 "    let lanes0 f32x4 = f32x4(X[i*8 + 2], 3, 1)\n"
                                 "    f32x4(Y[i*8]) = lanes0\n"},
      {piece_before_what_is_not_set, HEAD "  for i in 0..6\n"
                                          "    let lanes0 f32x4 = f32x4(X[i*8 + 1], 3)\n"
                                          "    f32x4(Y[i*8]) = lanes0\n"},
      {row_that_is_rolled,
       HEAD "  for i in 0..6\n"
            "    let lanes0 f32x4 = permute(f32x4(X[i*8 + 7], 1), f32x4(X[i*8], 4, 1): 0 5 6 7)\n"
            "    f32x4(Y[i*8]) = lanes0\n"},
      {pieces_of_nothing, HEAD "  for i in 0..6\n"
                               "    let lanes0 f32x4 = f32x4.all(0)\n"
                               "    f32x4(Y[i*8]) = lanes0\n"},
      {three_pieces, NULL},
  };
  CHECK_ROWS (rows, row) check_pass(row, join_pieces);
}

static void transpose(struct code *c) {
  if (code_transpose(c)) code_simplify(c);
}

// Five vectors of eight lanes, in registers.
#define FIVE_ACROSS                                                                \
  HEAD "  let v f32x8[8] = f32x8.all(1)\n"                                         \
       "  block\n"                                                                 \
       "    let across0 f32x8 = permute(v_0, v_1: 0 8 1 9 4 12 5 13)\n"            \
       "    let across1 f32x8 = permute(v_0, v_1: 2 10 3 11 6 14 7 15)\n"          \
       "    let across2 f32x8 = permute(v_2, v_3: 0 8 1 9 4 12 5 13)\n"            \
       "    let across3 f32x8 = permute(v_2, v_3: 2 10 3 11 6 14 7 15)\n"          \
       "    let across4 f32x8 = permute(across0, across2: 0 1 8 9 4 5 12 13)\n"    \
       "    let across5 f32x8 = permute(across0, across2: 2 3 10 11 6 7 14 15)\n"  \
       "    let across6 f32x8 = permute(across1, across3: 0 1 8 9 4 5 12 13)\n"    \
       "    let across7 f32x8 = permute(across1, across3: 2 3 10 11 6 7 14 15)\n"  \
       "    let across8 f32x8 = permute(v_4, v_4: 0 8 1 9 4 12 5 13)\n"            \
       "    let across9 f32x8 = permute(v_4, v_4: 2 10 3 11 6 14 7 15)\n"          \
       "    let across10 f32x8 = permute(across8, across8: 0 1 8 9 4 5 12 13)\n"   \
       "    let across11 f32x8 = permute(across8, across8: 2 3 10 11 6 7 14 15)\n" \
       "    let across12 f32x8 = permute(across9, across9: 0 1 8 9 4 5 12 13)\n"   \
       "    let across13 f32x8 = permute(across9, across9: 2 3 10 11 6 7 14 15)\n"

static void transposes(void **state) {
  static const struct pass_row rows[] = {
      {four_across, HEAD "  let v f32x4[8] = f32x4.all(1)\n"
                         "  block\n"
                         "    let across0 f32x4 = permute(v_1, v_2: 0 4 1 5)\n"
                         "    let across1 f32x4 = permute(v_1, v_2: 2 6 3 7)\n"
                         "    let across2 f32x4 = permute(v_0, v_3: 0 4 1 5)\n"
                         "    let across3 f32x4 = permute(v_0, v_3: 2 6 3 7)\n"
                         "    let across4 f32x4 = permute(across0, across2: 0 1 4 5)\n"
                         "    let across5 f32x4 = permute(across0, across2: 2 3 6 7)\n"
                         "    let across6 f32x4 = permute(across1, across3: 0 1 4 5)\n"
                         "    let across7 f32x4 = permute(across1, across3: 2 3 6 7)\n"
                         "    f32x4(Y[3]) = across4\n"
                         "    f32x4(Y[12]) = across5\n"
                         "    f32x4(Y[21]) = across6\n"
                         "    f32x4(Y[30]) = across7\n"
                         "  Y[0] = X[0]\n"},
      {four_across_close_together,
       HEAD "  let v f32x4[8] = f32x4.all(1)\n"
            "  block\n"
            "    let across0 f32x4 = permute(v_0, v_1: 0 4 1 5)\n"
            "    let across1 f32x4 = permute(v_0, v_1: 2 6 3 7)\n"
            "    let across2 f32x4 = permute(v_2, v_3: 0 4 1 5)\n"
            "    let across3 f32x4 = permute(v_2, v_3: 2 6 3 7)\n"
            "    let across4 f32x4 = permute(across0, across2: 0 1 4 5)\n"
            "    let across5 f32x4 = permute(across0, across2: 2 3 6 7)\n"
            "    let across6 f32x4 = permute(across1, across3: 0 1 4 5)\n"
            "    let across7 f32x4 = permute(across1, across3: 2 3 6 7)\n"
            "    f32x4(Y[3]) = across4\n"
            "    f32x4(Y[7]) = across5\n"
            "    f32x4(Y[11]) = across6\n"
            "    f32x4(Y[15]) = across7\n"
            "  Y[0] = X[0]\n"},
      {five_of_eight_across,
       FIVE_ACROSS "    f32x8(Y[3]) = permute(across4, across10: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[8]) = permute(across5, across11: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[13]) = permute(across6, across12: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[18]) = permute(across7, across13: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[23]) = permute(across4, across10: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[28]) = permute(across5, across11: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[33]) = permute(across6, across12: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[38], 5) = permute(across7, across13: 4 5 6 7 12 13 14 15)\n"
                   "  Y[0] = X[0]\n"},
      {five_of_eight_in_rows,
       FIVE_ACROSS "    f32x8(Y[0]) = permute(across4, across10: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[8]) = permute(across5, across11: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[16]) = permute(across6, across12: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[24]) = permute(across7, across13: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[32]) = permute(across4, across10: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[40]) = permute(across5, across11: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[48]) = permute(across6, across12: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[56]) = permute(across7, across13: 4 5 6 7 12 13 14 15)\n"
                   "  Y[0] = X[0]\n"},
      {five_of_six_in_rows,
       FIVE_ACROSS "    f32x8(Y[0], 5) = permute(across4, across10: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[8], 5) = permute(across5, across11: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[16], 5) = permute(across6, across12: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[24], 5) = permute(across7, across13: 0 1 2 3 8 9 10 11)\n"
                   "    f32x8(Y[32], 5) = permute(across4, across10: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[40], 5) = permute(across5, across11: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[48], 5) = permute(across6, across12: 4 5 6 7 12 13 14 15)\n"
                   "    f32x8(Y[56], 5) = permute(across7, across13: 4 5 6 7 12 13 14 15)\n"
                   "  Y[0] = X[0]\n"},
      {three_across, NULL},
      {across_with_a_gap, NULL},
      {across_in_one_place, NULL},
  };
  CHECK_ROWS (rows, row) check_pass(row, transpose);
}

static void names_loads(void **state) {
  static const struct pass_row rows[] = {
      {lanes_twice, HEAD "  for i in 0..8\n"
                         "    let v f32x8[3]\n"
                         "    let X_part f32x8 = f32x8(X[i*8], i - 1)\n"
                         "    v_0 = X_part\n"
                         "    v_1 = X_part\n"},
      {lanes_beside_a_namesake, HEAD "  let X_part f32x8 = f32x8.all(1)\n"
                                     "  for i in 0..8\n"
                                     "    let v f32x8[3]\n"
                                     "    let X_part f32x8 = f32x8(X[i*8], i - 1)\n"
                                     "    v_0 = X_part\n"
                                     "    v_1 = X_part\n"
                                     "  f32x8(Y[0]) = X_part\n"},
      {lanes_once, HEAD "  for i in 0..8\n"
                        "    let v f32x8[3]\n"
                        "    v_0 = f32x8(X[i*8], i - 1)\n"},
      {lanes_that_change, HEAD "  for i in 0..8\n"
                               "    let v f32x8[3]\n"
                               "    v_0 = f32x8(Y[i*8], i - 1)\n"
                               "    v_1 = f32x8(Y[i*8], i - 1)\n"
                               "    f32x8(Y[i*8], i - 1) = f32x8(Y[i*8], i - 1)\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_share_loads);
}

static void names_common(void **state) {
  static const struct pass_row rows[] = {
      {place_of_one_array, LOOPS "      let Y_at index = i*8 + j\n"
                                 "      Y[Y_at] = 0\n"
                                 "      Y[Y_at + 1] = 0\n"
                                 "      Y[Y_at + 2] = 0\n"},
      {too_few_uses, LOOPS "      Y[i*8 + j] = X[i*8 + j]\n"},
      {multiples, LOOPS "      let i_j index = i + j\n"
                        "      Y[i_j + 2] = X[i_j + 2]\n"
                        "      Y[i_j*3 + 1] = 0\n"},
      {collapsed, HEAD "  for i in 0..6 parallel 2\n"
                       "    for j in 0..6\n"
                       "      let i_j index = i*8 + j\n"
                       "      Y[i*4] = X[i*4]\n"
                       "      Y[i*4 + 1] = X[i*4 + 1]\n"
                       "      Y[i*4 + 2] = X[i*4 + 2]\n"
                       "      Y[i*4 + 3] = X[i*4 + 3]\n"
                       "      Y[i_j] = X[i_j]\n"
                       "      Y[i_j + 1] = X[i_j + 1]\n"
                       "      Y[i_j + 2] = X[i_j + 2]\n"},
      {outermost, HEAD "  for i in 0..6\n"
                       "    let Y_at index = (i / 3)*4\n"
                       "    for j in 0..6\n"
                       "      Y[Y_at + j*4] = 0\n"
                       "      Y[Y_at*2 + j*3] = 0\n"
                       "      Y[Y_at*3 + j*2] = 0\n"},
      {one_after_the_other, LOOPS "      let Y_at index = i*8 + j\n"
                                  "      Y[Y_at] = 0\n"
                                  "      Y[Y_at + 1] = 0\n"
                                  "      Y[Y_at + 2] = 0\n"
                                  "  for i in 0..6\n"
                                  "    for j in 0..6\n"
                                  "      let Y_at index = i*8 + j\n"
                                  "      Y[Y_at] = 0\n"
                                  "      Y[Y_at + 1] = 0\n"
                                  "      Y[Y_at + 2] = 0\n"},
      {load, HEAD "  for i in 0..4\n"
                  "    let X_at index = index(N[i])*2\n"
                  "    Y[0] = X[X_at]\n"
                  "    Y[1] = X[X_at + 1]\n"
                  "    Y[2] = X[X_at + 2]\n"},
      {guarded_load, HEAD "  for i in 0..4\n"
                          "    if (i < 2)\n"
                          "      Y[0] = X[index(N[i])*2]\n"
                          "      Y[1] = X[index(N[i])*2 + 1]\n"
                          "      Y[2] = X[index(N[i])*2 + 2]\n"},
      {load_in_a_loop_of_data, HEAD "  for i in 0..4\n"
                                    "    for j in 0..N[0]\n"
                                    "      Y[0] = X[index(N[i])*2]\n"
                                    "      Y[1] = X[index(N[i])*2 + 1]\n"
                                    "      Y[2] = X[index(N[i])*2 + 2]\n"},
      {guarded_sum, LOOPS "      let i_j index = i*8 + j\n"
                          "      if (i < 2)\n"
                          "        Y[i_j] = X[i_j]\n"
                          "        Y[i_j + 1] = X[i_j + 1]\n"
                          "        Y[i_j + 2] = X[i_j + 2]\n"},
      {large_sum,
       LOOPS "      if (i < 2)\n"
             "        Y[i*2305843009213693952 + j] = X[i*2305843009213693952 + j]\n"
             "        Y[i*2305843009213693952 + j + 1] = X[i*2305843009213693952 + j + 1]\n"
             "        Y[i*2305843009213693952 + j + 2] = X[i*2305843009213693952 + j + 2]\n"},
      {lanes_of_a_gather, LOOPS "      Y[i*8 + j] = 0\n"
                                "      Y[i*8 + j + 1] = 0\n"
                                "      Y[i*8 + j + 2] = 0\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_share_indices);
}

// A loop of so many steps over so many statements, of which each of the first has a place to split at.
static void many_places(struct sample *s, enum code_how how, int steps, int statements,
                        int places) {
  int loop = open_loop(s, 0, steps);
  for (int i = 0; i < statements; i++) {
    int condition = compare(s, PX_LT, counter(s), code_int(s->c, i + 1));
    if (i < places)
      choose(s, how, condition, counter(s), 5);
    else
      move(s, counter(s));
  }
  code_close(s->c, loop);
}

static int count_text(const char *text, const char *word) {
  int found = 0;
  for (; (text = strstr(text, word)); text += strlen(word)) found++;
  return found;
}

// What is split costs ten times its nest at most; where all together cost too much, the nest is split
// in which conditions are asked most often.
static void borders_cost(void **state) {
  static const struct {
    const char *name;
    int steps[2], statements[2], places[2];
    int choices[2];  // that are left
  } rows[] = {
      {"a nest has room", {40, 40}, {5, 1}, {5, 0}, {0, 0}},
      {"ten times itself", {40, 40}, {20, 1}, {20, 0}, {10, 0}},
      {"not ten times another", {40, 40}, {20, 200}, {20, 0}, {10, 0}},
      {"asked less, and last", {11, 60}, {140, 140}, {10, 2}, {2, 0}},
      {"asked more, and first", {12, 30}, {140, 140}, {10, 2}, {0, 2}},
  };
  CHECK_ROWS (rows, row) {
    struct sample s = sample();
    struct buf out = {0};
    for (int i = 0; i < 2; i++)
      many_places(&s, i ? CODE_ADD : CODE_SET, row->steps[i], row->statements[i], row->places[i]);
    code_partition_loops(s.c);
    CHECK_INT(code_verify(&ctx, s.c, "a test"), CANVAS_OK, ctx.message);
    code_print(s.c, &out);
    CHECK_INT(count_text(out.text, " = select"), row->choices[0], row->name);
    CHECK_INT(count_text(out.text, " += select"), row->choices[1], row->name);
    buf_free(&out);
    code_free(s.c);
  }
}

static void splits_borders(void **state) {
  static const struct pass_row rows[] = {
      {edges, HEAD "  Y[0] = 0\n"
                   "  for i in 1..9\n"
                   "    Y[i] = X[i]\n"
                   "  Y[9] = 0\n"},
      {edges_of_a_sum, HEAD "  for i in 1..9\n"
                            "    Y[i] += X[i]\n"},
      {edges_of_a_maximum, HEAD "  for i in 1..9\n"
                                "    Y[i] = max(Y[i], X[i])\n"},
      {edges_of_a_product, HEAD "  Y[0] += (X[1] - X[1])\n"
                                "  for i in 1..9\n"
                                "    Y[i] += (X[i] * X[i + 1])\n"
                                "  Y[9] += (X[10] - X[10])\n"},
      {another_number, HEAD "  Y[0] += 2\n"
                            "  for i in 1..10\n"
                            "    Y[i] += X[i]\n"},
      {window, HEAD "  for i in 0..6\n"
                    "    for j in max(2 - i, 0)..min(9 - i, 6)\n"
                    "      Y[i] += X[i + j]\n"},
      {dilated, HEAD "  for i in 0..6\n"
                     "    for j in max(floor_div(4 - i, 2), 0)..floor_div(13 - i, 2)\n"
                     "      Y[i] += X[i + j]\n"},
      {backwards, HEAD "  for i in 0..6\n"
                       "    for j in max(i - 4, 0)..i + 1\n"
                       "      Y[i] += X[i + j]\n"},
      {outer_alone, HEAD "  for i in 1..6\n"
                         "    for j in 0..6\n"
                         "      Y[i] += X[j]\n"},
      {parallel, HEAD "  for i in 0..6 parallel 1\n"
                      "    if (1 <= i)\n"
                      "      for j in 0..6\n"
                      "        Y[i] += X[j]\n"},
      {not_or, HEAD "  for i in 1..9\n"
                    "    Y[i] += X[i]\n"},
      {one_place, HEAD "  for i in 0..4\n"
                       "    Y[i] = 1\n"
                       "  Y[4] = X[0]\n"
                       "  for i in 5..10\n"
                       "    Y[i] = 1\n"},
      {every_other, HEAD "  for i in 0..6\n"
                         "    if ((i % 2) <= 0)\n"
                         "      for j in 0..6\n"
                         "        Y[i] += X[j]\n"},
      {steps, HEAD "  for i in 0..8 step 4\n"
                   "    Y[i] = 0\n"
                   "  for i in 8..32 step 4\n"
                   "    Y[i] = X[i]\n"},
      {under_a_guard, HEAD "  for i in 0..5\n"
                           "    Y[i] = X[i]\n"},
      {lanes, HEAD "  for j in 0..4\n"
                   "    Y[j] = select((1 <= j), X[j - 1], 0)\n"
                   "  for i in 1..8\n"
                   "    f32x4(Y[i*4]) = f32x4(X[i*4 - 1])\n"},
      {lanes_apart, HEAD "  for j in 0..4\n"
                         "    Y[j] = select((1 <= j), X[j*2 - 1], 0)\n"
                         "  for i in 1..8\n"
                         "    f32x4(Y[i*4]) = permute(f32x4(X[i*4 - 1]), f32x4(X[i*4 + 2]): 0 2 5 "
                         "7)\n"},
      {other_of_two, HEAD "  for i in 0..6\n"
                          "    for j in 0..2\n"
                          "      if (i < 3)\n"
                          "        Y[j] = X[j]\n"
                          "      else\n"
                          "        Y[i] = X[j]\n"
                          "    for j in 2..6\n"
                          "      Y[i] = 0\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_partition_loops);
}

static void parts_lanes(void **state) {
  static const struct pass_row rows[] = {
      {lanes_between, HEAD "  for j in 0..2\n"
                           "    Y[0] += 1\n"
                           "  for j in 2..5\n"
                           "    Y[0] += X[j]\n"
                           "  for j in 5..8\n"
                           "    Y[0] += 1\n"},
      {lanes, HEAD "  for i in 0..8\n"
                   "    f32x4(Y[i*4]) = f32x4(X[i*4 + max(1 - i*4, 0) - 1], 4, max(1 - i*4, 0))\n"},
      {lanes_apart, HEAD "  for i in 0..8\n"
                         "    for j in 0..4\n"
                         "      Y[i*4 + j] = select((1 <= i*4 + j), X[i*4 + j*2 - 1], 0)\n"},
      {lanes_of_both_ends, HEAD "  for i in 0..8\n"
                                "    f32x4(Y[0]) = f32x4(X[i + max(1 - i, 0)], min(20 - i*4, min(3 "
                                "- i, 4)), max(1 - i, 0))\n"},
      {lanes_of_a_number, HEAD "  for j in 0..8\n"
                               "    Y[j] = select((j < 3), 1, 0)\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_split_lanes);
}

static void simplifies(void **state) {
  static const struct pass_row rows[] = {
      {one_trip, HEAD "  Y[13] = X[13]\n"},
      {no_trip, HEAD},
      {known_condition, HEAD "  for i in 0..4\n    Y[i*4] = X[i*4]\n    Y[i*4 + 2] = X[i*4 + 2]\n"},
      {condition_of_one_trip, HEAD "  Y[7] = X[7]\n"},
      {nothing_is_seen, HEAD "  Y[7] = X[7]\n"},
      {never_mentioned, HEAD "  Y[7] = X[7]\n"},
      {blocks, HEAD "  Y[0] = X[0]\n  block\n    let a f32 = 1\n    Y[1] = a\n"},
      {empty_else, HEAD "  for i in 0..4\n    if (i < 2)\n      Y[i*4] = X[i*4]\n"},
      {more_than_one, HEAD "  for i in 0..16 step 4\n    Y[i] = X[i]\n"},
  };
  CHECK_ROWS (rows, row) check_pass(row, code_simplify);
}

// ---- the verifier ----

static int name_of(struct sample *s) {
  return code_variable(s->c, "n", CODE_NAME, code_type(CODE_INDEX, 1), 1);
}

static void name_without_value(struct sample *s) {
  code_declare(s->c, name_of(s), -1);
}

static void name_written(struct sample *s) {
  int n = name_of(s);
  code_declare(s->c, n, code_int(s->c, 1));
  code_assign(s->c, code_variable_at(s->c, n, 0), CODE_SET, code_int(s->c, 2));
}

static void name_beyond_the_end(struct sample *s) {
  int n = name_of(s), loop = open_loop(s, 0, 16);
  code_declare(s->c, n, place(s, 0));
  struct affine_term t = {code_variable_at(s->c, n, 0), 1};
  move(s, code_sum(s->c, &t, 1, 4));
  code_close(s->c, loop);
}

static void number_not_declared(struct sample *s) {
  int v = local(s, "v");
  code_declare(s->c, v, zero(s));
  s->c->statements.data[s->c->statements.count - 1].unread = 2;
  set(s, v, 1, zero(s));
}

static void undeclared(struct sample *s) {
  code_assign(s->c, code_variable_at(s->c, s->a, 0), CODE_SET, code_number(s->c, PROGRAM_F32, 1));
}

static void out_of_scope(struct sample *s) {
  int block = code_open_block(s->c);
  code_declare(s->c, s->a, -1);
  code_close(s->c, block);
  undeclared(s);
}

static void counter_after_loop(struct sample *s) {
  more_than_one(s);
  move(s, counter(s));
}

static void declared_twice(struct sample *s) {
  code_declare(s->c, s->a, -1);
  code_declare(s->c, s->a, -1);
}

static void wrong_element(struct sample *s) {
  code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), CODE_SET,
              code_number(s->c, PROGRAM_F64, 1));
}

static void wrong_lanes(struct sample *s) {
  int to = code_vector(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), 8);
  code_assign(s->c, to, CODE_SET, code_number(s->c, PROGRAM_F32, 1));
}

static void wrong_operand(struct sample *s) {
  int x = code_element(s->c, s->X, code_int(s->c, 0)), y = code_number(s->c, PROGRAM_F64, 1);
  int sum = code_operation(s->c, PX_ADD, code_type(PROGRAM_F32, 1), x, y, -1);
  code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), CODE_SET, sum);
}

static void input_written(struct sample *s) {
  code_assign(s->c, code_element(s->c, s->X, code_int(s->c, 0)), CODE_SET,
              code_number(s->c, PROGRAM_F32, 1));
}

static void beyond_the_end(struct sample *s) {
  int loop = open_loop(s, 0, 17);
  move(s, place(s, 0));
  code_close(s->c, loop);
}

static void vector_beyond_the_end(struct sample *s) {
  int from = code_vector(s->c, code_element(s->c, s->X, code_int(s->c, 57)), 8);
  int to = code_vector(s->c, code_element(s->c, s->Y, code_int(s->c, 56)), 8);
  code_assign(s->c, to, CODE_SET, from);
}

static void before_the_start(struct sample *s) {
  int loop = open_loop(s, 0, 4);
  move(s, place(s, -1));
  code_close(s->c, loop);
}

static void heap_declared(struct sample *s) {
  code_declare(s->c, s->H, -1);
}

static void array_allocated(struct sample *s) {
  int allocate = code_open_allocate(s->c, &s->P, 1);
  move(s, code_int(s->c, 0));
  code_close(s->c, allocate);
}

static void regions_nested(struct sample *s) {
  int outer = code_open_region(s->c), inner = code_open_region(s->c);
  move(s, code_int(s->c, 0));
  code_close(s->c, inner);
  code_close(s->c, outer);
}

static void parallel_nested(struct sample *s) {
  int low = code_int(s->c, 0), high = code_int(s->c, 4);
  int outer = code_open_for(s->c, s->i, low, high, 1, 1);
  int inner = code_open_for(s->c, s->j, low, high, 1, 1);
  move(s, counter(s));
  code_close(s->c, inner);
  code_close(s->c, outer);
}

static void collapse_of_one(struct sample *s) {
  int loop = code_open_for(s->c, s->i, code_int(s->c, 0), code_int(s->c, 4), 1, 2);
  move(s, counter(s));
  code_close(s->c, loop);
}

static void value_as_condition(struct sample *s) {
  int inner = code_open_if(s->c, code_int(s->c, 1));
  move(s, code_int(s->c, 0));
  code_close(s->c, inner);
}

// Y[0] = an expression that is damaged by hand.
static void store(struct sample *s, int value) {
  code_assign(s->c, code_element(s->c, s->Y, code_int(s->c, 0)), CODE_SET, value);
}

static void number_as_value(struct sample *s) {
  int one = code_int(s->c, 1);
  s->c->exprs.data[one].type = code_type(PROGRAM_F32, 1);
  store(s, one);
}

static void value_as_index(struct sample *s) {
  int one = code_number(s->c, PROGRAM_F32, 1);
  s->c->exprs.data[one].type = code_type(CODE_INDEX, 1);
  move(s, one);
}

static void truth_as_value(struct sample *s) {
  int yes = truth(s, true);
  s->c->exprs.data[yes].type = code_type(PROGRAM_F32, 1);
  store(s, yes);
}

static void value_in_a_sum(struct sample *s) {
  struct affine_term t = {code_number(s->c, PROGRAM_F32, 1), 4};
  int sum = code_sum(s->c, &t, 1, 0);
  s->c->exprs.data[sum].type = code_type(CODE_INDEX, 1);
  move(s, sum);
}

static void narrow_sum(struct sample *s) {
  int loop = open_loop(s, 0, 4), at = place(s, 0);
  s->c->exprs.data[at].type = code_type(PROGRAM_I32, 1);
  move(s, at);
  code_close(s->c, loop);
}

static void place_in_a_number(struct sample *s) {
  code_declare(s->c, s->a, -1);
  int at = code_variable_at(s->c, s->a, 0);
  int first = code_int(s->c, 0);
  s->c->exprs.data[at].op = CODE_ELEMENT;
  s->c->exprs.data[at].arg[0] = first;
  store(s, at);
}

static void array_without_place(struct sample *s) {
  int at = code_element(s->c, s->X, code_int(s->c, 0));
  s->c->exprs.data[at].op = CODE_VARIABLE;
  store(s, at);
}

static void other_type_than_declared(struct sample *s) {
  int at = code_element(s->c, s->X, code_int(s->c, 0));
  s->c->exprs.data[at].type = code_type(PROGRAM_F64, 1);
  store(s, at);
}

static void one_variable_too_far(struct sample *s) {
  code_declare(s->c, s->a, -1);
  int at = code_variable_at(s->c, s->a, 0);
  s->c->exprs.data[at].integer = 1;
  store(s, at);
}

static void value_as_place(struct sample *s) {
  int at = code_element(s->c, s->X, code_int(s->c, 0));
  s->c->exprs.data[at].arg[0] = code_number(s->c, PROGRAM_F32, 0);
  store(s, at);
}

static void no_value(struct sample *s) {
  int loop = open_loop(s, 0, 4);
  move(s, place(s, 0));
  code_close(s->c, loop);
  for (int i = 0; i < s->c->statements.count; i++)
    if (s->c->statements.data[i].kind == CODE_ASSIGN) s->c->statements.data[i].value = -1;
}

static void no_lanes(struct sample *s) {
  int one = code_number(s->c, PROGRAM_F32, 1);
  s->c->exprs.data[one].type.lanes = 0;
  store(s, one);
}

static void begins_wrongly(struct sample *s) {
  code_declare(s->c, s->a, code_number(s->c, PROGRAM_F64, 1));
}

static void counted_by_a_number(struct sample *s) {
  int loop = code_open_for(s->c, s->a, code_int(s->c, 0), code_int(s->c, 4), 1, 0);
  code_close(s->c, loop);
}

static void counted_in_values(struct sample *s) {
  int loop = code_open_for(s->c, s->i, code_number(s->c, PROGRAM_F32, 0), code_int(s->c, 4), 1, 0);
  code_close(s->c, loop);
}

static void prefetch_of_a_number(struct sample *s) {
  code_prefetch(s->c, code_number(s->c, PROGRAM_F32, 0));
}

static void function_inside(struct sample *s) {
  int block = code_open_block(s->c);
  code_close(s->c, block);
  s->c->statements.data[block].kind = CODE_FUNCTION;
}

static void stolen_child(struct sample *s) {
  int block = code_open_block(s->c);
  code_close(s->c, block);
  s->c->statements.data[block].parent = block;
}

static void rejects(void **state) {
  static const struct {
    void (*build)(struct sample *);
    const char *expected;
  } rows[] = {
      {undeclared, "'a' stands where it is not declared"},
      {out_of_scope, "'a' stands where it is not declared"},
      {counter_after_loop, "'i' stands where it is not declared"},
      {declared_twice, "'a' is declared twice"},
      {wrong_element, "a value of another type in \"1\""},
      {wrong_lanes, "a value of another type in \"1\""},
      {wrong_operand, "operands of wrong types in \"(X[0] + 1)\""},
      {input_written, "what cannot be written in \"X[0]\""},
      {beyond_the_end, "a place outside of its array in \"Y[i*4]\""},
      {vector_beyond_the_end, "a place outside of its array in \"X[57]\""},
      {value_as_count, "operands of wrong types in \"f32x8(X[0], 3)\""},
      {before_the_start, "a place outside of its array in \"Y[i*4 - 1]\""},
      {a_loop_that_always_runs, "a place outside of its array in \"Y[i*40]\""},
      {name_without_value, "'n' is no name of an index"},
      {name_written, "what cannot be written in \"n\""},
      {name_beyond_the_end, "a place outside of its array in \"Y[n + 4]\""},
      {number_not_declared, "a variable that is not there in \"v_1\""},
      {heap_declared, "'H' is not to be declared"},
      {array_allocated, "'P' is not to be allocated"},
      {regions_nested, "a parallel region within another"},
      {parallel_nested, "'j' is parallel within a parallel loop"},
      {collapse_of_one, "'i' is parallel with loops that do not nest"},
      {value_as_condition, "a condition that is none in \"1\""},
      {number_as_value, "a number of no index in \"1\""},
      {value_as_index, "a number of no value in \"1\""},
      {truth_as_value, "a truth of another type in \"true\""},
      {value_in_a_sum, "a wrong term in \"1*4\""},
      {narrow_sum, "a sum that is too narrow in \"i*4\""},
      {place_in_a_number, "a place in what is no array in \"a[0]\""},
      {array_without_place, "an array as a number in \"X\""},
      {other_type_than_declared, "another type than declared in \"X[0]\""},
      {one_variable_too_far, "a variable that is not there in \"a\""},
      {value_as_place, "a place that is no index in \"X[0]\""},
      {no_value, "an expression is missing"},
      {no_lanes, "a wrong type in \"1\""},
      {begins_wrongly, "'a' begins with a value of another type"},
      {counted_by_a_number, "'a' cannot count a loop"},
      {counted_in_values, "'i' runs over what is no index"},
      {prefetch_of_a_number, "a prefetch of no element in \"0\""},
      {function_inside, "a function within a function"},
      {stolen_child, "a child of another"},
  };
  CHECK_ROWS (rows, row) {
    struct sample s = sample();
    char expected[200];
    row->build(&s);
    snprintf(expected, sizeof expected, "code of 'sample' after a test: %s", row->expected);
    CHECK_INT(code_verify(&ctx, s.c, "a test"), CANVAS_BAD_INPUT, row->expected);
    CHECK_TEXT(ctx.message, expected, row->expected);
    code_free(s.c);
  }
}

// A message names the function and the pass.
static void names_the_pass(void **state) {
  struct sample s = sample();
  declared_twice(&s);
  CHECK_INT(code_verify(&ctx, s.c, "simplifying"), CANVAS_BAD_INPUT, "twice");
  CHECK_TEXT(ctx.message, "code of 'sample' after simplifying: 'a' is declared twice", "twice");
  code_free(s.c);
}

// ---- the pipeline ----

// The head comment of code.h lists the passes in order, and each row says what it keeps.
static void lists_passes(void **state) {
  struct buf head = {0};
  FILE *file = fopen(CANVAS_SOURCE "/src/code/code.h", "r");
  CHECK(file != NULL, "code.h");
  char line[200], entry[80];
  while (file && fgets(line, sizeof line, file) && !strstr(line, "*/")) buf_puts(&head, line);
  if (file) fclose(file);
  const char *at = head.text;
  for (const struct code_pass *pass = code_passes; pass->name; pass++) {
    snprintf(entry, sizeof entry, "\n *     %s ", pass->name);
    at = at ? strstr(at, entry) : NULL;
    CHECK(at != NULL, pass->name);
    CHECK(pass->keeps && strlen(pass->keeps) > 20, pass->name);
    for (const struct code_pass *other = pass + 1; other->name; other++)
      CHECK(strcmp(pass->name, other->name), pass->name);
  }
  buf_free(&head);
}

static int runs;

static void runs_once(struct code *c) {
  (void)c;
  runs++;
}

static void declares_twice(struct code *c) {
  int first = c->statements.data[0].first;
  struct code_statement s = c->statements.data[first];
  code_insert(c, 0, first, s);
}

// A pass that breaks the tree is named, and no pass runs on a broken tree.
static void names_the_broken_pass(void **state) {
  static const struct code_pass passes[] = {{"first", runs_once, ""},
                                            {"breaks", declares_twice, ""},
                                            {"never", runs_once, ""},
                                            {NULL, NULL, NULL}};
  const struct {
    const char *after;
    canvas_status status;
    int runs;
    const char *message;
  } rows[] = {
      {NULL, CANVAS_BAD_INPUT, 1, "code of 'sample' after breaks: 'a' is declared twice"},
      {"breaks", CANVAS_BAD_INPUT, 1, "code of 'sample' after breaks: 'a' is declared twice"},
      {"first", CANVAS_OK, 1, NULL},
      {"build", CANVAS_OK, 0, NULL},
      {"last", CANVAS_BAD_INPUT, 0,
       "unknown pass 'last', choose one of build, first, breaks, never"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct sample s = sample();
    code_declare(s.c, s.a, code_number(s.c, PROGRAM_F32, 0));
    code_assign(s.c, code_element(s.c, s.Y, code_int(s.c, 0)), CODE_SET,
                code_variable_at(s.c, s.a, 0));
    runs = 0;
    CHECK_INT(pipeline_apply(&ctx, passes, rows[i].after, s.c), rows[i].status, rows[i].message);
    CHECK_INT(runs, rows[i].runs, rows[i].message);
    if (rows[i].message) CHECK_TEXT(ctx.message, rows[i].message, rows[i].message);
    code_free(s.c);
  }
}

// ---- the code of bound schedules ----

static void check_code(const struct program *p, struct schedule *s, const char *label) {
  struct loop_tree *tree;
  struct code *code;
  if (loop_tree_bind(&ctx, p, s, &machine_avx512, &tree) == CANVAS_OK) {
    bool good = pipeline_run(&ctx, tree, NULL, &code) == CANVAS_OK;  // each pass is verified
    CHECK_TEXT(good ? "" : ctx.message, "", label);
    if (good) code_free(code);
    loop_tree_free(tree);
  }
  schedule_free(s);
}

static void of_schedules(void **state) {
  for (int i = 0; i < 300; i++) {
    struct random r;
    char label[40];
    struct program *p = random_program((uint64_t)i);
    random_open(&r, (uint64_t)i, RANDOM_TEST, 7);
    snprintf(label, sizeof label, "random program %d", i);
    for (int j = 0; j < 3; j++) check_code(p, random_schedule(p, &r, 4 + 8 * j), label);
    program_free(p);
  }
}

// 165 stages of 500 loads, each index of 30 digits of folded groups in an order that is no simpler.
static void too_large(void **state) {
  struct buf text = {0}, loops = {0};
  struct loop_tree *tree;
  struct program *p;
  struct schedule *s;
  struct code *code;
  buf_puts(&text, "program large\nin X f32 [i:1073741824]\n");
  for (int stage = 0; stage < 165; stage++) {
    buf_printf(&text, "Y%d[i:1073741824] = 1", stage);
    for (int i = 0; i < 500; i++)
      buf_printf(&text, "%s + X[i]", i % 100 ? "" : i ? ") * (1" : " * (1");
    buf_printf(&text, ")\nout Y%d\n", stage);
    for (int i = 0; i < 30; i++)
      buf_printf(&loops, "%s%c%d:2%s",
                 i % 8 ? ", "
                 : i   ? ", {"
                       : "{",
                 'a' + i % 8, i / 8, i % 8 == 7 || i == 29 ? "}:fold" : "");
    buf_printf(&loops, " =>\n    @Y%d = {", stage);
    for (int i = 0, digits = 0; i < 32; i++) {
      int group = (i % 4 * 3 + 2) % 4, letter = 7 - i / 4;
      if (8 * group + letter >= 30) continue;
      buf_printf(&loops, "%s%c%d", digits++ ? ", " : "", 'a' + letter, group);
    }
    buf_puts(&loops, "}/i\n");
  }
  CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
  CHECK_INT(schedule_parse(&ctx, loops.text, loops.length, &s), CANVAS_OK, ctx.message);
  CHECK_INT(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK, ctx.message);
  CHECK_INT(pipeline_run(&ctx, tree, NULL, &code), CANVAS_BAD_INPUT, "too large");
  CHECK_TEXT(ctx.message, "the code has more than 4194304 expressions, unroll less", "too large");
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);
  buf_free(&loops);
  buf_free(&text);
}

static void is_readable(void **state) {
  static const char text[] =
      "program rows\nin X bf16 [y:8, k:64]\nY[y:8] = X[y, k] // sum k:64\nout Y\n";
  static const char expected[] =
      "function rows(X bf16[512], Y f32[8])\n"
      "  for y in 0..8\n"
      "    let acc f32 = 0\n"
      "    for k in 0..64\n"
      "      acc += f32(X[y*64 + k])\n"
      "    Y[y] = acc\n";
  struct program *p;
  struct loop_tree *tree;
  struct code *code;
  struct buf out = {0};
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  struct schedule *s = schedule_default(p, false, &machine_avx512);
  CHECK_INT(loop_tree_bind(&ctx, p, s, &machine_avx512, &tree), CANVAS_OK, ctx.message);
  CHECK_INT(pipeline_run(&ctx, tree, NULL, &code), CANVAS_OK, ctx.message);
  code_print(code, &out);
  CHECK_TEXT(out.text, expected, text);
  buf_free(&out);
  code_free(code);
  loop_tree_free(tree);
  schedule_free(s);
  program_free(p);
}

CHECK_MAIN(cmocka_unit_test(simplifies), cmocka_unit_test(drops_dead),
           cmocka_unit_test(names_common), cmocka_unit_test(permutes_gathers),
           cmocka_unit_test(joins_remainders), cmocka_unit_test(shortens_sums),
           cmocka_unit_test(promotes_sums), cmocka_unit_test(loops_are_conditions),
           cmocka_unit_test(joins_pieces), cmocka_unit_test(transposes),
           cmocka_unit_test(names_loads), cmocka_unit_test(gathers_once),
           cmocka_unit_test(splits_borders), cmocka_unit_test(borders_cost),
           cmocka_unit_test(parts_lanes), cmocka_unit_test(rejects),
           cmocka_unit_test(names_the_pass), cmocka_unit_test(lists_passes),
           cmocka_unit_test(names_the_broken_pass), cmocka_unit_test(of_schedules),
           cmocka_unit_test(too_large), cmocka_unit_test(is_readable))
