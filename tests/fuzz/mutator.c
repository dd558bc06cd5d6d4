/* How the fuzzer changes a text: half the time as libFuzzer changes bytes, half the time word by
 * word and line by line, so that it gets past the first line. Words come from the primitive table,
 * from the vocabulary below, and from the text itself.
 */
#include <string.h>

#include "base/random.h"
#include "fuzz.h"
#include "kernel/primitive.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

static const char *const vocabulary[] = {
    /* dims, attributes, marks */
    "G", "C", "KH", "KW", "H", "W", "x0", "x1", "x15", "group", "channel", "scalar", "to", "by",
    "over", "k", "K", "=", ":", "*", "/", ",", "-", " ", "\n", "#", "..", "canvas", "kernel", "out",
    /* packs and options */
    "bind", "norm", "batch", "Cin", "Cout", "stride", "groups", "name", "macs", "flops", "params",
    "none", "x", "M", "exempt", "primitives", "require", "reach", "elements", ";",
    /* programs */
    "program", "in", "f32", "f64", "[", "]", "(", ")", "//", "sum", "mean", "prod", "if", "then",
    "bf16", "i32", "rising", "max", "min", "cache", "as", "pack", "inline", "type", "else", "real",
    "pow", "log", "floor", "erf", "inf", "true", "false", "%", "<", "<=", "==", "&&", "||", "!",
    "n", "h",
    /* schedules */
    "schedule", "=>", ":=", ">", "@", "{", "}", "?", "a", "b", "para", "vec", "unroll", "fold",
    "mask", "peel", "reorder", "dyn", "pf", "reg", "l1", "heap", "R", "    ", "\n    ", "\n----\n",
    /* numbers */
    "0", "1", "2", "3", "4", "5", "7", "15", "16", "64", "255", "1024", "65536", "16777216",
    "16777217", "2147483647", "2147483648", "1099511627776", "4611686018427387904",
    "9223372036854775807", "9223372036854775808", "0.5", "1e-3", "1e300", "1e999"};

struct text {
  const char *at;
  size_t length;
};

static bool in_word(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The word (or single character) that holds or follows a random place. */
static struct text some_word(struct random *r, const uint8_t *data, size_t size) {
  if (!size) return (struct text){(const char *)data, 0};
  size_t first = random_below(r, (uint32_t)size), last;
  while (first > 0 && in_word(data[first]) && in_word(data[first - 1])) first--;
  for (last = first + 1; last < size && in_word(data[first]) && in_word(data[last]);) last++;
  return (struct text){(const char *)data + first, last - first};
}

/* The line that holds a random place, its end included. */
static struct text some_line(struct random *r, const uint8_t *data, size_t size) {
  if (!size) return (struct text){(const char *)data, 0};
  size_t first = random_below(r, (uint32_t)size), last = first;
  while (first > 0 && data[first - 1] != '\n') first--;
  while (last < size && data[last] != '\n') last++;
  if (last < size) last++;
  return (struct text){(const char *)data + first, last - first};
}

static struct text new_word(struct random *r, const uint8_t *data, size_t size) {
  const struct row *row = &primitive_rows[random_below(r, PRIMITIVE_COUNT)];
  const char *word = vocabulary[random_below(r, sizeof vocabulary / sizeof *vocabulary)];
  switch (random_below(r, 4)) {
    case 0: return some_word(r, data, size);
    case 1: return (struct text){row->word, strlen(row->word)};
    case 2:
      if (*row->mode) return (struct text){row->mode, strlen(row->mode)};
      break;
    default: break;
  }
  return (struct text){word, strlen(word)};
}

/* data with `out` replaced by `in`; both may lie in data. */
static size_t replace(uint8_t *data, size_t size, size_t most, struct text out, struct text in) {
  char copy[4096];
  size_t at = (size_t)((const uint8_t *)out.at - data), after = at + out.length;
  if (in.length > sizeof copy || size - out.length + in.length > most) return size;
  memcpy(copy, in.at, in.length);
  memmove(data + at + in.length, data + after, size - after);
  memcpy(data + at, copy, in.length);
  return size - out.length + in.length;
}

/* Without what stands between a colon and the end of its line: the shape that the old line had. */
static size_t drop_shape(uint8_t *data, size_t size, size_t most, struct text line) {
  const char *colon = memchr(line.at, ':', line.length);
  if (!colon) return size;
  size_t rest = line.length - (size_t)(colon - line.at);
  rest -= line.at[line.length - 1] == '\n';
  return replace(data, size, most, (struct text){colon, rest}, (struct text){"", 0});
}

static size_t edit(struct random *r, uint8_t *data, size_t size, size_t most) {
  struct text word = some_word(r, data, size), line = some_line(r, data, size);
  const struct text nothing = {"", 0};
  switch (random_below(r, 8)) {
    case 0: return replace(data, size, most, word, nothing);
    case 1: return replace(data, size, most, (struct text){word.at, 0}, new_word(r, data, size));
    case 2: return replace(data, size, most, line, nothing);
    case 3: return replace(data, size, most, (struct text){line.at, 0}, some_line(r, data, size));
    case 4: return drop_shape(data, size, most, line);
    default: return replace(data, size, most, word, new_word(r, data, size));
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  struct random r;
  random_open(&r, seed, RANDOM_TEST, 0);
  if (random_below(&r, 2)) return LLVMFuzzerMutate(data, size, most);
  for (uint32_t edits = 1 + random_below(&r, 4); edits > 0; edits--)
    size = edit(&r, data, size, most);
  return size;
}
