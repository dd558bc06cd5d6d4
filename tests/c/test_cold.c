// Copies that push each other out of the caches: as many as asked for, equal, each visited in turn; and the
// time of a candidate on them.
#include "check.h"
#include "machines.h"

#include "run/cold.h"

static canvas_context ctx;

static void every_set_comes_before_the_first_again(void **state) {
  static const struct {
    size_t size[3];
    int64_t bytes, sets;
  } rows[] = {
      {{4, 4, 4}, 0, 2},
      {{4, 4, 4}, 1, 2},
      {{4, 4, 4}, 192 * 3, 3},
      {{4, 4, 4}, 192 * 3 + 1, 4},
      {{64, 65, 1}, 2560, 10},
      {{2048, 1024, 1024}, 0, 2},
      {{100, 200, 300}, 704 * 64, 64},
      {{1 << 20, 64, 64}, 1 << 20, 2},
      {{1, 1, 1}, 192 * 1000, 1000},
  };
  CHECK_ROWS (rows, row) {
    struct block blocks[3];
    const struct block *given[] = {&blocks[0], &blocks[1], &blocks[2]};
    struct cold cold;
    for (int i = 0; i < 3; i++) {
      CHECK(block_new(&blocks[i], row->size[i], false), "memory");
      memset(blocks[i].data, 'a' + i, row->size[i]);
    }
    CHECK(cold_open(&cold, given, 3, row->bytes), "memory");
    CHECK_INT(cold.sets, row->sets, "sets");
    CHECK(cold.mapped >= (size_t)cold.sets * cold.set + 64, "no guard right behind the last copy");
    for (int64_t k = 0; k < 2 * row->sets; k++) {
      cold_next(&cold);
      for (int i = 0; i < 3; i++) {
        unsigned char *data = cold.pointers[i];
        bool first = k < row->sets;
        CHECK_INT((uintptr_t)data % 64, 0, "a multiple of 64 bytes");
        CHECK_INT(data[0], first ? 'a' + i : 'A', "as the block, until it was written");
        CHECK_INT(data[row->size[i] - 1], first || row->size[i] == 1 ? data[0] : 'a' + i,
                  "its end");
        data[0] = 'A';
      }
    }
    cold_close(&cold);
    for (int i = 0; i < 3; i++) block_free(&blocks[i]);
  }
}

static void caches_say_how_many_bytes(void **state) {
  struct machine m = machine_avx512;
  m.l2 = 1 << 20;
  m.l3 = 30 << 20;
  m.memory = (int64_t)1 << 30;
  CHECK_INT(cold_bytes(&m, 0), 62 << 20, "one thread");
  CHECK_INT(cold_bytes(&m, 1), 62 << 20, "one thread");
  CHECK_INT(cold_bytes(&m, 4), 68 << 20, "four threads");
  m.memory = 100 << 20;
  CHECK_INT(cold_bytes(&m, 1), 25 << 20, "little memory");
}

// Where it is asked for, after the time that everything else goes by.
static void a_candidate_is_timed_twice(void **state) {
  static const char text[] =
      "canvas 1\nprogram gemv\nin A f32 [k:256] const\nin B f32 [k:256, n:512] const\n"
      "C[n:512] = A[k] * B[k, n] // sum k:256\nout C\n";
  canvas_program *program;
  canvas_machine *here = canvas_machine_here();
  canvas_measurer *measurer;
  canvas_bound *bound;
  canvas_verdict v;
  CHECK_INT(canvas_program_parse(&ctx, text, strlen(text), &program), CANVAS_OK, ctx.message);
  CHECK_INT(canvas_bound_new(&ctx, program, NULL, here, &bound), CANVAS_OK, ctx.message);
  for (int cold = 0; cold < 2; cold++) {
    const canvas_run_options options = {.seed = 1, .repeats = 5, .cold = cold};
    CHECK_INT(canvas_measurer_new(&ctx, program, &options, &measurer), CANVAS_OK, ctx.message);
    CHECK_INT(canvas_measurer_run(&ctx, measurer, (const canvas_bound *const[]){bound}, 1, &v),
              CANVAS_OK, ctx.message);
    CHECK_INT(v.failure, CANVAS_FAILED_NOT, v.message);
    CHECK_INT(v.repeats, 5, "samples");
    CHECK_INT(v.cold > 0, cold, "a second time");
    canvas_measurer_free(measurer);
  }
  canvas_bound_free(bound);
  canvas_program_free(program);
  canvas_machine_free(here);
}

CHECK_MAIN(cmocka_unit_test(every_set_comes_before_the_first_again),
           cmocka_unit_test(caches_say_how_many_bytes),
           cmocka_unit_test(a_candidate_is_timed_twice))
