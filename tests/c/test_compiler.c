// The compiler driver and the cache of what it made: real compilers, and scripts that misbehave.
#define _DEFAULT_SOURCE
#include "run/compiler.h"
#include "base/memory.h"
#include "run/cache.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static char folder[64];  // of this test: the cache, and scripts

static int make_folder(void **state) {
  return temporary_folder(folder, sizeof folder) ? 0 : -1;
}

static int remove_all(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

static struct compiler *open_compiler(const char *command, double seconds) {
  canvas_context ctx = {.message = ""};
  struct compiler *c;
  struct compiler_options options = {.command = command, .cache = folder, .seconds = seconds};
  if (compiler_open(&ctx, &options, &c) != CANVAS_OK) fail_msg("%s: %s", command, ctx.message);
  return c;
}

static void write_script(const char *name, const char *text, char *path) {
  canvas_context ctx = {.message = ""};
  snprintf(path, 128, "%s/%s", folder, name);
  assert_int_equal(file_write(&ctx, path, text, strlen(text)), CANVAS_OK);
  chmod(path, 0755);
}

static int count_files(const char *name) {
  char path[128];
  int count = 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  DIR *open = opendir(path);
  for (struct dirent *e; (e = readdir(open));) count += e->d_name[0] != '.';
  closedir(open);
  return count;
}

#define GOOD(name) "int " name "(float *x) { x[0] = 1; return 0; }\n"

static const struct {
  const char *text, *function, *message;  // NULL: it compiles
} sources[] = {
    {GOOD("f"), "f", NULL},
    {"int g(float *x) { return undeclared; }\n", "g", "g.c:1:26: error: 'undeclared' undeclared"},
    {GOOD("h"), "h", NULL},
    {GOOD("f"), "f", NULL},  // the name is taken in this file
    {"#error no\n", "k", "k.c:1:2: error: #error no"},
    {GOOD("l"), "l l", "a function's name is a C name of at most 200 characters"},
    {GOOD("l"), "", "a function's name is a C name"},
    {"/* a comment without end\n", "m", "error"},
    {GOOD("o"), "o", NULL},
};
enum { SOURCES = sizeof sources / sizeof *sources };

// Good ones survive beside bad ones, however many share a file.
static void many(void **state) {
  struct compiler *c = open_compiler("gcc", 0);
  for (int together = 1; together <= SOURCES; together += 3) {
    canvas_context ctx = {.message = ""};
    struct source given[SOURCES];
    struct object objects[SOURCES];
    for (int i = 0; i < SOURCES; i++)
      given[i] = (struct source){sources[i].text, sources[i].function, 1, NULL, 0};
    assert_int_equal(compiler_build(&ctx, c, given, SOURCES, together, 0, objects), CANVAS_OK);
    for (int i = 0; i < SOURCES; i++) {
      if (!sources[i].message) {
        CHECK_TEXT(objects[i].message, "", sources[i].text);
        CHECK(objects[i].path && !access(objects[i].path, R_OK), sources[i].text);
      } else {
        CHECK(!objects[i].path, sources[i].text);
        if (!strstr(objects[i].message, sources[i].message))
          fail_msg("\"%s\" for \"%s\"", objects[i].message, sources[i].text);
      }
    }
    objects_free(objects, SOURCES);
  }
  compiler_close(c);
  assert_int_equal(count_files("work"), 0);
}

// A process that is killed while its compiler runs leaves a folder: the next one removes it, but none of
// a living process, and none of another machine.
static void folder_of_the_killed(void **state) {
  canvas_context ctx = {.message = ""};
  struct compiler *c = open_compiler("gcc", 0);
  char *mine, *next, foreign[128];
  int before = count_files("work");
  snprintf(foreign, sizeof foreign, "%s/work/1-999999999-abcdef", folder);
  assert_int_equal(mkdir(foreign, 0700), 0);
  assert_int_equal(cache_work(&ctx, folder, &mine), CANVAS_OK);
  pid_t child = fork();
  if (!child) {
    char *left;
    bool made = cache_work(&ctx, folder, &left) == CANVAS_OK;
    _exit(made && file_write(&ctx, path_join(left, "unit.c"), "x", 1) == CANVAS_OK ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(count_files("work"), before + 3);
  assert_int_equal(cache_work(&ctx, folder, &next), CANVAS_OK);
  assert_int_equal(count_files("work"), before + 3);
  cache_work_end(next);
  assert_int_equal(access(mine, R_OK), 0);
  cache_work_end(mine);
  assert_int_equal(rmdir(foreign), 0);
  compiler_close(c);
}

static struct object build_until(const struct compiler *c, const char *text, const char *function,
                                 double until) {
  canvas_context ctx = {.message = ""};
  struct source source = {text, function, 1, NULL, 0};
  struct object object;
  if (compiler_build(&ctx, c, &source, 1, 1, until, &object) != CANVAS_OK)
    fail_msg("%s", ctx.message);
  return object;
}

static struct object build_one(const struct compiler *c, const char *text, const char *function) {
  return build_until(c, text, function, 0);
}

// Found again only if source, function, flags and compiler are the same, and the object is whole.
static void cached(void **state) {
  struct compiler *gcc = open_compiler("gcc", 0), *plain = open_compiler("gcc -DX=1", 0);
  char script[128], words[160];
  write_script("other-gcc",
               "#!/bin/sh\n[ \"$1\" = --version ] && echo gcc 99 && exit\nexec gcc \"$@\"\n",
               script);
  snprintf(words, sizeof words, "%s", script);
  struct compiler *other = open_compiler(words, 0);
  const struct {
    const char *name, *text, *function;
    const struct compiler *c;
    bool cached;
  } rows[] = {
      {"new", GOOD("p"), "p", gcc, false},
      {"again", GOOD("p"), "p", gcc, true},
      {"other text", GOOD("p") "\n", "p", gcc, false},
      {"other function", GOOD("p") GOOD("q"), "q", gcc, false},
      {"of that", GOOD("p") GOOD("q"), "p", gcc, false},
      {"other flags", GOOD("p"), "p", plain, false},
      {"other compiler", GOOD("p"), "p", other, false},
      {"the first", GOOD("p"), "p", gcc, true},
      {"the other", GOOD("p"), "p", other, true},
  };
  CHECK_ROWS (rows, row) {
    struct object o = build_one(row->c, row->text, row->function);
    CHECK_INT(o.cached, row->cached, row->name);
    objects_free(&o, 1);
  }
  struct object o = build_one(gcc, GOOD("p"), "p");
  assert_int_equal(truncate(o.path, 0), 0);  // as a full disk leaves it
  objects_free(&o, 1);
  o = build_one(gcc, GOOD("p"), "p");
  assert_false(o.cached);
  struct stat whole;  // one that was cut off
  assert_int_equal(stat(o.path, &whole), 0);
  assert_int_equal(truncate(o.path, whole.st_size - 1), 0);
  objects_free(&o, 1);
  o = build_one(gcc, GOOD("p"), "p");
  assert_false(o.cached);
  cache_drop(o.path);
  objects_free(&o, 1);
  o = build_one(gcc, GOOD("p"), "p");
  assert_false(o.cached);
  char *key = mem_strdup(o.path);  // a file of the same hash and another text is no hit
  strcpy(key + strlen(key) - 3, ".c");
  assert_int_equal(truncate(key, 10), 0);
  objects_free(&o, 1);
  o = build_one(gcc, GOOD("p"), "p");
  assert_false(o.cached);
  objects_free(&o, 1);
  free(key);
  compiler_close(gcc);
  compiler_close(plain);
  compiler_close(other);
}

// Compilers that work when asked who they are and then, on sources with the word BAD, misbehave.
#define DRIVER(deed)                                                                               \
  "#!/bin/sh\ncase $1 in --version) exec gcc --version;; esac\nif grep -q BAD unit.c; then\n" deed \
  "\nfi\nexec gcc \"$@\"\n"
static const struct {
  const char *name, *script, *message;
} drivers[] = {
    {"dies", DRIVER("kill -SEGV $$"), "crashed (segmentation fault, 11)"},
    {"complains", DRIVER("echo; echo internal compiler error; echo; exit 4"),
     "ended with status 4: internal compiler error"},
    {"noise", DRIVER("head -c 2000000 /bin/sh; exit 0"), "ended well but wrote no file"},
    {"noise and fails", DRIVER("head -c 2000000 /bin/sh; exit 1"), "ended with status 1"},
    {"hangs", DRIVER("sleep 1000"), "ran longer than 0."},  // until it has to be over
    {"loops", DRIVER("while :; do :; done"), "ran longer than 0."},
    {"chatters", DRIVER("yes"), "by the clock: y"},
    {"hangs below", DRIVER("sleep 1000 & wait"), "ran longer than 0."},
    {"empty", DRIVER("echo warning: all is well; : >unit.so; exit 0"),
     "ended well but wrote an empty"},
    {"a folder", DRIVER("mkdir unit.so; exit 0"), "ended well but wrote no file"},
    {"is gone", DRIVER("rm $0; exit 127"), "ended with status 127"},
};

static void misbehaving(void **state) {
  CHECK_ROWS (drivers, row) {
    char script[128];
    write_script(row->name, row->script, script);
    for (char *p = script; *p; p++)  // a command is words
      if (*p == ' ') *p = '_';
    write_script(script + strlen(folder) + 1, row->script, script);
    struct compiler *c = open_compiler(script, 0);
    struct object o = build_one(c, GOOD("good"), "good");
    CHECK_TEXT(o.message, "", row->name);
    CHECK(o.path, row->name);
    objects_free(&o, 1);
    double start = clock_wall();
    bool hangs = strstr(row->message, "ran longer") || strstr(row->message, "by the clock");
    o = build_until(c, "// BAD\n" GOOD("bad"), "bad", hangs ? start + 0.5 : 0);
    CHECK(!o.path, row->name);
    if (!strstr(o.message, row->message)) fail_msg("\"%s\" for %s", o.message, row->name);
    CHECK(strlen(o.message) && !strpbrk(o.message, "\n\r\033"), row->name);
    CHECK(clock_wall() - start < 20, row->name);
    objects_free(&o, 1);
    compiler_close(c);
  }
}

static const struct {
  const char *script, *message;
} unusable[] = {
    {"exit 3", "ended with status 3"},
    {"echo no compiler at all", "ended well but wrote no file"},
    {"sleep 1000", "ran longer than 1 s"},
    {"[ $1 = --version ] && exit\necho cannot write object; exit 1",
     "status 1: cannot write object"},
    {"[ $1 = --version ] && exit\necho ld: No space left on device\n"
     "echo collect2: error: ld returned 1 exit status; exit 1",
     "status 1: ld: No space left on device"},
};

/* A compiler that cannot write is not to blame, and nobody needs to install another one. */
static void full_cache(void **state) {
  canvas_context ctx = {.message = ""};
  struct compiler *c;
  struct rlimit before, none;
  char script[128];
  write_script("no-room", "#!/bin/sh\n[ $1 = --version ] && exit\necho it is full; exit 1\n",
               script);
  struct compiler_options options = {.command = script, .cache = folder};
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  none = (struct rlimit){.rlim_cur = 1000, .rlim_max = before.rlim_max};
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  canvas_status status = compiler_open(&ctx, &options, &c);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  assert_int_equal(status, CANVAS_IO);
  if (strncmp(ctx.message, "cannot write '", 14) ||
      !strstr(ctx.message, "File too large; make room, or set CANVAS_CACHE to another folder"))
    fail_msg("\"%s\"", ctx.message);
}

static void none_works(void **state) {
  canvas_context ctx = {.message = ""};
  struct compiler *c;
  char script[128], text[256];
  CHECK_ROWS (unusable, row) {
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", row->script);
    write_script("unusable", text, script);
    struct compiler_options options = {.command = script, .cache = folder, .seconds = 1};
    CHECK_INT(compiler_open(&ctx, &options, &c), CANVAS_IO, row->script);
    if (!strstr(ctx.message, "the C compiler does not work: ") ||
        !strstr(ctx.message, row->message))
      fail_msg("\"%s\" for \"%s\"", ctx.message, row->script);
  }
  // One that hangs is asked for one file, not again with plainer flags.
  snprintf(text, sizeof text,
           "#!/bin/sh\n[ $1 = --version ] && echo Free Software Foundation && exit\n"
           "echo >>%s/asked; sleep 1000\n",
           folder);
  write_script("waits", text, script);
  struct compiler_options waits = {.command = script, .cache = folder, .seconds = 1};
  CHECK_INT(compiler_open(&ctx, &waits, &c), CANVAS_IO, script);
  struct stat asked;
  snprintf(text, sizeof text, "%s/asked", folder);
  assert_int_equal(stat(text, &asked), 0);
  assert_int_equal(asked.st_size, 1);
  struct compiler_options options = {.cache = folder};
  char *path = mem_strdup(getenv("PATH"));
  setenv("PATH", "/nowhere", 1);
  canvas_status status = compiler_open(&ctx, &options, &c);
  setenv("PATH", path, 1);
  free(path);
  assert_int_equal(status, CANVAS_IO);
  assert_string_equal(
      ctx.message,
      "no C compiler works, of cc, gcc and clang: 'clang' ended with status 127: No "
      "such file or directory; install gcc or clang, or say in CANVAS_CC which to use");
  setenv("CANVAS_CC", "canvas-no-such-compiler -O3", 1);
  status = compiler_open(&ctx, &options, &c);
  unsetenv("CANVAS_CC");
  assert_int_equal(status, CANVAS_IO);
  assert_string_equal(
      ctx.message,
      "the C compiler does not work: 'canvas-no-such-compiler -O3' ended with status "
      "127: No such file or directory (CANVAS_CC names it: "
      "set it to gcc or clang)");
}

// Time for one file is not time for ten; what comes too late says so.
static void out_of_time(void **state) {
  canvas_context ctx = {.message = ""};
  char script[128];
  write_script("slow", DRIVER("sleep 1000"), script);
  struct compiler *c = open_compiler(script, 30);
  struct source given[3] = {{"// BAD\n" GOOD("a"), "a", 1, NULL, 0},
                            {"// BAD\n" GOOD("b"), "b", 1, NULL, 0},
                            {GOOD("c"), "c", 1, NULL, 0}};
  struct object objects[3];
  double start = clock_wall();
  assert_int_equal(compiler_build(&ctx, c, given, 3, 3, start + 0.5, objects), CANVAS_OK);
  assert_true(clock_wall() - start < 20);
  for (int i = 0; i < 3; i++) {
    assert_null(objects[i].path);
    assert_string_equal(objects[i].message, "there was no time left to compile it");
    assert_true(objects[i].late);
  }
  objects_free(objects, 3);
  compiler_close(c);
}

// Where it hangs, the next file gets half of the time.
static void hangs_again(void **state) {
  canvas_context ctx = {.message = ""};
  char script[128];
  write_script("hangs", DRIVER("while :; do :; done"), script);
  struct compiler *c = open_compiler(script, 0.5);
  static const char *const messages[] = {"ran longer than 0.5 s of processor time",
                                         "ran longer than 0.25 s of processor time"};
  struct source given[2] = {{"// BAD\n" GOOD("a"), "a", 1, NULL, 0},
                            {"// BAD\n" GOOD("b"), "b", 1, NULL, 0}};
  struct object objects[2];
  assert_int_equal(compiler_build(&ctx, c, given, 2, 2, 0, objects), CANVAS_OK);
  for (int i = 0; i < 2; i++) {
    assert_true(objects[i].hung && !objects[i].late);
    CHECK(strstr(objects[i].message, messages[i]), objects[i].message);
  }
  objects_free(objects, 2);
  compiler_close(c);
}

static const struct {
  const char *own, *shared, *home, *folder, *message;
} places[] = {
    {"%s/own", "%s/shared", "%s/home", "%s/own", NULL},
    {"", "%s/shared", "%s/home", "%s/shared/canvas", NULL},
    {NULL, "relative", "%s/home", "%s/home/.cache/canvas", NULL},
    {NULL, NULL, NULL, NULL, "HOME is not set, so say in CANVAS_CACHE where compiled code is kept"},
    {"%s/file", NULL, NULL, NULL, "'%s/file' is no folder, set CANVAS_CACHE to another"},
    {"%s/file/below", NULL, NULL, NULL,
     "cannot make the folder '%s/file/below': Not a directory; set CANVAS_CACHE to another"},
    {"%s/open", NULL, NULL, NULL,
     "others may write to '%s/open': chmod go-w it once you trust what is in it, or set "
     "CANVAS_CACHE to a "
     "folder of your own"},
};

static void set_place(const char *variable, const char *format) {
  char path[128];
  unsetenv(variable);
  if (!format) return;
  snprintf(path, sizeof path, strstr(format, "%s") ? format : "%s",
           strstr(format, "%s") ? folder : format);
  setenv(variable, path, 1);
}

static void where(void **state) {
  canvas_context ctx = {.message = ""};
  char path[256];
  char *home = getenv("HOME") ? mem_strdup(getenv("HOME")) : NULL;
  snprintf(path, sizeof path, "%s/open", folder);
  mkdir(path, 0777);
  chmod(path, 0777);
  snprintf(path, sizeof path, "%s/file", folder);
  assert_int_equal(file_write(&ctx, path, "x", 1), CANVAS_OK);
  CHECK_ROWS (places, row) {
    char *out = NULL, expected[256];
    set_place("CANVAS_CACHE", row->own);
    set_place("XDG_CACHE_HOME", row->shared);
    set_place("HOME", row->home);
    canvas_status status = cache_open(&ctx, NULL, &out);
    snprintf(expected, sizeof expected, row->message ? row->message : row->folder, folder);
    if (row->message) {
      CHECK_INT(status, CANVAS_IO, row->message);
      if (!strstr(ctx.message, expected)) fail_msg("\"%s\" is not \"%s\"", ctx.message, expected);
    } else {
      CHECK_INT(status, CANVAS_OK, expected);
      CHECK_TEXT(out, expected, expected);
      free(out);
    }
  }
  set_place("CANVAS_CACHE", NULL);
  set_place("XDG_CACHE_HOME", NULL);
  set_place("HOME", home);
  free(home);
}

// A folder that vanishes under us is made again.
static void vanished(void **state) {
  canvas_context ctx = {.message = ""};
  char path[128], command[256];
  snprintf(path, sizeof path, "%s/vanishing", folder);
  struct compiler_options options = {.command = "gcc", .cache = path};
  struct compiler *c;
  assert_int_equal(compiler_open(&ctx, &options, &c), CANVAS_OK);
  snprintf(command, sizeof command, "rm -rf %s", path);
  assert_int_equal(system(command), 0);
  struct object object = build_one(c, GOOD("v"), "v");
  CHECK(object.path && !access(object.path, R_OK), object.message);
  objects_free(&object, 1);
  compiler_close(c);
  snprintf(path, sizeof path, "%s/no/file", folder);
  assert_int_equal(file_write(&ctx, path, "x", 1), CANVAS_IO);
  char expected[256];
  snprintf(expected, sizeof expected, "cannot write '%s': No such file or directory", path);
  assert_string_equal(ctx.message, expected);
}

// For many candidates clang at -O1, where it is installed and nobody says what to use.
static void the_quick_one(void **state) {
  static const struct {
    const char *command, *text;  // how it begins
  } rows[] = {{NULL, "clang -O1"}, {"clang", "clang -O1"}, {"gcc", "gcc -O2"}};
  if (system("command -v clang >/dev/null")) skip();
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    const struct compiler_options options = {
        .command = row->command, .cache = folder, .quick = true};
    struct compiler *c;
    struct object object;
    const struct source source = {GOOD("quick"), "quick", 1, NULL, 0};
    if (compiler_open(&ctx, &options, &c) != CANVAS_OK) fail_msg("%s", ctx.message);
    CHECK(!strncmp(compiler_text(c), row->text, strlen(row->text)), compiler_text(c));
    assert_int_equal(compiler_build(&ctx, c, &source, 1, 1, 0, &object), CANVAS_OK);
    CHECK(object.path, object.message);
    objects_free(&object, 1);
    compiler_close(c);
  }
}

// A path may hold blanks, and flags stand behind it; the shortest that is a file is the program.
static void blanks_in_paths(void **state) {
  static const struct {
    const char *command, *given;  // what the program is called with at first
  } rows[] = {
      {"%s/my own/cc", "--version"},
      {"  %s/my own/cc ", "--version"},
      {"%s/my own/cc -m64 -O1", "-m64 -O1 --version"},
      {"%s/my own/c  c\t-m64", "-m64 --version"},
      {"%s/first of/two", "of/two --version"},
  };
  static const char *const paths[] = {"my own/cc", "my own/c  c", "first of/two", "first"};
  char path[128], script[256], command[256], said[64];
  snprintf(script, sizeof script,
           "#!/bin/sh\necho \"$*\" >>%s/given\n[ \"$1\" = of/two ] && shift\nexec gcc \"$@\"\n",
           folder);
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)strcspn(paths[i], "/"), paths[i]);
    if (strchr(paths[i], '/')) mkdir(path, 0755);
    write_script(paths[i], script, path);
  }
  CHECK_ROWS (rows, row) {
    snprintf(command, sizeof command, row->command, folder);
    compiler_close(open_compiler(command, 20));
    snprintf(path, sizeof path, "%s/given", folder);
    FILE *file = fopen(path, "r");
    assert_true(file && fgets(said, sizeof said, file));
    fclose(file);
    unlink(path);
    said[strcspn(said, "\n")] = '\0';
    CHECK_TEXT(said, row->given, command);
  }
}

int main(void) {
  unsetenv("CANVAS_CC");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many),        cmocka_unit_test(cached),
      cmocka_unit_test(misbehaving), cmocka_unit_test(folder_of_the_killed),
      cmocka_unit_test(full_cache),  cmocka_unit_test(none_works),
      cmocka_unit_test(out_of_time), cmocka_unit_test(where),
      cmocka_unit_test(vanished),    cmocka_unit_test(the_quick_one),
      cmocka_unit_test(hangs_again), cmocka_unit_test(blanks_in_paths),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_all);
}
