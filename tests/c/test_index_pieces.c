// Straight pieces of an index, place by place against the index itself.
#include "check.h"

#include <stdio.h>

#include "base/random.h"
#include "rewrite/index_pieces.h"

enum { DRAWS = 20000, DEEPEST = 4 };

static int64_t floor_quotient(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

// The meaning of an index of one axis, node by node.
static int64_t value_at(const struct program *p, int expr, int64_t place) {
  const struct px_node *n = &p->nodes.data[expr];
  if (n->op == PX_INT) return n->integer;
  if (n->op == PX_AXIS) return place;
  int64_t a = value_at(p, n->arg[0], place);
  if (n->op == PX_NEG) return -a;
  int64_t b = value_at(p, n->arg[1], place);
  switch (n->op) {
    case PX_ADD: return a + b;
    case PX_SUB: return a - b;
    case PX_MUL: return a * b;
    case PX_MIN: return a < b ? a : b;
    case PX_MAX: return a > b ? a : b;
    case PX_DIV: return floor_quotient(a, b);
    default: return a - b * floor_quotient(a, b);
  }
}

static int draw(struct random *r, struct program *p, int axis, int depth) {
  int64_t kind = (int64_t)random_below(r, 10);
  if (depth == 0 || kind == 0) return axis;
  if (kind == 1) return px_int(p, (int64_t)random_below(r, 30) - 10);
  int a = draw(r, p, axis, depth - 1);
  int constant = px_int(p, 1 + (int64_t)random_below(r, 12));
  if (kind == 2) return px_div(p, a, constant);
  if (kind == 3) return px_mod(p, a, constant);
  if (kind == 4) return px_mul(p, a, px_int(p, (int64_t)random_below(r, 7) - 3));
  if (kind == 5) return px_neg(p, a);
  int b = draw(r, p, axis, depth - 1);
  return kind == 6   ? px_add(p, a, b)
         : kind == 7 ? px_sub(p, a, b)
         : kind == 8 ? px_min(p, a, b)
                     : px_max(p, a, b);
}

static void equal_the_index(void **state) {
  struct random r;
  int known = 0, several = 0;
  random_open(&r, 5, RANDOM_TEST, 0);
  for (int i = 0; i < DRAWS; i++) {
    struct program *p = program_new("p");
    int64_t size = 1 + (int64_t)random_below(&r, 60);
    int stage = program_stage(p, "Y", PROGRAM_F32, 1, (const char *const[]){"w"}, &size);
    int expr = draw(&r, p, program_axis(p, stage, 0), DEEPEST);
    struct index_pieces all;
    if (index_pieces(p, expr, 0, size, &all)) {
      int64_t place = 0;
      known++, several += all.count > 1;
      for (int j = 0; j < all.count; j++) {
        const struct index_piece *x = &all.piece[j];
        CHECK(x->low == place && x->high > x->low, "the pieces follow each other");
        for (; place < x->high; place++)
          CHECK_INT(index_piece_at(x, place), value_at(p, expr, place), "an index");
      }
      CHECK_INT(place, size, "the pieces are all of the axis");
    }
    program_free(p);
  }
  CHECK(known > DRAWS / 2 && several > DRAWS / 10, "some indices have pieces");
}

static struct index_pieces of_text(const char *index, int64_t size) {
  char text[256];
  canvas_context ctx;
  struct program *p;
  struct index_pieces all = {.count = 0};
  snprintf(text, sizeof text,
           "canvas 1\nprogram p\nin X f32 [w:1000000]\nY[w:%lld] = X[%s]\nout Y\n", (long long)size,
           index);
  CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, index);
  const struct px_node *load = &p->nodes.data[p->tensors.data[1].body];
  if (!index_pieces(p, p->indices.data[load->first], 0, size, &all)) all.count = -1;
  program_free(p);
  return all;
}

static void are_few(void **state) {
  static const struct {
    const char *index;
    int64_t size;
    int count;
  } table[] = {
      {"w", 50, 1},
      {"w*3+1", 50, 1},
      {"(w+20)%56", 56, 2},
      {"(w+17)%100001", 100001, 2},
      {"99999-w", 100000, 1},
      // the places that a mirror shares with the image belong to the image
      {"min(max(max(1-w, w-1), 0), 55-max(w-56, 0))", 58, 3},
      {"min(max(w-1, 0), 55)", 58, 3},
      {"w/16*16 + w%16", 64, 1},
      {"w%2", 64, -1},
      {"w*w", 64, -1},
      {"w%5 + w/5", 30, 6},
  };
  CHECK_ROWS (table, row) CHECK_INT(of_text(row->index, row->size).count, row->count, row->index);
}

CHECK_MAIN(cmocka_unit_test(equal_the_index), cmocka_unit_test(are_few))
