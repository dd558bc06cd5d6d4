// Networks compiled, loaded and run by the public interface: what is given is checked, weights may change,
// threads may run one network at once.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "canvas.h"

#include "check.h"

static char folder[64];
static canvas_context *ctx;

static const char text[] =
    "network rows\n"
    "program look\nin T f32 [n:6, c:40]\nin I i32 [n:3] 0..6\nY[n:3, c:40] = T[I[n], c]\nout "
    "Y\nend\n"
    "program linear\nin X f32 [n:3, c:40]\nin W f32 [c:40, o:32] const\n"
    "V[o:32, c:40] = W[c, o]\nY[n:3, o:32] = X[n, c] * V[o, c] // sum c:40\nout Y\nend\n"
    "program sums\nin X f32 [n:3, o:32]\nin P i32 [r:3] 0..4 rising\n"
    "Y[r:2, o:32] = X[k, o] // sum k:P[r]..P[r+1]\nout Y\nend\n"
    "in t f32 [6, 40]\nin i i32 [3] 0..6\nin p i32 [3] 0..4 rising\nweight w f32 [40, 32]\n"
    "a f32 [3, 40] = look(t, i)\nb f32 [3, 32] = linear(a, w)\nc f32 [2, 32] = sums(b, p)\nout c\n";

static canvas_network *network_from(const char *from) {
  canvas_network *n;
  CHECK_INT(canvas_network_parse(ctx, from, strlen(from), &n), CANVAS_OK,
            canvas_context_message(ctx));
  return n;
}

static canvas_network_code *compiled(const canvas_network *n) {
  canvas_network_code *code;
  CHECK_INT(canvas_network_compile(ctx, n, NULL, &code), CANVAS_OK, canvas_context_message(ctx));
  return code;
}

// Weights of ones, tables of rows 0, 1, ..: element o of row r is 40 times the sum of rows p[r] .. p[r+1].
static float table[6][40], ones[40][32];
static int32_t rows[3] = {5, 0, 2}, ends[3] = {0, 1, 3};

static void set_numbers(float weight) {
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 40; c++) table[r][c] = (float)r;
  for (int c = 0; c < 40; c++)
    for (int o = 0; o < 32; o++) ones[c][o] = weight;
}

static void runs_and_loads_again(void **state) {
  canvas_network *n = network_from(text);
  canvas_network_code *code = compiled(n);
  float y[2][32];
  const void *inputs[] = {table, rows, ends}, *weights[] = {ones};
  canvas_network_free(n);  // the code does not need it
  canvas_network_facts facts = canvas_network_code_describe(code);
  CHECK_TEXT(facts.function, "rows", "facts");
  CHECK_INT(facts.calls, 3, "facts");
  CHECK(facts.packed_bytes == 5120 && facts.arena_bytes >= 3 * 40 * 4, "facts");
  canvas_network_call call = canvas_network_code_call(code, 1);
  CHECK_TEXT(call.program, "linear", "call");
  CHECK_TEXT(call.results, "b", "call");
  CHECK(call.flops == 2 * 3 * 40 * 32 && call.bytes == 4 * (3 * 40 + 40 * 32 + 3 * 32), "call");
  for (int times = 1; times <= 2; times++) {
    set_numbers((float)times);
    CHECK_INT(canvas_network_code_load(ctx, code, weights), CANVAS_OK, "load");
    CHECK_INT(canvas_network_code_run(ctx, code, inputs, (void *[]){y}), CANVAS_OK, "run");
    for (int o = 0; o < 32; o++)
      CHECK(y[0][o] == (float)times * 40 * 5 && y[1][o] == (float)times * 40 * 2, "result");
  }
  memset(y, 0, sizeof y);
  CHECK_INT(canvas_network_code_step(ctx, code, 2, inputs, (void *[]){y}), CANVAS_OK, "step");
  CHECK(y[0][0] == 400, "the last call alone");
  canvas_network_code_free(code);
}

static void checks_what_it_is_given(void **state) {
  static int32_t many[3] = {5, 6, 2}, falls[3] = {0, 3, 2}, late[3] = {1, 1, 3},
                 early[3] = {0, 1, 2};
  static const char *const messages[] = {
      "'t' is given by a pointer to its elements, not by NULL",
      "'t' is given by a pointer to its elements, not by one between two of them",
      "element 1 of 'i' is 6, it has to be a whole number from 0 to 5",
      "'p' has to rise along its last axis from 0 to 3, element 2 is 2",
      "'p' has to rise along its last axis from 0 to 3, element 0 is 1",
      "'p' has to rise along its last axis from 0 to 3, element 2 is 2",
  };
  const void *given[][3] = {{NULL, rows, ends},  {(char *)table + 1, rows, ends},
                            {table, many, ends}, {table, rows, falls},
                            {table, rows, late}, {table, rows, early}};
  canvas_network *n = network_from(text);
  canvas_network_code *code = compiled(n);
  float y[2][32];
  void *outputs[] = {y}, *nothing[] = {NULL};
  CHECK_INT(canvas_network_code_run(ctx, code, given[0], outputs), CANVAS_BAD_INPUT, "no weights");
  CHECK_TEXT(canvas_context_message(ctx), "network 'rows' has no weights, load it first", "");
  CHECK_INT(canvas_network_code_load(ctx, code, (const void *[]){NULL}), CANVAS_BAD_INPUT, "NULL");
  CHECK_TEXT(canvas_context_message(ctx), "'w' is given by a pointer to its elements, not by NULL",
             "a weight");
  CHECK_INT(canvas_network_code_load(ctx, code, (const void *[]){ones}), CANVAS_OK, "load");
  for (int i = 0; i < 6; i++) {
    CHECK_INT(canvas_network_code_run(ctx, code, given[i], outputs), CANVAS_BAD_INPUT, messages[i]);
    CHECK_TEXT(canvas_context_message(ctx), messages[i], messages[i]);
  }
  CHECK_INT(canvas_network_code_run(ctx, code, given[0], nothing), CANVAS_BAD_INPUT, "no output");
  CHECK_TEXT(canvas_context_message(ctx),
             "output 0 is given by a pointer to its elements, not by NULL", "");
  CHECK_INT(canvas_network_code_step(ctx, code, 3, given[0], outputs), CANVAS_BAD_INPUT, "step 3");
  CHECK_TEXT(canvas_context_message(ctx), "network 'rows' has no call 3, it has 3", "");
  canvas_network_code_free(code);
  canvas_network_free(n);
}

static void tells_what_is_damaged(void **state) {
  canvas_network *n = network_from(text);
  canvas_network_code *code = compiled(n);
  FILE *file = fopen(canvas_network_code_describe(code).path, "wb");
  fputs("nothing", file);
  fclose(file);
  CHECK_INT(canvas_network_code_load(ctx, code, (const void *[]){ones}), CANVAS_IO, "damaged");
  if (!strstr(canvas_context_message(ctx), "what was compiled cannot be loaded: '"))
    fail_msg("%s", canvas_context_message(ctx));
  canvas_network_code_free(code);
  code = compiled(n);
  CHECK_INT(canvas_network_code_load(ctx, code, (const void *[]){ones}), CANVAS_OK, "made anew");
  canvas_network_code_free(code);
  canvas_network_free(n);
}

// ---- programs that do not compile ----

static void set_compiler(const char *name, const char *deed) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  fprintf(file, "#!/bin/sh\n[ $1 = --version ] && exec gcc --version\n%s\nexec gcc \"$@\"\n", deed);
  fclose(file);
  chmod(path, 0700);
  setenv("CANVAS_CC", path, 1);
}

static void sums_are_right(canvas_network_code *code, const char *label) {
  const void *inputs[] = {table, rows, ends};
  float y[2][32] = {{0}};
  set_numbers(1);
  CHECK_INT(canvas_network_code_load(ctx, code, (const void *[]){ones}), CANVAS_OK, label);
  CHECK_INT(canvas_network_code_run(ctx, code, inputs, (void *[]){y}), CANVAS_OK, label);
  for (int o = 0; o < 32; o++) CHECK(y[0][o] == 200 && y[1][o] == 80, label);
}

// A compiler that fails on vectors, dies on some of them, or on the first that it sees: the others keep their
// schedules.
static void simpler_schedules(void **state) {
  static const struct {
    const char *name, *deed;
    int simpler;  // calls at least: how many have vectors depends on the machine
  } rows_of[] = {
      {"no-vectors", "grep -q vector_size unit.c && ! grep -q _load unit.c && exit 1", 1},
      {"dies", "grep -q vector_size unit.c && ! grep -q _load unit.c && kill -9 $$", 1},
      {"works", "", 0},
  };
  canvas_network *n = network_from(text);
  CHECK_ROWS (rows_of, row) {
    canvas_network_code *code;
    int simpler = 0;
    set_compiler(row->name, row->deed);
    code = compiled(n);
    for (int i = 0; i < 3; i++) simpler += canvas_network_code_call(code, i).simpler;
    CHECK(row->simpler ? simpler >= row->simpler : !simpler, row->name);
    sums_are_right(code, row->name);
    canvas_network_code_free(code);
  }
  set_compiler("never", "grep -q layer_ unit.c && exit 1");
  canvas_network_code *code;
  CHECK_INT(canvas_network_compile(ctx, n, NULL, &code), CANVAS_IO, "never");
  CHECK(strstr(canvas_context_message(ctx), "of the network does not compile: "),
        canvas_context_message(ctx));
  unsetenv("CANVAS_CC");
  canvas_network_free(n);
}

// The object is open from the time when it was compiled.
static void removed_meanwhile(void **state) {
  char command[160];
  canvas_network *n = network_from(text);
  canvas_network_code *code = compiled(n);
  snprintf(command, sizeof command, "rm -rf %s/objects", folder);
  CHECK_INT(system(command), 0, command);
  sums_are_right(code, "removed");
  canvas_network_code_free(code);
  snprintf(command, sizeof command, "rm -rf %s/objects; exec gcc \"$@\"", folder);
  set_compiler("removing", command);
  code = compiled(n);
  sums_are_right(code, "removed again and again");
  canvas_network_code_free(code);
  unsetenv("CANVAS_CC");
  canvas_network_free(n);
}

static void loads_objects(void **state) {
  canvas_network *n = network_from(text);
  canvas_network_code *code = compiled(n);
  const char *path = canvas_network_code_describe(code).path;
  void *handle;
  CHECK_INT(canvas_object_load(ctx, path, &handle), CANVAS_OK, path);
  CHECK(dlsym(handle, "rows_run"), path);
  dlclose(handle);
  chmod(path, 0777);
  CHECK_INT(canvas_object_load(ctx, path, &handle), CANVAS_IO, path);
  char message[300];
  snprintf(message, sizeof message,
           "'%s' is not in the cache any more, or was damaged: compile it again", path);
  CHECK_TEXT(canvas_context_message(ctx), message, path);
  canvas_network_code_free(code);
  canvas_network_free(n);
}

// ---- threads ----

static canvas_network_code *shared;

static void *run_many(void *data) {
  canvas_context *own = canvas_context_new();
  const void *inputs[] = {table, rows, ends};
  bool good = true;
  for (int i = 0; i < 200; i++) {
    float y[2][32] = {{0}};
    good &= canvas_network_code_run(own, shared, inputs, (void *[]){y}) == CANVAS_OK;
    for (int o = 0; o < 32; o++) good &= y[0][o] == 200 && y[1][o] == 80;
  }
  canvas_context_free(own);
  return good ? data : NULL;
}

static void several_threads_run_one_network(void **state) {
  canvas_network *n = network_from(text);
  pthread_t threads[4];
  shared = compiled(n);
  set_numbers(1);
  CHECK_INT(canvas_network_code_load(ctx, shared, (const void *[]){ones}), CANVAS_OK, "load");
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run_many, threads);
  for (int i = 0; i < 4; i++) {
    void *answer;
    pthread_join(threads[i], &answer);
    CHECK(answer, "results of a thread");
  }
  canvas_network_code_free(shared);
  canvas_network_free(n);
}

// A convolution that is long enough for threads: any number of them gives the same bits.
static const char wide[] =
    "network wide\nprogram conv\nin X f32 [n:1, c:64, h:58, w:58]\nin W f32 [o:64, c:64, kh:3, "
    "kw:3] const\n"
    "Z[n:1, o:64, h:56, w:56] = X[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:64, kh:3, kw:3\n"
    "Y[n:1, o:64, h:56, w:56] = max(Z[n, o, h, w], 0)\nout Y\nend\n"
    "program add\nin A f32 [n:1, o:64, h:56, w:56]\nY[n:1, o:64, h:56, w:56] = A[n, o, h, w] * "
    "2\nout Y\nend\n"
    "in x f32 [1, 64, 58, 58]\nweight w f32 [64, 64, 3, 3]\n"
    "a f32 [1, 64, 56, 56] = conv(x, w)\nb f32 [1, 64, 56, 56] = add(a)\nout b\n";

static float *floats(const canvas_network *n, canvas_role role, bool filled) {
  size_t elements = (size_t)canvas_network_tensor(n, role, 0).elements;
  float *out = calloc(elements, sizeof *out);
  double *numbers = calloc(elements, sizeof *numbers);
  if (filled) canvas_network_fill(n, role, 0, 1, numbers);
  for (size_t i = 0; i < elements; i++) out[i] = (float)numbers[i];
  free(numbers);
  return out;
}

static void threads_give_the_same_bits(void **state) {
  static const int counts[] = {1, 2, 3, 7};
  canvas_network *n = network_from(wide);
  size_t bytes = (size_t)canvas_network_tensor(n, CANVAS_OUTPUT, 0).elements * sizeof(float);
  float *x = floats(n, CANVAS_INPUT, true), *w = floats(n, CANVAS_WEIGHT, true), *first = NULL;
  for (int i = 0; i < 4; i++) {
    const canvas_network_options options = {.threads = counts[i]};
    canvas_network_code *code;
    float *y = floats(n, CANVAS_OUTPUT, false);
    CHECK_INT(canvas_network_compile(ctx, n, &options, &code), CANVAS_OK, "compile");
    CHECK_INT(canvas_network_code_call(code, 0).parallel, counts[i] > 1, "a long call");
    CHECK_INT(canvas_network_code_call(code, 1).parallel, false, "a short call");
    CHECK_INT(canvas_network_code_load(ctx, code, (const void *[]){w}), CANVAS_OK, "load");
    CHECK_INT(canvas_network_code_run(ctx, code, (const void *[]){x}, (void *[]){y}), CANVAS_OK,
              "");
    CHECK(!first || !memcmp(first, y, bytes), "the same bits");
    canvas_network_code_free(code);
    if (first) free(y);
    if (!first) first = y;
  }
  free(first);
  free(x);
  free(w);
  canvas_network_free(n);
}

static void short_calls_stay_on_one_thread(void **state) {
  static const char small[] =
      "network n\nprogram gemm\nin A f32 [i:8, k:128]\nin B f32 [k:128, j:64]\n"
      "Y[i:8, j:64] = A[i, k] * B[k, j] // sum k:128\nout Y\nend\n"
      "in a f32 [8, 128]\nin b f32 [128, 64]\nc f32 [8, 64] = gemm(a, b)\nout c\n";
  const canvas_network_options options = {.threads = 2};
  canvas_network *n = network_from(small);
  canvas_network_code *code;
  CHECK_INT(canvas_network_compile(ctx, n, &options, &code), CANVAS_OK, "compile");
  CHECK_INT(canvas_network_code_call(code, 0).parallel, false, "65,536 products");
  canvas_network_code_free(code);
  canvas_network_free(n);
}

static int open_all(void **state) {
  ctx = canvas_context_new();
  if (!temporary_folder(folder, sizeof folder)) return -1;
  setenv("CANVAS_CACHE", folder, 1);
  set_numbers(1);
  return 0;
}

static int close_all(void **state) {
  char command[128];
  canvas_context_free(ctx);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_and_loads_again),
      cmocka_unit_test(checks_what_it_is_given),
      cmocka_unit_test(tells_what_is_damaged),
      cmocka_unit_test(simpler_schedules),
      cmocka_unit_test(removed_meanwhile),
      cmocka_unit_test(loads_objects),
      cmocka_unit_test(several_threads_run_one_network),
      cmocka_unit_test(threads_give_the_same_bits),
      cmocka_unit_test(short_calls_stay_on_one_thread),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
