// Pictures of kernels: boxes do not overlap, edges join the right boxes and pass through none.
#include "check.h"
#include "sanitized.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "sample/sampler.h"
#include "spell/spell.h"

static canvas_context ctx;

static struct kernel *parse(const char *nodes) {
  struct buf text = {0};
  struct pack *p;
  buf_puts(&text, "canvas 1\nkernel k\na = input\n");
  for (const char *c = nodes; *c; c++) buf_bytes(&text, *c == ';' ? "\n" : c, 1);
  CHECK_INT(pack_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
  struct kernel *k = kernel_copy(p->kernel);
  pack_free(p);
  buf_free(&text);
  return k;
}

static char *draw(const struct kernel *k) {
  struct buf out = {0};
  spell_svg(k, &out);
  return buf_take(&out);
}

struct box {
  int x, y, width, height;
};

/* The boxes in the order of the nodes; how many. */
static int read_boxes(const char *svg, struct box *boxes) {
  int count = 0;
  for (const char *p = svg; (p = strstr(p, "<rect x")); p++, count++) {
    struct box *b = &boxes[count];
    CHECK(count < KERNEL_NODES_MAX, svg);
    CHECK_INT(sscanf(p, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"", &b->x, &b->y,
                     &b->width, &b->height),
              4, p);
  }
  return count;
}

static void check_boxes(const char *svg, const struct box *boxes, int count) {
  int width, height;
  CHECK_INT(sscanf(strstr(svg, "viewBox"), "viewBox=\"0 0 %d %d\"", &width, &height), 2, svg);
  for (int i = 0; i < count; i++) {
    const struct box *a = &boxes[i];
    CHECK(a->x > 0 && a->y > 0 && a->x + a->width < width && a->y + a->height < height, svg);
    for (int j = 0; j < i; j++) {
      const struct box *b = &boxes[j];
      CHECK(a->x + a->width < b->x || b->x + b->width < a->x || a->y + a->height < b->y ||
                b->y + b->height < a->y,
            svg);
    }
  }
}

/* No box has a part strictly between these heights at these columns. */
static void check_free(const char *svg, const struct box *boxes, int count, int left, int right,
                       int top, int bottom) {
  for (int i = 0; i < count; i++)
    CHECK(boxes[i].y + boxes[i].height <= top || boxes[i].y >= bottom ||
              boxes[i].x + boxes[i].width < left || boxes[i].x > right,
          svg);
}

static void check_on(const char *svg, const struct box *b, int x, int y, bool foot) {
  CHECK_INT(y, foot ? b->y + b->height : b->y, svg);
  CHECK(b->x < x && x < b->x + b->width, svg);
}

/* One path, from the foot of one box to the top of another, around all others. A curve keeps within
 * the heights of its ends, where there must be no box at all. */
static void check_edge(const char *svg, const char *path, const struct box *boxes, int count,
                       const struct box *from, const struct box *to) {
  int x, y, next_x, next_y, used, c[4];
  CHECK_INT(sscanf(path, "M%d %d%n", &x, &y, &used), 2, path);
  check_on(svg, from, x, y, true);
  for (path += used; *path == ' '; path += used, x = next_x, y = next_y) {
    if (sscanf(path, " V%d%n", &next_y, &used) == 1) {
      next_x = x;
      check_free(svg, boxes, count, x, x, y, next_y);
    } else {
      CHECK_INT(sscanf(path, " C%d %d %d %d %d %d%n", &c[0], &c[1], &c[2], &c[3], &next_x, &next_y,
                       &used),
                6, path);
      CHECK(c[0] == x && c[2] == next_x && y <= c[1] && c[1] <= c[3] && c[3] <= next_y, path);
      check_free(svg, boxes, count, -1000000, 1000000, y, next_y);
    }
    CHECK(next_y > y, path);
  }
  CHECK_INT(*path, '"', path);
  check_on(svg, to, x, y, false);
}

/* The boxes and edges of these kernels, in this order. */
static void check_kernels(const char *svg, const struct kernel *const *kernels, int count) {
  struct box boxes[KERNEL_NODES_MAX], *own = boxes;
  int all = read_boxes(svg, boxes);
  check_boxes(svg, boxes, all);
  const char *p = svg;
  for (const struct kernel *const *k = kernels; k < kernels + count; own += (*k++)->count) {
    p = strstr(p, "<g fill=\"none\"");
    CHECK(p != NULL, svg);
    for (int i = 0; i < (*k)->count; i++)
      for (int j = 0; j < node_row(&(*k)->nodes[i])->arity; j++) {
        p = strstr(p, "<path d=\"");
        CHECK(p != NULL, svg);
        p += strlen("<path d=\"");
        check_edge(svg, p, boxes, all, &own[(*k)->nodes[i].in[j]], &own[i]);
      }
  }
  CHECK_INT(all, own - boxes, svg);
  CHECK(strstr(p, "<path") == NULL, svg);
}

static void check_picture(const struct kernel *k) {
  char *svg = draw(k), *again = draw(k);
  CHECK_TEXT(svg, again, k->name);
  check_kernels(svg, &k, 1);
  free(svg);
  free(again);
}

/* Shapes that could go wrong; the bodies of kernels. */
static const char *const kernels[] = {
    "out a",
    "b = fc a to=C;out b",
    "b = mul a a;out b",
    "b = relu a;c = sub a b;d = sub a c;e = sub a d;f = sub b e;g = mul d f;out g",
    "b = fc a to=x0;c = relu b;d = fc c to=G*KH*KW;e = group d by=G;f = unfold a over=H,W k=K;"
    "g = group f by=G;h = mul e g;i = fold h mean over=KH,KW;out i",
    /* tensors that change sides on the way down */
    "b = relu a;c = gelu a;d = tanh b;e = abs c;f = add e b;g = sub d c;h = mul f g;i = max h a;"
    "out i",
    /* one wide box among narrow ones */
    "wide_name_of_31_characters_in_i = relu a;c = abs a;d = add c "
    "wide_name_of_31_characters_in_i;"
    "out d",
};

static void every_shape(void **state) {
  CHECK_ROWS (kernels, row) {
    struct kernel *k = parse(*row);
    check_picture(k);
    kernel_free(k);
  }
}

/* As many nodes as a kernel may have: all in one layer but for a chain of sums, or all in a chain
 * whose every tensor is read again at its end. */
static void the_largest(void **state) {
  for (int wide = 0; wide < 2; wide++) {
    struct kernel *k = kernel_new("large");
    int half = KERNEL_NODES_MAX / 2 - 1;
    for (int i = 0; i < half; i++) {
      struct node map = {.op = PRIMITIVE_TANH, .in = {wide ? 0 : i, -1}};
      CHECK_INT(kernel_add(&ctx, k, &map), CANVAS_OK, ctx.message);
    }
    for (int i = 0; i < half; i++) {
      struct node sum = {.op = PRIMITIVE_SUB, .in = {half - i, k->count - 1}};
      CHECK_INT(kernel_add(&ctx, k, &sum), CANVAS_OK, ctx.message);
    }
    struct node out = {.op = PRIMITIVE_OUTPUT, .in = {k->count - 1, -1}};
    CHECK_INT(kernel_add(&ctx, k, &out), CANVAS_OK, ctx.message);
    CHECK_INT(kernel_verify(&ctx, k), CANVAS_OK, ctx.message);
    CHECK_INT(k->count, KERNEL_NODES_MAX, "large");
    check_picture(k);
    kernel_free(k);
  }
}

static void what_the_sampler_draws(void **state) {
  enum { DRAWS = SANITIZED ? 12 : 40 };
  static const char *const options[] = {"", "primitives=25", "primitives=40 require=none"};
  struct targets targets;
  CHECK_INT(targets_parse(&ctx, "64,56,56", 8, &targets), CANVAS_OK, ctx.message);
  int drawn = 0;
  CHECK_ROWS (options, row) {
    struct sample_options o;
    struct sampler *s;
    CHECK_INT(sample_options_parse(&ctx, *row, strlen(*row), &o), CANVAS_OK, ctx.message);
    CHECK_INT(sampler_new(&ctx, &targets, &o, 1, &s), CANVAS_OK, ctx.message);
    for (uint64_t i = 0; i < DRAWS; i++) {
      struct kernel *k;
      int64_t g;
      if (sampler_draw(&ctx, s, i, &k, &g) != CANVAS_OK) continue;
      check_picture(k);
      kernel_free(k);
      drawn++;
    }
    sampler_free(s);
  }
  CHECK(drawn > 3 * DRAWS / 2, "draws");
  targets_free(&targets);
}

/* A chain hangs straight, also beside a lane. */
static void chains_are_straight(void **state) {
  struct kernel *k = parse(
      "b = unfold a over=H,W k=K;c = fc b to=x0;d = relu c;e = fc d to=C;"
      "f = add e a;out f");
  struct box boxes[KERNEL_NODES_MAX];
  char *svg = draw(k);
  read_boxes(svg, boxes);
  for (int i = 2; i <= 4; i++)
    CHECK_INT(2 * boxes[i].x + boxes[i].width, 2 * boxes[1].x + boxes[1].width, svg);
  free(svg);
  kernel_free(k);
}

/* What a picture says of a node: pieces of its box. */
static const struct {
  const char *nodes, *piece;
} pieces[] = {
    {"b = fc a to=x0;c = fc b to=C;out c", ">b = fc a to=x0</text>"},
    {"b = fc a to=x0;c = fc b to=C;out c", ">[x0 H W]</text>"},
    {"b = fc a to=C;out b", "rx=\"5\" stroke-width=\"2.4\" fill=\"#b7d0ea\""},
    {"b = shift a over=H by=-1;out b", "rx=\"5\" stroke-dasharray=\"5 3\""},
    {"b = shift a over=H by=-1;out b", ">b = shift a over=H by=-1</text>"},
    {"b = group a by=G;out b", "[X] -&gt; [by, X/by]</title>"}, /* what a primitive means */
    {"out a", "<desc>\ncanvas 1\nkernel k\na = input                      : C H W\nout a\n</desc>"},
    {"out a", "rx=\"20\" stroke-width=\"1.6\" fill=\"#ffffff\""},
    {"out a", ">out a</text>"},
};

static void boxes_say_it(void **state) {
  CHECK_ROWS (pieces, row) {
    struct kernel *k = parse(row->nodes);
    char *svg = draw(k);
    if (!strstr(svg, row->piece)) fail_msg("no %s in %s", row->piece, svg);
    free(svg);
    kernel_free(k);
  }
}

#define AT(name) name " Cin=8 Cout=8 KH=3 KW=3 H=5 W=4 stride=1"

/* Of several kernels, each different one stands once, with all its targets; kept targets are a
 * line. The description is the text of the pack. */
static void kernels_of_a_pack(void **state) {
  static const char text[] =
      "canvas 1\nkernel conv\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"
      "bind " AT("s") "\nbind " AT("layer1.conv2") "\n"
      "kernel wide\na = input\nb = relu a\nc = abs a\nd = add b c\ne = fc d to=C\nout e\n"
      "bind " AT("t") "\n"
      "kernel again\nx = input\ny = unfold x over=H,W k=K\nz = fc y to=C\nout z\n"
      "bind " AT("u") "\n"
      "keep " AT("v") "\nkeep " AT("w") "\n";
  static const char *const lines[] = {">kernel conv: s, layer1.conv2, u</text>",
                                      ">kernel wide: t</text>", ">keep: v, w</text>",
                                      "<title>2 kernels of 4 targets, 2 kept</title>\n<desc>\n"};
  struct pack *p;
  struct buf out = {0}, printed = {0};
  CHECK_INT(pack_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
  spell_pack_svg(p, &out);
  pack_print(p, &printed);
  check_kernels(out.text, (const struct kernel *const[]){p->kernel, p->next->kernel}, 2);
  CHECK_ROWS (lines, line) CHECK(strstr(out.text, *line) != NULL, out.text);
  CHECK(strstr(out.text, printed.text) != NULL, out.text);
  CHECK(strstr(out.text, ">kernel again") == NULL, out.text);
  buf_free(&out);
  buf_free(&printed);
  pack_free(p);
}

/* Many targets stand in several lines above their kernel. A line is as wide as the picture at most,
 * also where it holds one long name. */
static void many_targets(void **state) {
  enum { TARGETS = 300 };
  struct buf text = {0}, out = {0};
  struct pack *p;
  struct box boxes[KERNEL_NODES_MAX];
  int x, y, last = 0, width, height, lines = 0, names = 0;
  buf_puts(&text, "canvas 1\nkernel k\na = input\nout a\n");
  for (int i = 0; i < TARGETS; i++)
    buf_printf(&text, "bind t%d%s C=8 H=5 W=4\n", i, i == 7 ? "_of_a_name_that_is_long" : "");
  buf_puts(&text, "keep kept C=8 H=5 W=4\n");
  CHECK_INT(pack_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
  spell_pack_svg(p, &out);
  check_kernels(out.text, (const struct kernel *const[]){p->kernel}, 1);
  read_boxes(out.text, boxes);
  CHECK_INT(sscanf(strstr(out.text, "viewBox"), "viewBox=\"0 0 %d %d\"", &width, &height), 2, "");
  const char *line = strstr(out.text, "</defs>");
  while ((line = strstr(line, "<text x=\"12\""))) {
    CHECK_INT(sscanf(line, "<text x=\"%d\" y=\"%d\">", &x, &y), 2, line);
    CHECK(y > last && y < height, line);
    last = y;
    lines++;
    for (; *line != '\n'; line++) names += *line == ',';
  }
  CHECK(lines > 10 && width < 700, out.text);
  CHECK_INT(names, TARGETS - 1, out.text);
  CHECK(last > boxes[1].y + boxes[1].height, "the kept targets stand below");
  buf_free(&out);
  buf_free(&text);
  pack_free(p);
}

/* Every primitive has a family with a colour: two families do not look the same but for the ends. */
static void families_have_colours(void **state) {
  struct kernel *k = parse(
      "b = group a by=G;c = shift b over=H by=1;d = unfold c over=W k=3;e = fc d to=C;"
      "f = relu e;g = softmax f over=C;h = fold g mean over=H;i = mul h a;out i");
  char *svg = draw(k);
  const char *p = svg;
  char seen[16][8];
  int count = 0;
  while ((p = strstr(p, " fill=\"#")) && (p = strchr(p, '#')))
    if (!strncmp(p + 7, "\" stroke=", 9)) {
      memcpy(seen[count], p, 7), seen[count][7] = '\0';
      for (int i = 0; i < count; i++)
        CHECK((count == 9 && i == 0) == !strcmp(seen[i], seen[count]), svg);
      count++;
    }
  CHECK_INT(count, 10, svg);
  free(svg);
  kernel_free(k);
}

CHECK_MAIN(cmocka_unit_test(every_shape), cmocka_unit_test(the_largest),
           cmocka_unit_test(what_the_sampler_draws), cmocka_unit_test(chains_are_straight),
           cmocka_unit_test(boxes_say_it), cmocka_unit_test(kernels_of_a_pack),
           cmocka_unit_test(many_targets), cmocka_unit_test(families_have_colours))
