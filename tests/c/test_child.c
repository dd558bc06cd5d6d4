// Children with limits: every way to end is told apart, nothing outlives its child.
#define _GNU_SOURCE /* environ */
#include "run/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "sanitized.h"

static volatile int zero;

static int answer(void *data) {
  (void)data;
  return 3;
}

static int leave(void *data) {
  (void)data;
  _exit(7);
}

static int write_null(void *data) {
  (void)data;
  *(volatile int *)(uintptr_t)(64 + zero) = 1;
  return 0;
}

static int write_constant(void *data) {
  *(volatile char *)data = 1;
  return 0;
}

static int deep(int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  return zero ? 0 : deep(depth + 1) + room[0];
}

static int overflow(void *data) {
  (void)data;
  return deep(0);
}

static int do_abort(void *data) {
  (void)data;
  abort();
}

static int spin(void *data) {
  (void)data;
  while (!zero) zero = 0;
  return 0;
}

static int sleep_long(void *data) {
  (void)data;
  while (!zero) pause();
  return 0;
}

static int ignore_all(void *data) {
  (void)data;
  for (int s = 1; s < 32; s++) signal(s, SIG_IGN);
  fclose(stdout);
  close(1);
  close(2);
  while (!zero) pause();
  return 0;
}

static int hog(void *data) {
  (void)data;
  while (!zero) {
    char *more = malloc(8 << 20);
    for (size_t i = 0; i < 8 << 20; i += 4096) ((volatile char *)more)[i] = 1;
  }
  return 0;
}

static int hog_at_once(void *data) {
  (void)data;
  volatile char *more = malloc((size_t)1 << 38);
  more[0] = 1;
  return 0;
}

static int hog_maps(void *data) {
  (void)data;
  while (!zero) {
    volatile char *more =
        mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    more[0] = 1;
  }
  return 0;
}

static int kill_itself(void *data) {
  (void)data;
  return raise(SIGTERM);
}

static int be_killed(void *data) {
  (void)data;
  return raise(SIGKILL);
}

static int read_all(void *data) {
  char byte;
  (void)data;
  return read(0, &byte, 1) == 0 && write(9, &byte, 1) < 0 ? 0 : 1;
}

static const struct {
  const char *name;
  int (*work)(void *data);
  enum child_how how;
  int code;  // -1: any
  const char *words;
} rows[] = {
    {"an answer", answer, CHILD_EXITED, 3, "ended with status 3"},
    {"exit", leave, CHILD_EXITED, 7, "ended with status 7"},
    {"a null write", write_null, CHILD_CRASHED, SIGSEGV, "crashed at address 0x40 (segmentation"},
    {"a write to a constant", write_constant, CHILD_CRASHED, SIGSEGV, "crashed at address 0x"},
    {"stack overflow", overflow, CHILD_CRASHED, SIGSEGV, "crashed: its stack overflowed"},
    {"abort", do_abort, CHILD_CRASHED, SIGABRT, "crashed (abort, 6)"},
    {"an endless loop", spin, CHILD_OUT_OF_TIME, -1, "ran longer than 0.3 s of processor time"},
    {"sleep", sleep_long, CHILD_OUT_OF_TIME, -1, "ran longer than 1.5 s by the clock"},
    {"deaf and dumb", ignore_all, CHILD_OUT_OF_TIME, -1, "ran longer than 1.5 s by the clock"},
    {"a hog", hog, CHILD_OUT_OF_MEMORY, -1, "took more memory than there is (the limit is 64 MiB)"},
    {"a hog at once", hog_at_once, CHILD_OUT_OF_MEMORY, -1, "took more memory than there is"},
    {"a hog of maps", hog_maps, CHILD_OUT_OF_MEMORY, -1, "took more memory than there is"},
    {"a signal of its own", kill_itself, CHILD_CRASHED, SIGTERM, "crashed (signal, 15)"},
    {"SIGKILL", be_killed, CHILD_CRASHED, SIGKILL,
     "was ended by SIGKILL, perhaps for lack of memory"},
    {"no input, no files", read_all, CHILD_EXITED, 0, "ended with status 0"},
};

static void ends(void **state) {
  const struct child_limits limits = {.seconds = 0.3, .wall = 1.5, .memory = 64 << 20};
  const struct child_limits long_timeout = {.seconds = 30, .memory = 64 << 20};
  static const char constant[] = "constant";
  dup2(1, 9);  // a file the child must not have
  CHECK_ROWS (rows, row) {
    // The sanitizer's malloc ends the process by itself.
    if (SANITIZED && (row->work == hog || row->work == hog_at_once)) continue;
    canvas_context ctx = {.message = ""};
    const struct child_limits *l = row->how == CHILD_OUT_OF_TIME ? &limits : &long_timeout;
    struct child_end end;
    char words[256];
    CHECK_INT(child_call(&ctx, row->work, (void *)(uintptr_t)constant, l, &end), CANVAS_OK,
              row->name);
    child_describe(&end, l, words, sizeof words);
    if (end.how != row->how) fail_msg("%s: %s", row->name, words);
    if (row->code >= 0) CHECK_INT(end.code, row->code, row->name);
    if (!strstr(words, row->words)) fail_msg("\"%s\" for %s", words, row->name);
    CHECK(end.seconds < 25, row->name);
  }
  close(9);
}

static int speak(void *data) {
  for (int i = 0; i < 1000; i++) printf("line %d of what is said\n", i);
  printf("\033[1m and the end");
  fflush(stdout);
  return *(int *)data;
}

static void said(void **state) {
  canvas_context ctx = {.message = ""};
  struct child_end end;
  int status = 5;
  fflush(stdout);
  assert_int_equal(child_call(&ctx, speak, &status, &(struct child_limits){.seconds = 30}, &end),
                   CANVAS_OK);
  assert_int_equal(end.code, 5);
  assert_int_equal(strlen(end.output), CHILD_OUTPUT - 1);
  assert_non_null(strstr(end.output, "line 999 of what is said\n?[1m and the end"));
}

static int share(void *data) {
  *(int *)data = 42;
  return 0;
}

static void shared(void **state) {
  canvas_context ctx = {.message = ""};
  struct child_end end;
  int *cell = memory_shared(sizeof *cell);
  assert_int_equal(child_call(&ctx, share, cell, &(struct child_limits){.seconds = 30}, &end),
                   CANVAS_OK);
  assert_int_equal(*cell, 42);
  memory_unshare(cell, sizeof *cell);
}

// A child that leaves another process behind, which would write later.
static int leave_orphan(void *data) {
  if (fork() == 0) {
    usleep(300 * 1000);
    *(volatile int *)data = 1;
    for (;;) pause();
  }
  return 0;
}

static void orphans(void **state) {
  canvas_context ctx = {.message = ""};
  struct child_end end;
  int *cell = memory_shared(sizeof *cell);
  double start = clock_wall();
  assert_int_equal(
      child_call(&ctx, leave_orphan, cell, &(struct child_limits){.seconds = 20}, &end), CANVAS_OK);
  assert_int_equal(end.how, CHILD_EXITED);
  assert_true(clock_wall() - start <
              10);  // the orphan holds the pipe open, and nobody waits for it
  usleep(500 * 1000);
  assert_int_equal(*cell, 0);
  memory_unshare(cell, sizeof *cell);
}

static const struct {
  const char *name;
  char *words[4];
  enum child_how how;
  int code;
  const char *output;
  double wall;
} programs[] = {
    {"a program",
     {"sh", "-c", "pwd; echo $TMPDIR $LC_ALL; exit 4"},
     CHILD_EXITED,
     4,
     "/tmp\n/tmp C\n",
     0},
    {"none",
     {"canvas-no-such-program"},
     CHILD_EXITED,
     CHILD_NO_PROGRAM,
     "No such file or directory",
     0},
    {"no program", {"/tmp"}, CHILD_EXITED, CHILD_NO_PROGRAM, "Permission denied", 0},
    {"a hang", {"sleep", "1000"}, CHILD_OUT_OF_TIME, SIGKILL, "", 0.5},
    {"a hang below", {"sh", "-c", "sleep 1000; true"}, CHILD_OUT_OF_TIME, SIGKILL, "", 0.5},
    {"a loop", {"sh", "-c", "while :; do :; done"}, CHILD_OUT_OF_TIME, SIGKILL, "", 30},
    {"a loop below",
     {"sh", "-c", "sh -c 'while :; do :; done'; true"},
     CHILD_OUT_OF_TIME,
     SIGKILL,
     "",
     30},
    {"a loop after others",
     {"sh", "-c", "(i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done); while :; do :; done"},
     CHILD_OUT_OF_TIME,
     SIGKILL,
     "",
     30},
    {"a kill", {"sh", "-c", "kill -9 $$"}, CHILD_CRASHED, SIGKILL, "", 0},
    {"a large file",
     {"sh", "-c", "exec head -c 9000000 /dev/zero >canvas-test-file"},
     CHILD_CRASHED,
     SIGXFSZ,
     "",
     0},
};

// A program begins in its parent's memory.
static void programs_end(void **state) {
  const char *before = getenv("TMPDIR");
  sigset_t mask;
  CHECK_ROWS (programs, row) {
    canvas_context ctx = {.message = ""};
    struct child_limits limits = {.seconds = row->how == CHILD_OUT_OF_TIME ? 0.3 : 30,
                                  .wall = row->how == CHILD_OUT_OF_TIME ? row->wall : 30,
                                  .file = 1 << 20};
    struct child_end end;
    CHECK_INT(child_exec(&ctx, (char *const *)row->words, "/tmp", &limits, &end), CANVAS_OK,
              row->name);
    CHECK_INT(end.how, row->how, row->name);
    CHECK_INT(end.code, row->code, row->name);
    CHECK(strstr(end.output, row->output), row->name);
    if (row->how == CHILD_OUT_OF_TIME) CHECK_INT(end.processor, row->wall > 1, row->name);
  }
  unlink("/tmp/canvas-test-file");
  CHECK(getenv("TMPDIR") == before, "the variables are the program's");
  sigprocmask(SIG_BLOCK, NULL, &mask);
  CHECK(!sigismember(&mask, SIGTERM) && !sigismember(&mask, SIGINT), "signals come again");
}

// After clearenv() there is no list of variables.
static void no_variables(void **state) {
  static char *const words[] = {"/bin/sh", "-c", "echo $LC_ALL $TMPDIR", NULL};
  canvas_context ctx = {.message = ""};
  struct child_end end;
  char **before = environ;
  environ = NULL;
  canvas_status status =
      child_exec(&ctx, words, "/tmp", &(struct child_limits){.seconds = 30}, &end);
  environ = before;
  CHECK_INT(status, CANVAS_OK, ctx.message);
  assert_string_equal(end.output, "C /tmp\n");
}

// A process that runs a program whose child would run on; it says so in a fifo that only that holds.
static pid_t run_below(const char *folder, int deadly) {
  static char *const words[] = {"sh", "-c", "exec 3>fifo; sleep 1000 & echo >&3; wait", NULL};
  pid_t parent = fork();
  if (parent) return parent;
  signal(deadly, SIG_DFL);  // what runs in the background ignores some
  canvas_context ctx = {.message = ""};
  struct child_end end;
  child_exec(&ctx, words, folder, &(struct child_limits){.seconds = 100}, &end);
  _exit(0);
}

// Whether everybody who could write has ended.
static bool is_closed(int file) {
  char byte;
  struct pollfd wait = {.fd = file, .events = POLLIN};
  while (poll(&wait, 1, 20000) == 1)
    if (read(file, &byte, 1) <= 0) return true;
  return false;
}

// However we end, what a program of ours has started ends as well.
static void killed_parent(void **state) {
  static const struct {
    const char *name;
    int signal;
  } deaths[] = {{"SIGINT", SIGINT}, {"SIGTERM", SIGTERM}, {"SIGHUP", SIGHUP}, {"SIGKILL", SIGKILL}};
  char folder[64], fifo[80], byte = 0;
  assert_true(temporary_folder(folder, sizeof folder));
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  CHECK_ROWS (deaths, row) {
    pid_t parent = run_below(folder, row->signal);
    int file = open(fifo, O_RDONLY);
    CHECK_INT(read(file, &byte, 1), 1, row->name);
    kill(parent, row->signal);
    waitpid(parent, NULL, 0);
    CHECK(is_closed(file), row->name);
    close(file);
  }
  unlink(fifo);
  rmdir(folder);
}

// With a resource at its limit, no child can be had, and an error message says so.
static void rejections(void **state) {
  static const struct {
    int resource;
    const char *message;
  } scarce[] = {{RLIMIT_NOFILE, "cannot start a process: Too many open files"},
                {RLIMIT_AS, "no memory to start a process: Cannot allocate memory"}};
  CHECK_ROWS (scarce, row) {
    canvas_context ctx = {.message = ""};
    struct child_end end;
    struct rlimit now, none;
    getrlimit(row->resource, &now);
    none = now;
    none.rlim_cur = 1;
    setrlimit(row->resource, &none);
    canvas_status status =
        child_call(&ctx, answer, NULL, &(struct child_limits){.seconds = 30}, &end);
    setrlimit(row->resource, &now);
    CHECK_INT(status, CANVAS_IO, row->message);
    CHECK_TEXT(ctx.message, row->message, row->message);
  }
}

// Where there is room for the pipe alone, a program does not run on the files of its parent.
static void no_files(void **state) {
  canvas_context ctx = {.message = ""};
  struct child_end end;
  struct rlimit now, few;
  char *words[] = {"/bin/sh", "-c", "exit 0", NULL};
  int next = dup(0);
  close(next);
  getrlimit(RLIMIT_NOFILE, &now);
  few = now;
  few.rlim_cur = (rlim_t)next + 2;
  setrlimit(RLIMIT_NOFILE, &few);
  canvas_status status =
      child_exec(&ctx, words, "/tmp", &(struct child_limits){.seconds = 30}, &end);
  setrlimit(RLIMIT_NOFILE, &now);
  CHECK_INT(status, CANVAS_OK, ctx.message);
  assert_int_equal(end.how, CHILD_EXITED);
  assert_int_equal(end.code, CHILD_NO_PROGRAM);
}

static int four_steps(void *data) {
  volatile int *step = data;
  for (int i = 1; i <= 4; i++) {
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    *step = i;
  }
  return 0;
}

// A step that is told gives a child its seconds anew, so many times.
static void steps(void **state) {
  static const struct {
    int steps;
    double until;  // after its start; 0: none
    enum child_how how;
  } steps_rows[] = {{3, 0, CHILD_EXITED}, {0, 0, CHILD_OUT_OF_TIME}, {3, 0.9, CHILD_OUT_OF_TIME}};
  CHECK_ROWS (steps_rows, row) {
    canvas_context ctx = {.message = ""};
    struct child_end end;
    volatile int *step = memory_shared(sizeof *step);
    const struct child_limits limits = {.seconds = 1.2,
                                        .wall = 1.2,
                                        .step = step,
                                        .steps = row->steps,
                                        .until = row->until ? clock_wall() + row->until : 0};
    assert_non_null(step);
    assert_int_equal(child_call(&ctx, four_steps, (void *)(uintptr_t)step, &limits, &end),
                     CANVAS_OK);
    CHECK_INT(end.how, row->how, row->until ? "until" : "steps");
    memory_unshare((void *)(uintptr_t)step, sizeof *step);
  }
}

static double spun;  // seconds of processor time of each step

static int spin_steps(void *data) {
  volatile int *step = data;
  for (int i = 1; i <= 3; i++) {
    double end = clock_processor() + spun;
    while (clock_processor() < end) zero = 0;
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    *step = i;
  }
  return 0;
}

// On a loaded machine a child waits for most of its time; only what it computes counts, by step.
static void processor_time(void **state) {
  static const struct {
    double spun;
    enum child_how how;
  } spins[] = {{0.15, CHILD_EXITED}, {0.5, CHILD_OUT_OF_TIME}};
  CHECK_ROWS (spins, row) {
    canvas_context ctx = {.message = ""};
    struct child_end end;
    volatile int *step = memory_shared(sizeof *step);
    const struct child_limits limits = {.seconds = 0.25, .wall = 30, .step = step, .steps = 3};
    spun = row->spun;
    assert_int_equal(child_call(&ctx, spin_steps, (void *)(uintptr_t)step, &limits, &end),
                     CANVAS_OK);
    CHECK_INT(end.how, row->how, row->spun > 0.2 ? "0.5 s" : "0.15 s");
    if (row->how == CHILD_OUT_OF_TIME) assert_true(end.processor);
    memory_unshare((void *)(uintptr_t)step, sizeof *step);
  }
}

static int count_others(void *data) {
  const struct child_files *files = data;
  int others = 0;
  for (int file = 3; file < 256; file++) others += fcntl(file, F_GETFD) >= 0;
  for (int i = 0; i < files->count; i++) others -= fcntl(files->data[i], F_GETFD) >= 0 ? 1 : 100;
  return others ? 1 : 0;
}

// A function has the files that it was given, and no other.
static void kept_files(void **state) {
  canvas_context ctx = {.message = ""};
  struct child_end end;
  struct child_files files = {0};
  static const int given[] = {200, 77, 150, 77, 76};
  for (int i = 0; i < 5; i++) child_keep(&files, dup2(1, given[i]));
  dup2(1, 78);  // another one
  CHECK_INT(files.count, 4, "each once");
  for (int i = 1; i < files.count; i++) CHECK(files.data[i - 1] < files.data[i], "in order");
  const struct child_limits limits = {.seconds = 30, .files = &files};
  assert_int_equal(child_call(&ctx, count_others, &files, &limits, &end), CANVAS_OK);
  CHECK_INT(end.code, 0, "these and no others");
  for (int i = 0; i < files.count; i++) close(files.data[i]);
  close(78);
  mem_free(files.data);
}

static void write_answer(void *data) {
  *(int *)data = 42;
}

// A process beside this one works in memory that both share.
static void beside(void **state) {
  int *answer = memory_shared(sizeof *answer);
  int child = child_beside(write_answer, answer);
  assert_true(child > 0);
  child_join(child);
  assert_int_equal(*answer, 42);
  child_join(-1);
  memory_unshare(answer, sizeof *answer);
}

CHECK_MAIN(cmocka_unit_test(ends), cmocka_unit_test(steps), cmocka_unit_test(processor_time),
           cmocka_unit_test(kept_files), cmocka_unit_test(beside), cmocka_unit_test(rejections),
           cmocka_unit_test(no_files), cmocka_unit_test(said), cmocka_unit_test(shared),
           cmocka_unit_test(orphans), cmocka_unit_test(programs_end),
           cmocka_unit_test(no_variables), cmocka_unit_test(killed_parent))
