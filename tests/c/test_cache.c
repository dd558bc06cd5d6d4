// The cache: who may write there, what a seal notices, and that it may be removed at any time.
#define _GNU_SOURCE
#include "run/cache.h"
#include "base/memory.h"
#include "run/compiler.h"
#include "run/sealed.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

enum { STRANGER = 12345 /* a user; only root can give files away */ };

static char folder[64];  // of this test

static int make_folder(void **state) {
  return temporary_folder(folder, sizeof folder) ? 0 : -1;
}

static void shell(const char *format, const char *path) {
  char command[512];
  snprintf(command, sizeof command, format, path, path);
  CHECK_INT(system(command), 0, command);
}

static int remove_all(void **state) {
  shell("chmod -R u+rwx %s; rm -rf %s", folder);
  return 0;
}

static const char *path_of(const char *name) {
  static char path[4][160];
  static int at;
  at = (at + 1) % 4;
  snprintf(path[at], sizeof path[at], "%s/%s", folder, name);
  return path[at];
}

// ---- folders

static const struct {
  const char *name, *deed;  // a command; %s is a folder that holds `cache`
  const char *message;      // %s is the folder; NULL: nothing is wrong
  bool root;                // only root can do that
} places[] = {
    {"as it is made", "true %s", NULL, false},
    {"read by all", "chmod 755 %s/cache %s/cache/objects", NULL, false},
    {"group", "chmod 770 %s/cache", "others may write to '%s/cache': chmod go-w it", false},
    {"others", "chmod 1703 %s/cache", "others may write to '%s/cache': chmod go-w it", false},
    {"objects", "chmod 720 %s/cache/objects", "others may write to '%s/cache/objects': ", false},
    {"work", "chmod 702 %s/cache/work", "others may write to '%s/cache/work': ", false},
    {"linked objects", "mv %s/cache/objects %s/o && ln -s $PWD/o cache/objects",
     "'%s/cache/objects' is a symbolic link, set CANVAS_CACHE to a folder that is none", false},
    {"linked work", "mv %s/cache/work %s/w && ln -s ../w cache/work",
     "'%s/cache/work' is a symbolic link", false},
    {"linked", "mv %s/cache %s/real && ln -s real cache", "'%s/cache' is a symbolic link", false},
    {"leads nowhere", "rm -r %s/cache && ln -s %s/nowhere cache", "'%s/cache' is a symbolic link",
     false},
    {"a file", "rm -r %s/cache && touch %s/cache", "'%s/cache' is no folder, set CANVAS", false},
    {"objects is a file", "rm -r %s/cache/objects && touch %s/cache/objects",
     "'%s/cache/objects' is no folder, set CANVAS_CACHE to another", false},
    {"all may rename it", "chmod 777 %s",
     "others could exchange what is in '%s': chmod go-w it, or set CANVAS_CACHE to a folder of "
     "your own",
     false},
    {"a group may rename it", "chgrp 12345 %s && chmod 770 %s",
     "others could exchange what is in '%s': ", true},
    {"sticky", "chmod 1777 %s", NULL, false},
    {"of another user", "chown 12345 %s/cache",
     "'%s/cache' belongs to another user, set CANVAS_CACHE to a folder of your own", true},
    {"objects of another user", "chown 12345 %s/cache/objects",
     "'%s/cache/objects' belongs to another user", true},
    {"by a link of another user",
     "mv $PWD $PWD.real && ln -s $PWD.real $PWD && chown -h 12345 $PWD && true %s",
     "belongs to another user, who could exchange what is in it: set CANVAS_CACHE to", true},
    {"below that of another user", "chown 12345 %s",
     "'%s' belongs to another user, who could exchange what is in it: set CANVAS_CACHE to a folder "
     "of your own",
     true},
};

// No folder that others can change, or put another one in the place of.
static void folders(void **state) {
  CHECK_ROWS (places, row) {
    canvas_context ctx = {.message = ""};
    char *out = NULL, *real, message[512], command[600];
    const char *place = path_of("place"), *cache = path_of("place/cache");
    if (row->root && geteuid()) continue;
    shell("rm -rf %s && mkdir -m 700 %s", place);
    CHECK_INT(cache_open(&ctx, cache, &out), CANVAS_OK, ctx.message);
    mem_free(out);
    snprintf(command, sizeof command, "cd %s && ", place);
    snprintf(command + strlen(command), 500, row->deed, place, place);
    CHECK_INT(system(command), 0, command);
    real = realpath(place, NULL);
    snprintf(message, sizeof message, row->message ? row->message : "", real);
    free(real);
    canvas_status status = cache_open(&ctx, cache, &out);
    CHECK_INT(status, row->message ? CANVAS_IO : CANVAS_OK, row->name);
    if (row->message && !strstr(ctx.message, message))
      fail_msg("\"%s\" does not hold \"%s\"", ctx.message, message);
    if (!row->message) mem_free(out);
  }
}

static int mode_of(const char *path) {
  struct stat s;
  return stat(path, &s) ? -1 : (int)(s.st_mode & 07777);
}

// ---- objects

#define ANSWER(n) "int f(int *x) { x[0] = " #n "; return 0; }\n"

static struct compiler *open_compiler(const char *command, bool tried) {
  canvas_context ctx = {.message = ""};
  const struct compiler_options options = {
      .command = command, .cache = path_of("cache"), .tried = tried};
  struct compiler *c;
  if (compiler_open(&ctx, &options, &c) != CANVAS_OK) fail_msg("%s", ctx.message);
  return c;
}

static struct object build(const struct compiler *c, const char *text) {
  canvas_context ctx = {.message = ""};
  const struct source source = {text, "f", 1, NULL, 0};
  struct object object;
  if (compiler_build(&ctx, c, &source, 1, 1, 0, &object) != CANVAS_OK) fail_msg("%s", ctx.message);
  return object;
}

static int call_file(int file, const char *path) {
  canvas_context ctx = {.message = ""};
  int (*call)(void *const *), answer = -1;
  void *object = sealed_load(&ctx, file, path), *pointers[] = {&answer};
  if (!object) fail_msg("%s", ctx.message);
  *(void **)&call = dlsym(object, "canvas_call_f");
  assert_non_null(call);
  assert_int_equal(call(pointers), 0);
  return answer;
}

static int call_object(const char *path) {
  int file = cache_open_object(path);
  CHECK(file >= 0, path);
  int answer = call_file(file, path);
  close(file);
  return answer;
}

// With umask 0 or 2, as some systems have it, folders and files are ours alone.
static void umasks(void **state) {
  static const mode_t masks[] = {0, 2, 077};
  for (int i = 0; i < 3; i++) {
    char command[64] = "gcc";
    mode_t before = umask(masks[i]);
    shell("rm -rf %s/cache", folder);
    struct compiler *c = open_compiler(command, false);
    struct object o = build(c, ANSWER(1));
    umask(before);
    assert_non_null(o.path);
    CHECK_INT(mode_of(o.path) & 022, 0, o.path);
    CHECK_INT(mode_of(path_of("cache")), 0700, "cache");
    CHECK_INT(mode_of(path_of("cache/objects")), 0700, "objects");
    CHECK_INT(mode_of(path_of("cache/work")), 0700, "work");
    *strrchr(o.path, '/') = '\0';
    CHECK_INT(mode_of(o.path), 0700, o.path);
    objects_free(&o, 1);
    compiler_close(c);
  }
}

static void flip(const char *path, long at) {
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
  int byte = fgetc(file);
  fseek(file, -1, SEEK_CUR);
  fputc(byte ^ 16, file);
  fclose(file);
}

static const struct {
  const char *name, *deed;  // a command on the object; NULL: a bit of `at` is another one
  long at;                  // from the end where it is negative
  bool root;
} harms[] = {
    {"group may write", "chmod g+w %s", 0, false},
    {"others may write", "chmod o+w %s", 0, false},
    {"of another user", "chown 12345 %s", 0, true},
    {"a link to itself elsewhere", "mv %s %s.real && ln -s %s.real %s", 0, false},
    {"a hard link stays", "ln %s %s.too", -1, false},  // -1: no harm
    {"the folder is a link", "d=$(dirname %s) && mv $d $d.real && ln -s $d.real $d", 0, false},
    {"the folder may be written", "chmod 777 $(dirname %s)", 0, false},
    {"ends early", "truncate -s -1 %s", 0, false},
    {"half of it", "truncate -s 5000 %s", 0, false},
    {"longer", "printf x >>%s", 0, false},
    {"longer by zeros", "truncate -s +64 %s", 0, false},
    {"empty", ": >%s", 0, false},
    {"zeros", "head -c 9000 /dev/zero >%s", 0, false},
    {"a head alone", "d=$(head -c 64 %s | od -An -v -tx1) && truncate -s 64 %s", 0, false},
    {"another object", "cp %s.other %s", 0, false},
    {"a folder", "rm %s && mkdir %s", 0, false},
    {"a full folder", "rm %s && mkdir -p %s/x", 0, false},
    {"a pipe", "rm %s && mkfifo %s", 0, false},
    {"leads nowhere", "rm %s && ln -s nowhere %s", 0, false},
    {"first byte", NULL, 0, false},
    {"in the head", NULL, 40, false},
    {"in the code", NULL, 4200, false},
    {"in the middle", NULL, 9000, false},
    {"its last byte", NULL, -33, false},
    {"the mark", NULL, -32, false},
    {"the length", NULL, -24, false},
    {"the name", NULL, -16, false},
    {"the hash", NULL, -1, false},
};

static void do_harm(const char *deed, const char *path, const char *other) {
  struct buf command = {0};
  for (const char *p = deed; *p; p++) {
    if (!strncmp(p, "%s.other", 8)) {
      buf_puts(&command, other);
      p += 7;
    } else if (!strncmp(p, "%s", 2)) {
      buf_puts(&command, path);
      p++;
    } else {
      buf_bytes(&command, p, 1);
    }
  }
  CHECK_INT(system(command.text), 0, command.text);
  buf_free(&command);
}

// Whatever was done to an object, it is not run; a new one is made, where its folder is one of ours.
static void objects(void **state) {
  canvas_context ctx = {.message = ""};
  struct compiler *c = open_compiler("gcc", false);
  CHECK_ROWS (harms, row) {
    if (row->root && geteuid()) continue;
    bool harmless = row->deed && row->at < 0;
    struct object good = build(c, ANSWER(1)), other = build(c, ANSWER(2));
    if (row->deed)
      do_harm(row->deed, good.path, other.path);
    else
      flip(good.path, row->at);
    int file = cache_open_object(good.path);
    CHECK(file < 0 || harmless, row->name);
    if (file >= 0) close(file);
    const struct source source = {ANSWER(1), "f", 1, NULL, 0};
    struct object again = {0};
    if (!strncmp(row->name, "the folder", 10)) {
      CHECK_INT(compiler_build(&ctx, c, &source, 1, 1, 0, &again), CANVAS_IO, row->name);
      CHECK(strstr(ctx.message, "/objects/"), ctx.message);
    } else if (!strcmp(row->name, "a full folder")) {
      CHECK_INT(compiler_build(&ctx, c, &source, 1, 1, 0, &again), CANVAS_IO, row->name);
      CHECK(strstr(ctx.message, "Directory not empty"), ctx.message);
    } else {
      again = build(c, ANSWER(1));
      CHECK_INT(again.cached, harmless, row->name);
      CHECK_INT(call_object(again.path), 1, row->name);
    }
    objects_free(&again, 1);
    objects_free(&good, 1);
    objects_free(&other, 1);
    shell("rm -rf %s/*", path_of("cache/objects"));
  }
  compiler_close(c);
}

// Each bit of a sealed file counts.
static void bits(void **state) {
  const char *path = path_of("sealed");
  char bytes[77 + 32];
  uint64_t name = 0;
  for (int i = 0; i < 77; i++) bytes[i] = (char)(i * 7);
  FILE *file = fopen(path, "wb");
  assert_true(file && fwrite(bytes, 1, 77, file) == 77 && !fclose(file));
  assert_true(sealed_put(path, 42));
  int open_file = open(path, O_RDWR);
  assert_true(sealed_check(open_file, &name) && name == 42);
  assert_int_equal(pread(open_file, bytes, sizeof bytes, 0), sizeof bytes);
  for (int bit = 0; bit < (int)sizeof bytes * 8; bit++) {
    char byte = (char)(bytes[bit / 8] ^ 1 << bit % 8);
    assert_int_equal(pwrite(open_file, &byte, 1, bit / 8), 1);
    if (sealed_check(open_file, &name)) fail_msg("bit %d", bit);
    assert_int_equal(pwrite(open_file, &bytes[bit / 8], 1, bit / 8), 1);
  }
  assert_true(sealed_check(open_file, &name));
  close(open_file);
}

// What was checked is what is loaded, and by one descriptor one after the other.
static void descriptors(void **state) {
  struct compiler *c = open_compiler("gcc", false);
  struct object a = build(c, ANSWER(3)), b = build(c, ANSWER(4));
  int file = cache_open_object(a.path);
  assert_true(file >= 0);
  assert_int_equal(rename(b.path, a.path), 0);
  assert_int_equal(call_file(file, a.path), 3);
  close(file);
  objects_free(&a, 1);
  a = build(c, ANSWER(3));
  objects_free(&b, 1);
  b = build(c, ANSWER(4));
  int first = cache_open_object(a.path);
  assert_int_equal(call_file(first, a.path), 3);
  close(first);
  int second = cache_open_object(b.path);
  assert_int_equal(second, first);
  assert_int_equal(call_file(second, b.path), 4);
  close(second);
  file = cache_open_object(a.path);
  shell("rm -rf %s", path_of("cache"));  // it is gone, and still loaded
  assert_int_equal(call_file(file, a.path), 3);
  close(file);
  objects_free(&a, 1);
  objects_free(&b, 1);
  compiler_close(c);
}

static const char *script(const char *name, const char *text) {
  canvas_context ctx;
  const char *path = path_of(name);
  assert_int_equal(file_write(&ctx, path, text, strlen(text)), CANVAS_OK);
  chmod(path, 0755);
  return path;
}

// Whoever removes the cache whenever the compiler runs stops nobody.
static void removed(void **state) {
  static const char *const moments[] = {
      "rm -rf %s/cache; exec gcc \"$@\"\n",
      "gcc \"$@\"; status=$?; rm -rf %s/cache; exit $status\n",
      "rm -rf %s/cache/work; exec gcc \"$@\"\n",
      "rm -rf %s/cache/objects; exec gcc \"$@\"\n",
  };
  for (int i = 0; i < 4; i++) {
    char text[512];
    int length =
        snprintf(text, sizeof text, "#!/bin/sh\n[ $1 = --version ] && exec gcc --version\n");
    snprintf(text + length, sizeof text - (size_t)length, moments[i], folder);
    shell("rm -rf %s/cache", folder);
    struct compiler *c = open_compiler(script("removing", text), true);
    struct object o = build(c, ANSWER(5));
    CHECK_TEXT(o.message, "", moments[i]);
    CHECK(o.path && !o.cached, moments[i]);
    CHECK_INT(call_object(o.path), 5, moments[i]);
    objects_free(&o, 1);
    compiler_close(c);
  }
}

// Old folders of compilations are removed, but nothing that has another name: that is a user's own.
static void folders_of_users(void **state) {
  static const char *const own[] = {
      "thesis",    "12345",      "host-1-2",   "1-2-abcdefg",
      "1--abcdef", "g-1-abcdef", "1-2-3-abcd", "11112222333344445-1-abcdef"};
  canvas_context ctx = {.message = ""};
  char *cache, *work, name[80];
  shell("rm -rf %s/cache", folder);
  CHECK_INT(cache_open(&ctx, path_of("cache"), &cache), CANVAS_OK, ctx.message);
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "cache/work/%s", own[i]);
    shell("mkdir %s && touch %s/file", path_of(name));
    shell("touch -d '3 days ago' %s", path_of(name));
  }
  shell("mkdir %s && touch -d '3 days ago' %s", path_of("cache/work/1-999999999-abcdef"));
  CHECK_INT(cache_work(&ctx, cache, &work), CANVAS_OK, ctx.message);
  cache_work_end(work);
  for (int i = 0; i < 8; i++) {
    snprintf(name, sizeof name, "cache/work/%s/file", own[i]);
    CHECK_INT(access(path_of(name), F_OK), 0, own[i]);
  }
  CHECK(access(path_of("cache/work/1-999999999-abcdef"), F_OK), "an old one of ours");
  mem_free(cache);
}

// What ends a process that loads it is not kept; it would end the next one, too.
static void deadly(void **state) {
  char text[512];
  snprintf(text, sizeof text,
           "#!/bin/sh\n[ $1 = --version ] && exec gcc --version\n"
           "if grep -q 'x.0. = 6' unit.c && [ ! -e %s/healed ]; then\n"
           "  echo '__attribute__((constructor)) static void c(void) { __builtin_trap(); }' "
           ">>unit.c\nfi\nexec gcc \"$@\"\n",
           folder);
  struct compiler *c = open_compiler(script("deadly", text), true);
  struct object o = build(c, ANSWER(6));
  assert_null(o.path);
  CHECK(strstr(o.message, "what was compiled cannot be loaded: it "), o.message);
  objects_free(&o, 1);
  shell("touch %s/healed", folder);
  o = build(c, ANSWER(6));
  CHECK_INT(o.cached, false, o.message);
  CHECK_INT(call_object(o.path), 6, "healed");
  objects_free(&o, 1);
  compiler_close(c);
}

int main(void) {
  unsetenv("CANVAS_CC");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folders),          cmocka_unit_test(umasks),
      cmocka_unit_test(objects),          cmocka_unit_test(bits),
      cmocka_unit_test(descriptors),      cmocka_unit_test(removed),
      cmocka_unit_test(folders_of_users), cmocka_unit_test(deadly),
  };
  if (getenv("CANVAS_TEST")) cmocka_set_test_filter(getenv("CANVAS_TEST"));
  return cmocka_run_group_tests(tests, make_folder, remove_all);
}
