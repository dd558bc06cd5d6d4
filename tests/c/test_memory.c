// Calls that run out of memory: what is freed, what is kept, which cleanups run. The sanitizers see what is lost and
// what is freed twice.
#include "check.h"

#include <pthread.h>

#include "base/memory_call.h"
#include "base/random.h"

// Runs `work(data)` as a call; false: it had no memory.
static bool run_call(void (*work)(void *data), void *data) {
  struct mem_call call;
  if (!mem_enter(&call)) return false;
  if (setjmp(call.failed)) return false;
  work(data);
  mem_leave(&call);
  return true;
}

// Many allocations, of which some are freed and some grow, before there is no memory.
static void many_allocations(void *data) {
  enum { MANY = 5000 };
  struct random r;
  void **all = mem_alloc(MANY * sizeof *all);
  random_open(&r, *(uint64_t *)data, RANDOM_EVAL, 1);
  for (int i = 0; i < 4 * MANY; i++) {
    void **p = &all[random_below(&r, MANY)];
    if (random_below(&r, 3)) {
      *p = mem_grow(*p, 1 + random_below(&r, 200));
    } else {
      mem_free(*p);
      *p = NULL;
    }
  }
  mem_free(mem_try(3, 5));
  mem_fail(12);
}

static void frees_all_that_a_call_allocated(void **state) {
  for (uint64_t seed = 0; seed < 5; seed++) CHECK(!run_call(many_allocations, &seed), "it fails");
}

static void allocate_and_return(void *data) {
  char **texts = data;
  for (int i = 0; i < 100; i++) texts[i] = mem_strdup("text");
}

static void what_a_call_made_is_the_callers(void **state) {
  char *texts[100];
  CHECK(run_call(allocate_and_return, texts), "it has memory");
  for (int i = 0; i < 100; i++) free(texts[i]);  // by free, too: nothing stands before the text
}

struct older {
  struct {
    VEC(int);
  } numbers;
  char *name;
};

static void grow_older(void *data) {
  struct older *o = data;
  o->name = mem_keep(mem_strdup("kept"));
  for (int i = 0; i < 1000; i++) VEC_PUSH(&o->numbers, i);
}

// An object that is older than the call is whole afterwards, however far the call came.
static void older_objects_stay_whole(void **state) {
  for (long n = 1; n < 12; n++) {
    struct older o = {.name = NULL};
    VEC_PUSH(&o.numbers, -1);
    mem_fail_at(n);
    bool good = run_call(grow_older, &o);
    bool reached = !mem_fails_left();
    mem_fail_at(0);
    CHECK_INT(good, !reached, "a failure");
    CHECK_INT(o.numbers.data[o.numbers.count - 1], o.numbers.count - 2, "numbers");
    CHECK(n == 1 || !strcmp(o.name, "kept"), "its name");
    mem_free(o.name);
    mem_free(o.numbers.data);
  }
}

static char order[8];

static void note(void *data) {
  strcat(order, data);
}

static void note_and_fail(void *data) {
  note(data);
  mem_fail(1);  // the rest is left out
}

static void defer_three(void *data) {
  struct mem_deferred a, b, c, d;
  mem_defer(&a, note, "a");
  mem_defer(&b, note, "b");
  mem_defer(&c, note_and_fail, "c");
  mem_defer(&d, note, "d");
  mem_undefer(&b);
  mem_undefer(&b);
  mem_fail_at(2);
  mem_free(mem_alloc(1));
  mem_alloc(1);
}

static void cleanups_run_the_newest_first(void **state) {
  order[0] = '\0';
  CHECK(!run_call(defer_three, NULL), "it fails");
  mem_fail_at(0);
  CHECK_TEXT(order, "dca", "a, c and d");
}

static void call_within(void *data) {
  struct mem_call inner;
  char *text = mem_strdup("outer");
  CHECK(!mem_enter(&inner), "a call within a call is the same");
  struct mem_call *outer = mem_outside();
  CHECK(!run_call(many_allocations, &(uint64_t){7}), "a callback's call fails alone");
  char **kept = data;
  *kept = mem_strdup("the callback's");
  mem_inside(outer);
  CHECK_TEXT(text, "outer", "the outer call goes on");
  mem_fail(1);
}

static void callbacks_are_no_part_of_the_call(void **state) {
  char *kept = NULL;
  CHECK(!run_call(call_within, &kept), "it fails");
  CHECK_TEXT(kept, "the callback's", "what it allocated stays");
  mem_free(kept);
}

struct helper {
  struct mem_call *of;
  bool failed;
};

static void *help(void *data) {
  struct helper *h = data;
  struct mem_call part;
  mem_enter_part(&part, h->of);
  if (setjmp(part.failed)) {
    h->failed = part.wanted == 12;
    return NULL;
  }
  many_allocations(&(uint64_t){3});
  mem_leave(&part);
  return NULL;
}

static void fail_in_a_thread(void *data) {
  pthread_t thread;
  struct helper *h = data;
  h->of = mem_current();
  CHECK_INT(pthread_create(&thread, NULL, help, h), 0, "a thread");
  pthread_join(thread, NULL);
  mem_fail(12);
}

static void a_thread_ends_and_then_the_call(void **state) {
  struct helper h = {NULL, false};
  CHECK(!run_call(fail_in_a_thread, &h), "the call fails");
  CHECK(h.failed, "the thread's part failed");
}

static void arenas_join(void **state) {
  struct arena a = {0}, b = {0};
  char *x = arena_strndup(&a, "x", 1), *y = arena_strndup(&b, "y", 1);
  arena_join(&a, &b);
  CHECK(!b.blocks, "b is empty");
  arena_free(&b);
  CHECK(*x == 'x' && *y == 'y', "both are there");
  arena_free(&a);
}

CHECK_MAIN(cmocka_unit_test(frees_all_that_a_call_allocated),
           cmocka_unit_test(what_a_call_made_is_the_callers),
           cmocka_unit_test(older_objects_stay_whole),
           cmocka_unit_test(cleanups_run_the_newest_first),
           cmocka_unit_test(callbacks_are_no_part_of_the_call),
           cmocka_unit_test(a_thread_ends_and_then_the_call), cmocka_unit_test(arenas_join))
