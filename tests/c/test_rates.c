// The rates of machines: likely ones, their text, and those that are measured, kept and found again.
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "check.h"
#include "machines.h"
#include "run/cache.h"
#include "tune/rates_here.h"

static canvas_context ctx;

// ---- text ----

static void text_parses_back(void **state) {
  (void)state;
  for (int i = 0; i < MACHINES; i++) {
    struct rates rates = rates_likely(machine_model(i)), again;
    struct buf text = {0}, second = {0};
    rates_print(&rates, &text);
    CHECK(rates_parse(text.text, text.length, &again), text.text);
    rates_print(&again, &second);
    CHECK_TEXT(second.text, text.text, "printed again");
    CHECK(again.measured && !rates.measured, text.text);
    buf_free(&second);
    buf_free(&text);
  }
}

// Whichever byte is another, or is missing at the end.
static void damage_is_seen(void **state) {
  (void)state;
  struct rates rates = rates_likely(&machine_avx512), again;
  struct buf text = {0};
  rates_print(&rates, &text);
  for (size_t i = 0; i < text.length; i++) {
    text.text[i] ^= 1;
    CHECK(!rates_parse(text.text, text.length, &again), text.text);
    text.text[i] ^= 1;
    char end = text.text[i];
    text.text[i] = '\0';
    CHECK(!rates_parse(text.text, i, &again), text.text);
    text.text[i] = end;
  }
  CHECK(!rates_parse("", 0, &again), "nothing");
  buf_free(&text);
}

// A rate beyond belief, though its text is whole.
static void beyond_belief(void **state) {
  (void)state;
  static const double values[] = {0, -1, 1e300, NAN, INFINITY};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    struct rates rates = rates_likely(&machine_avx512), again;
    struct buf text = {0};
    rates.hertz = values[i];
    rates_print(&rates, &text);
    CHECK(!rates_parse(text.text, text.length, &again), text.text);
    buf_free(&text);
  }
}

// ---- measured ----

// The text of rates that a cache holds, its path in `path`; false: there is none.
static bool find_text(const char *cache, char *path, size_t size) {
  char objects[300], folder[600];
  bool found = false;
  snprintf(objects, sizeof objects, "%s/objects", cache);
  DIR *all = opendir(objects);
  for (struct dirent *a; all && !found && (a = readdir(all));) {
    if (*a->d_name == '.') continue;
    snprintf(folder, sizeof folder, "%s/%s", objects, a->d_name);
    DIR *some = opendir(folder);
    for (struct dirent *b; some && !found && (b = readdir(some));) {
      struct buf text = {0};
      snprintf(path, size, "%s/%s", folder, b->d_name);
      found = strstr(b->d_name, ".so") && file_read(path, 1 << 16, &text) && text.text &&
              !strncmp(text.text, "canvas rates", 12);
      buf_free(&text);
    }
    if (some) closedir(some);
  }
  if (all) closedir(all);
  return found;
}

static void write_file(const char *path, const char *text) {
  CHECK_INT(file_write(&ctx, path, text, strlen(text)), CANVAS_OK, ctx.message);
}

static void measured_once(void **state) {
  (void)state;
  const struct machine machine = machine_here();
  char folder[200], path[900], command[300];
  struct rates first, second;
  CHECK(temporary_folder(folder, sizeof folder), "folder");
  setenv("CANVAS_CACHE", folder, 1);
  CHECK_INT(rates_here(&ctx, &machine, &first), CANVAS_OK, ctx.message);
  if (first.measured) { /* there is a compiler */
    CHECK(find_text(folder, path, sizeof path), folder);
    CHECK_INT(rates_here(&ctx, &machine, &second), CANVAS_OK, ctx.message);
    CHECK(first.fma <= second.fma * 1.0001 && second.fma <= first.fma * 1.0001, "found again");
    write_file(path, "canvas rates 1\nhertz 9e12\n");
    CHECK_INT(rates_here(&ctx, &machine, &second), CANVAS_OK, ctx.message);
    CHECK(second.measured && second.hertz < 1e11, "measured again");
  }
  setenv("CANVAS_CC", "/no/such/compiler", 1);
  struct rates likely = rates_likely(&machine);
  CHECK_INT(rates_here(&ctx, &machine, &second), CANVAS_OK, ctx.message);
  CHECK(!second.measured, "without a compiler");
  CHECK_NEAR(second.fma, likely.fma, 0, "without a compiler");
  unsetenv("CANVAS_CC");
  setenv("CANVAS_CACHE", "/proc/none", 1);
  CHECK_INT(rates_here(&ctx, &machine, &second), CANVAS_OK, ctx.message);
  CHECK(!second.measured, "without a cache");
  unsetenv("CANVAS_CACHE");
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  CHECK_INT(system(command), 0, command);
}

CHECK_MAIN(cmocka_unit_test(text_parses_back), cmocka_unit_test(damage_is_seen),
           cmocka_unit_test(beyond_belief), cmocka_unit_test(measured_once))
