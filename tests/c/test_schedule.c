// Schedules as text: both forms, what is canonical, what is rejected without a program, numbers by
// --set, schedules by hand. The error messages of parsing are goldens (tests/golden/schedule_text.txt).
#include "schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"

static struct schedule *parse(const char *text) {
  canvas_context ctx = {.message = ""};
  struct schedule *s;
  if (schedule_parse(&ctx, text, strlen(text), &s) != CANVAS_OK)
    fail_msg("\"%s\" for \"%s\"", ctx.message, text);
  return s;
}

static char *print(const struct schedule *s) {
  struct buf buf = {0};
  schedule_print(s, &buf);
  return buf_take(&buf);
}

// Text and its canonical text without the line `canvas 1`; NULL: the same.
static const struct {
  const char *text, *printed;
} canonical[] = {
    // stages
    {"@x\n", NULL},
    {"@ x :reg", "@x:reg\n"},
    {"@x\n@y\n", NULL},
    {"a =>\n    @x = a\n", NULL},
    {"a =>\n    @x = // a\n", NULL},
    {"a =>\n    @x = {a}/a\n", "a =>\n    @x = a\n"},
    {"a =>\n    @x = {a}/b\n", NULL},
    {"a, b, c =>\n    @x[c][a]:l1 = a, {b, c}/i\n", NULL},
};

// Rows of texts that a tree may be written as.
static const struct {
  const char *text, *printed;
} forms[] = {
    {"a,b=>@x=a,b", "a, b =>\n    @x = a, b\n"},
    {"a => b => @x = a, b", "a, b =>\n    @x = a, b\n"},
    {"a, b => @x = a/i // b / b", "a, b =>\n    @x = {a}/i // b\n"},
    {"a => b =>\n  @x = a, b", "a, b =>\n    @x = a, b\n"},
    {"a =>\n b =>\n  @x = a, b", "a, b =>\n    @x = a, b\n"},
    {"a =>\n  b =>\n          @x = a, b\n          @y = {b}/k, a\n",
     "a, b =>\n    @x = a, b\n    @y = {b}/k, a\n"},
    {"\n\n  a => # the rows\n\n      @x = a\n\n  a =>  \n\t\n      @y = a\n",
     "a =>\n    @x = a\na =>\n    @y = a\n"},
    {"a =>\n  b =>\n    @x = a, b\n  b =>\n    @y = a, b\nc =>\n  @z = c",
     "a =>\n    b =>\n        @x = a, b\n    b =>\n        @y = a, b\nc =>\n    @z = c\n"},
    {"a =>\n  @x = a\n  b =>\n    @y = a, b\n", "a =>\n    @x = a\n    b =>\n        @y = a, b\n"},
    {"canvas 1\na =>\n  @x = a", "a =>\n    @x = a\n"},
    {"schedule a-b.c:3\na =>\n  @x = a", "schedule a-b.c:3\na =>\n    @x = a\n"},
    {"canvas 1\n\nschedule s # of rows\n\na =>\n  @x = a", "schedule s\na =>\n    @x = a\n"},
    // words of the language are names, too
    {"canvas, schedule =>\n  @x = canvas, schedule",
     "canvas, schedule =>\n    @x = canvas, schedule\n"},
    {"schedule:2, R, vec:vec =>\n  @reg = schedule, R, vec",
     "schedule:2, R, vec:vec =>\n    @reg = schedule, R, vec\n"},
};

// `a, b` are loops of one nest; what is annotated, and as it is printed (NULL: the same).
static const struct {
  const char *loops, *printed;
} annotations[] = {
    {"a:14, b", NULL},
    {"a:1099511627776, b", NULL},
    {"a:?, b:?", NULL},
    {"a:{6, 7,14}, b:{2}", "a:{6,7,14}, b:{2}"},
    {"a:{14,6,7}, b", "a:{6,7,14}, b"},
    {"a:mask, b:peel", NULL},
    {"a:para, b:vec", NULL},
    {"a:unroll, b:unroll", NULL},
    {"a:pf(4), b:pf(1024)", NULL},
    {"a:unroll:14, b:vec:mask:?", "a:14:unroll, b:?:mask:vec"},
    {"a:pf(4):para:mask:{1,2}, b", "a:{1,2}:mask:para:pf(4), b"},
    {"{a, b}:para", NULL},
    {"{a, b}:fold:unroll", NULL},
    {"{a, b}:vec:fold", "{a, b}:fold:vec"},
    {"{a, b}:para:fold:pf(2)", "{a, b}:fold:para:pf(2)"},
    {"{a:14:mask, b:{1,2}}:para", NULL},
    {"{a}, {b}:vec:4", "a, b:4:vec"},
};

// What a level means is printed at its first mention, wherever it was written.
static const struct {
  const char *text, *printed;
} mentions[] = {
    {"a =>\n  @x = a\na:4 =>\n  @y = a\n", "a:4 =>\n    @x = a\na =>\n    @y = a\n"},
    {"a:4 =>\n  @x = a\na:4:mask =>\n  @y = a\n", "a:4:mask =>\n    @x = a\na =>\n    @y = a\n"},
    {"a:? =>\n  @x = a\na:?:vec =>\n  @y = a\n", "a:? =>\n    @x = a\na:vec =>\n    @y = a\n"},
    {"a:{1,2} =>\n  @x = a\na:{2,1} =>\n  @y = a\n", "a:{1,2} =>\n    @x = a\na =>\n    @y = a\n"},
    {"r =>\n  a:dyn(r) =>\n    @x = r // a\n  a:dyn(r) =>\n    @y = r // a\n",
     "r =>\n    a:dyn(r) =>\n        @x = r // a\n    a =>\n        @y = r // a\n"},
};

// The selector form, and its tree.
static const struct {
  const char *text, *printed;
} selectors[] = {
    {"C:= a\nC> a\n", "a =>\n    @C = a\n"},
    {"C:=\nC>\n", "@C\n"},
    {"C:= R{a}\nC> R\n", "a =>\n    @C = // a\n"},
    {"C[a]:reg:= a{b:4, c}, d\nC> d, b:vec, c\n",
     "d, b:4:vec, c =>\n    @C[a]:reg = {b, c}/a, d\n"},
    {"C:= n, h, w, oc, R{kh, kw, ic}\nC> {n, h}:para, w, oc:vec, R\n",
     "{n, h}:para, w, kh, kw, ic, oc:vec =>\n    @C = n, h, w, oc // kh, kw, ic\n"},
    {"C:= a, R{k{ko, ki:8}}\nC> a, R\n", "a, ko, ki:8 =>\n    @C = a // {ko, ki}/k\n"},
    {"C:= a, b, R{k}\nC> a:unroll, b:vec, R\n", "a:unroll, k, b:vec =>\n    @C = a, b // k\n"},
    {"C:= a, b, R{k}\nC> a:vec, b, R\n", "k, a:vec, b =>\n    @C = a, b // k\n"},
    {"C:= a, b, R{k}\nC> R, a:vec, b\n", "k, a:vec, b =>\n    @C = a, b // k\n"},
    {"BM:= m, nblk, br, R{elem:dyn(nblk), bc:1}\nRS:= m, n{nblk, br}\n"
     "BM,RS> {m, nblk}:para\n  BM> {br, elem:dyn(nblk), bc:1}:reorder\n"
     "    BM> elem:dyn(nblk), br:vec, bc:1\n  RS> br:vec\n",
     "{m, nblk}:para =>\n    elem:dyn(nblk), br:vec, bc:1 =>\n        @BM = m, nblk, br // elem, "
     "bc\n"
     "    br:vec =>\n        @RS = m, {nblk, br}/n\n"},
    // a stage without a deeper line stands after those lines; an empty line says where else
    {"A:= a, b\nB:= a\nA,B> a\n  A> b\n", "a =>\n    b =>\n        @A = a, b\n    @B = a\n"},
    {"B:= a\nA:= a, b\nB,A> a\n  B>\n  A> b\n", "a =>\n    @B = a\n    b =>\n        @A = a, b\n"},
    {"A:= a\nA> a\nB:= b\nB> b\n", "a =>\n    @A = a\nb =>\n    @B = b\n"},
    {"A:= a, b, c\nA> a\n  A> {b, c}:reorder\n    A> c\n      A> b\n",
     "a, c, b =>\n    @A = a, b, c\n"},
};

// Prints as expected, and the same again after parsing what was printed.
static void check_canonical(const char *text, const char *printed) {
  char expected[4096];
  snprintf(expected, sizeof expected, "canvas 1\n%s", printed);
  struct schedule *s = parse(text);
  char *once = print(s);
  CHECK_TEXT(once, expected, text);
  struct schedule *t = parse(once), *u = schedule_copy(t);
  schedule_free(t);
  char *twice = print(u);
  CHECK_TEXT(twice, once, text);
  free(once);
  free(twice);
  schedule_free(s);
  schedule_free(u);
}

static void texts_are_canonical(void **state) {
  CHECK_ROWS (canonical, row) check_canonical(row->text, row->printed ? row->printed : row->text);
  CHECK_ROWS (forms, row) check_canonical(row->text, row->printed);
  CHECK_ROWS (mentions, row) check_canonical(row->text, row->printed);
}

static void annotations_are_canonical(void **state) {
  CHECK_ROWS (annotations, row) {
    char text[256], printed[256];
    const char *format = "%s =>\n    @x = a, b\n";
    snprintf(text, sizeof text, format, row->loops);
    snprintf(printed, sizeof printed, format, row->printed ? row->printed : row->loops);
    check_canonical(text, printed);
  }
}

static void selectors_become_trees(void **state) {
  CHECK_ROWS (selectors, row) check_canonical(row->text, row->printed);
}

// What the text says arrives in the tree.
static void trees_are_what_the_text_says(void **state) {
  const char *text =
      "schedule s\n{a, b:2}:para, d, e:pf(3) =>\n  c:{1,2}:mask:unroll =>\n"
      "    @x[c][b]:l1 = {a, c}/i, b // {d, e}/k\n";
  struct schedule *s = parse(text);
  CHECK_TEXT(s->name, "s", text);
  CHECK_INT(s->nodes.count, 6, text);
  CHECK_INT(s->levels.count, 5, text);
  const struct schedule_node *group = &s->nodes.data[1], *leaf = &s->nodes.data[5];
  CHECK_INT(group->loop.count, 2, text);
  CHECK_INT(group->loop.marks, LOOP_PARA, text);
  CHECK_INT(group->line, 2, text);
  CHECK_INT(group->column, 1, text);
  const struct level *c = &s->levels.data[schedule_find_level(s, "c")];
  CHECK_INT(c->kind, EXTENT_CHOICE, text);
  CHECK_INT(c->choices.count, 2, text);
  CHECK_INT(c->tail, TAIL_MASK, text);
  CHECK_INT(c->line, 3, text);
  CHECK_INT(leaf->leaf.axes.count, 3, text);
  CHECK_INT(leaf->leaf.reductions, 1, text);
  CHECK_INT(leaf->leaf.scope, SCOPE_L1, text);
  CHECK_INT(leaf->leaf.layout.count, 2, text);
  CHECK_INT(leaf->leaf.axes.data[2].column, 34, text);
  CHECK(!leaf->leaf.axes.data[1].axis, text);
  CHECK_INT(schedule_find_level(s, "z"), -1, text);
  schedule_free(s);
}

// A nest of `depth` loops and a stage of all of them.
static char *deep_text(int depth) {
  struct buf buf = {0};
  for (int i = 0; i < depth; i++) buf_printf(&buf, "%sa%d", i ? ", " : "", i);
  buf_puts(&buf, " =>\n    @x = {a0");
  for (int i = 1; i < depth; i++) buf_printf(&buf, ", a%d", i);
  buf_puts(&buf, "}/i\n");
  return buf_take(&buf);
}

// Five groups of eight loops.
static char *wide_text(void) {
  struct buf buf = {0};
  for (int i = 0; i < 40; i++)
    buf_printf(&buf, "%sa%d%s", i % 8 ? ", " : i ? ", {" : "{", i, i % 8 < 7 ? "" : "}:fold");
  buf_puts(&buf, " =>\n    @x = a0\n");
  return buf_take(&buf);
}

static char *many_stages(int count) {
  struct buf buf = {0};
  for (int i = 0; i < count; i++) buf_printf(&buf, "@x%d\n", i);
  return buf_take(&buf);
}

static void check_limit(char *text, const char *message) {
  canvas_context ctx = {.message = ""};
  struct schedule *s = NULL;
  canvas_status status = schedule_parse(&ctx, text, strlen(text), &s);
  CHECK_INT(status, message ? CANVAS_BAD_INPUT : CANVAS_OK, ctx.message);
  if (message) CHECK_TEXT(ctx.message, message, "a long text");
  schedule_free(s);
  free(text);
}

static void limits_hold(void **state) {
  check_limit(deep_text(SCHEDULE_DEPTH), NULL);
  check_limit(deep_text(SCHEDULE_DEPTH + 1),
              "line 1, column 151: more than 32 loops around one stage");
  check_limit(wide_text(), "line 1, column 179: more than 32 loops around one stage");
  check_limit(many_stages(SCHEDULE_NODES - 1), NULL);
  check_limit(many_stages(SCHEDULE_NODES),
              "line 262144, column 1: more than 262143 loops and stages");
}

// Numbers for levels: the list, the schedule after it or the error message.
static const char unset[] =
    "a:?, b:{6,7}, c =>\n    d:4 =>\n        e:dyn(a) =>\n            @x = a, b, c, d // e\n";
static const struct {
  const char *list, *loops, *message;
} sets[] = {
    {"a=3", "a:3, b:{6,7}, c, d:4,", NULL},
    {"b=7", "a:?, b:7, c, d:4,", NULL},
    {"c=1,d=2", "a:?, b:{6,7}, c:1, d:2,", NULL},
    {" d = 2 , b = 6 ", "a:?, b:6, c, d:2,", NULL},
    {"c=1099511627776", "a:?, b:{6,7}, c:1099511627776, d:4,", NULL},
    {"c=5,b=8", NULL, "line 1, column 7: 8 is none of the numbers of loop 'b', {6,7}"},
    {"e=8", NULL, "line 1, column 3: loop 'e' depends on data, it takes no number"},
    {"c=0", NULL, "line 1, column 3: 0 is no extent of loop 'c', give 1 to 1099511627776"},
    {"c=1099511627777", NULL,
     "line 1, column 3: 1099511627777 is no extent of loop 'c', give 1 to 1099511627776"},
    {"f=1", NULL, "line 1, column 1: the schedule has no loop 'f'"},
    {"f1", NULL,
     "line 1, column 3: expected '=' and a number after the name of a loop, found the end of the "
     "text"},
    {"a=1,a=1", NULL, "line 1, column 5: loop 'a' is given two numbers"},
    {"a", NULL,
     "line 1, column 2: expected '=' and a number after the name of a loop, found the "
     "end of the text"},
    {"a=", NULL, "line 1, column 3: expected a number, found the end of the text"},
    {"a=x", NULL, "line 1, column 3: expected a number, found 'x'"},
    {"a=1 b=2", NULL, "line 1, column 5: expected ',' or the end after a number, found 'b'"},
    {"a=1,", NULL, "line 1, column 5: expected the name of a loop, found the end of the text"},
    {"", NULL, "line 1, column 1: expected the name of a loop, found the end of the text"},
    {"a=99999999999999999999", NULL,
     "line 1, column 3: number '99999999999999999999' is too large"},
};

static void levels_are_set(void **state) {
  CHECK_ROWS (sets, row) {
    canvas_context ctx = {.message = ""};
    struct schedule *s = parse(unset);
    char *before = print(s);
    canvas_status status = schedule_set(&ctx, s, row->list);
    char *after = print(s);
    if (row->message) {
      CHECK_INT(status, CANVAS_BAD_INPUT, row->list);
      CHECK_TEXT(ctx.message, row->message, row->list);
      CHECK_TEXT(after, before, row->list);
    } else {
      CHECK_INT(status, CANVAS_OK, ctx.message);
      CHECK(strstr(after, row->loops), after);
    }
    free(before);
    free(after);
    schedule_free(s);
  }
}

static void a_list_of_numbers_ends(void **state) {
  canvas_context ctx = {.message = ""};
  struct schedule *s = schedule_new("");
  struct buf list = {0};
  for (int i = 0; i < 257; i++) {
    char name[16];
    snprintf(name, sizeof name, "a%d", i);
    schedule_level(s, name);
    buf_printf(&list, "%s%s=1", i ? "," : "", name);
  }
  CHECK_INT(schedule_set(&ctx, s, list.text), CANVAS_BAD_INPUT, list.text);
  CHECK_TEXT(ctx.message, "line 1, column 1683: more than 256 numbers", list.text);
  buf_free(&list);
  schedule_free(s);
}

// By hand: what is legal prints and parses, what is not has an error message without a place.
static struct schedule *by_hand(unsigned marks) {
  struct schedule *s = schedule_new("hand");
  int y = schedule_add_loop(s, 0, schedule_level(s, "yt"), LOOP_PARA);
  int i = schedule_add_loop(s, y, schedule_level(s, "yi"), marks);
  int leaf = schedule_add_leaf(s, i, "Y");
  struct schedule_axis *axis = schedule_add_axis(s, leaf, "y");
  axis->level[axis->count++] = schedule_level(s, "yt");
  axis->level[axis->count++] = schedule_level(s, "yi");
  return s;
}

static void schedules_are_built(void **state) {
  canvas_context ctx = {.message = ""};
  struct schedule *s = by_hand(LOOP_UNROLL);
  const char *expected = "canvas 1\nschedule hand\nyt:para, yi:unroll =>\n    @Y = {yt, yi}/y\n";
  CHECK_INT(schedule_verify(&ctx, s), CANVAS_OK, ctx.message);
  char *text = print(s);
  CHECK_TEXT(text, expected, "by hand");
  free(text);
  schedule_free(s);
}

static void what_is_built_wrong_is_rejected(void **state) {
  static const struct {
    int wrong;
    const char *message;
  } rows[] = {
      {0, "nothing stands in loop 'z'"},
      {1, "loop 'yi' cannot be both 'vec' and 'unroll'"},
      {2, "group of 'yi' has neither 'para' nor 'fold'"},
      {3, "stage '@Y' stands twice, first on line 0"},
  };
  CHECK_ROWS (rows, row) {
    canvas_context ctx = {.message = ""};
    struct schedule *s = by_hand(row->wrong == 1 ? LOOP_VEC | LOOP_UNROLL : LOOP_UNROLL);
    if (row->wrong == 0) schedule_add_loop(s, 1, schedule_level(s, "z"), 0);
    if (row->wrong == 2) {
      struct schedule_loop *loop = &s->nodes.data[2].loop;
      loop->level[loop->count++] = schedule_level(s, "yj");
      struct schedule_axis *axis = &s->nodes.data[3].leaf.axes.data[0];
      axis->level[axis->count++] = schedule_level(s, "yj");
    }
    if (row->wrong == 3) schedule_add_leaf(s, 0, "Y");
    CHECK_INT(schedule_verify(&ctx, s), CANVAS_BAD_INPUT, row->message);
    CHECK_TEXT(ctx.message, row->message, row->message);
    schedule_free(s);
  }
}

CHECK_MAIN(cmocka_unit_test(texts_are_canonical), cmocka_unit_test(annotations_are_canonical),
           cmocka_unit_test(selectors_become_trees), cmocka_unit_test(trees_are_what_the_text_says),
           cmocka_unit_test(limits_hold), cmocka_unit_test(levels_are_set),
           cmocka_unit_test(a_list_of_numbers_ends), cmocka_unit_test(schedules_are_built),
           cmocka_unit_test(what_is_built_wrong_is_rejected))
