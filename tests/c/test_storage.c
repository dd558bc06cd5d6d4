// What a bound schedule says of storage and unrolling is what the emitted C has: the variables that are
// declared, the arrays on the stack (all that are read), the allocations, and the length of the code.
#include "base/random.h"
#include "bind/features.h"
#include "emit_tree.h"
#include "random_edit.h"
#include "random_program.h"

#include <ctype.h>
#include <stdio.h>

#include "check.h"

static canvas_context ctx;

// ---- what the text has ----

// Names, each counted once: a copy of a loop declares its variables again.
struct names {
  struct {
    VEC(char *);
  } list;
};

static void names_add(struct names *n, const char *name, size_t length) {
  for (int i = 0; i < n->list.count; i++)
    if (strlen(n->list.data[i]) == length && strncmp(n->list.data[i], name, length) == 0) return;
  VEC_PUSH(&n->list, strndup(name, length));
}

static int names_free(struct names *n) {
  int count = n->list.count;
  for (int i = 0; i < count; i++) free(n->list.data[i]);
  free(n->list.data);
  return count;
}

static size_t word(const char *at) {
  size_t length = 0;
  while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
  return length;
}

static bool is_type(const char *at, size_t length) {
  if (length == 5 && strncmp(at, "float", 5) == 0) return true;
  if (length == 6 && strncmp(at, "double", 6) == 0) return true;
  return length > 1 && (*at == 'v' || *at == 'd') && strspn(at + 1, "0123456789") == length - 1;
}

// v16 a_0 = x, a_1 = x; the names of a statement that declares variables, those of gathered lanes aside
static void declared(const char *at, struct names *variables) {
  size_t length = word(at);
  if (!is_type(at, length) || at[length] != ' ' || at[length + 1] == '*') return;
  int depth = 0;
  bool name = true;
  for (at += length + 1; *at != ';' || depth; at++) {
    if (name && word(at)) {
      if (strncmp(at, "lanes", 5) != 0) names_add(variables, at, word(at));
      name = false;
      at += word(at) - 1;
      continue;
    }
    depth += (*at == '(' || *at == '{') - (*at == ')' || *at == '}');
    if (*at == ',' && !depth) name = true;
  }
}

struct counts {
  int variables, arrays, heaps;
  int64_t statements;  // lines that end one
};

static bool holds(const char *at, const char *end, const char *word) {
  const char *found = strstr(at, word);
  return found && found < end;
}

// v16 X_part = LOAD_V16(...) or, filled lane by lane, v16 X_lanes, d8 X_lanes: the name of a load; v4 across0: that
// of a step of a transposition;
// float Y_sum: what a loop adds to memory
static bool is_load(const char *at, const char *end) {
  bool vector = at[0] == 'v' || at[0] == 'd';
  return holds(at, end, " = LOAD_") || holds(at, end, "_sum") ||
         (vector && holds(at, end, "_lanes")) || holds(at, end, " across");
}

// The function's buffers are parameters of NAME_body behind the tensors.
static const char *find_body(const char *text, int tensors, struct counts *c) {
  const char *at = strstr(text, "\nstatic int ");
  if (!at) return strstr(text, "\nint ");
  const char *end = strchr(at, '{');
  for (const char *p = at; (p = strstr(p, " *restrict ")) && p < end; p++) c->heaps++;
  c->heaps -= tensors;
  return at;
}

static struct counts count(const char *text, int tensors) {
  struct counts c = {0};
  struct names variables = {0}, arrays = {0}, heaps = {0};
  const char *at = find_body(text, tensors, &c), *last = strstr(at, "\n}\n");
  for (at = strchr(at + 1, '\n'); at && at < last; at = strchr(at, '\n')) {
    at += 1 + strspn(at + 1, " ");
    const char *end = strchr(at, '\n');
    if (!end) break;
    c.statements += end > at && end[-1] == ';';
    if (strncmp(at, "_Alignas(64) ", 13) == 0) {
      const char *name = at + 13 + word(at + 13) + 1;
      names_add(&arrays, name, word(name));
    } else if (strstr(at, " = aligned_alloc(") && strstr(at, " = aligned_alloc(") < end) {
      const char *name = strchr(at, '*') + 1;
      names_add(&heaps, name, word(name));
    } else if (!is_load(at, end)) {
      declared(at, &variables);  // but for what a load of the first lanes gave
    }
  }
  c.variables = names_free(&variables);
  c.arrays = names_free(&arrays);
  c.heaps += names_free(&heaps);
  return c;
}

// ---- what the tree says ----

static void add_storage(const struct storage *s, struct counts *c) {
  if (s->kind == STORAGE_NAMED) c->variables += (int)storage_variables(s);
  c->arrays += s->kind == STORAGE_STACK;
  c->heaps += s->kind == STORAGE_HEAP;
}

static struct counts promised(const struct loop_tree *tree) {
  struct counts c = {.statements = tree->loops[0].statements};
  for (int i = 0; i < tree->count; i++) {
    add_storage(&tree->stages[i].value, &c);
    add_storage(&tree->stages[i].sum, &c);
  }
  return c;
}

static struct counts seen, said;  // over all texts

// Variables and arrays that nobody reads are not declared; loops that are split at borders, and the ends
// of vectors, are more statements than the tree says.
static void compare(const struct loop_tree *tree, const char *label) {
  struct buf text = {0};
  struct features f;
  CHECK_INT(emit_tree(&ctx, tree, NULL, &text), CANVAS_OK, ctx.message);
  CHECK_INT(features_of(&ctx, tree, &f), CANVAS_OK, ctx.message);
  int tensors = tree->program->inputs.count + tree->program->outputs.count;
  struct counts has = count(text.text, tensors), says = promised(tree);
  bool same = has.variables <= says.variables && has.arrays <= says.arrays &&
              has.heaps == says.heaps && has.statements <= 24 * says.statements + 8;
  if (!same)
    print_error("%s\n%d %d %d %lld in the text; %d %d %d %lld in the tree\n", text.text,
                has.variables, has.arrays, has.heaps, (long long)has.statements, says.variables,
                says.arrays, says.heaps, (long long)says.statements);
  CHECK(same, label);
  CHECK_INT(f.all.variables, says.variables, label);
  seen.variables += has.variables;
  seen.arrays += has.arrays;
  seen.heaps += has.heaps;
  said.variables += says.variables;
  said.arrays += says.arrays;
  CHECK(f.all.copies <= says.statements, label);
  features_free(&f);
  buf_free(&text);
}

static void bound(const struct program *p, const struct schedule *s, const char *label) {
  struct machine machine = machine_avx512;
  for (int bytes = 64; bytes >= 16; bytes /= 2) {
    struct loop_tree *tree;
    machine.vector_bytes = bytes;
    if (loop_tree_bind(&ctx, p, s, &machine, &tree) != CANVAS_OK) continue;
    compare(tree, label);
    loop_tree_free(tree);
  }
}

// ---- tests ----

static char *read_text(const char *folder, const char *name) {
  static char text[1 << 16];
  char path[400];
  snprintf(path, sizeof path, "%s/examples/%s/%s", CANVAS_SOURCE, folder, name);
  FILE *file = fopen(path, "r");
  CHECK(file, path);
  size_t length = fread(text, 1, sizeof text - 1, file);
  text[length] = '\0';
  fclose(file);
  return text;
}

static const struct {
  const char *program, *schedule;
} examples[] = {
    {"conv_nchwc.program", "e1_values.schedule"},   {"conv_nchwc.program", "e2_values.schedule"},
    {"conv_im2col.program", "e3_values.schedule"},  {"conv_bsr.program", "e4_values.schedule"},
    {"sparse_dense.program", "e5_values.schedule"}, {"conv_nhwc.program", "e6_values.schedule"},
};

static void the_c_of_examples(void **state) {
  CHECK_ROWS (examples, row) {
    struct program *p;
    struct schedule *s;
    const char *text = read_text("programs", row->program);
    CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
    text = read_text("schedules", row->schedule);
    CHECK_INT(schedule_parse(&ctx, text, strlen(text), &s), CANVAS_OK, ctx.message);
    struct machine machine = machine_avx512;
    struct loop_tree *tree;
    CHECK_INT(loop_tree_bind(&ctx, p, s, &machine, &tree), CANVAS_OK, ctx.message);
    loop_tree_free(tree);
    bound(p, s, row->schedule);
    schedule_free(s);
    program_free(p);
  }
}

static void the_c_of_random_schedules(void **state) {
  for (int i = 0; i < 150; i++) {
    struct random r;
    char label[40];
    random_open(&r, (uint64_t)i, RANDOM_TEST, 5);
    struct program *p = random_program((uint64_t)i);
    snprintf(label, sizeof label, "random program %d", i);
    for (int j = 0; j < 3; j++) {
      struct schedule *s = random_schedule(p, &r, 4 + 8 * j);
      bound(p, s, label);
      schedule_free(s);
    }
    program_free(p);
  }
  CHECK(10 * seen.variables > 9 * said.variables && seen.arrays == said.arrays, "read");
  CHECK(seen.variables > 1000 && seen.arrays > 100 && seen.heaps > 10, "all texts");
}

CHECK_MAIN(cmocka_unit_test(the_c_of_examples), cmocka_unit_test(the_c_of_random_schedules))
