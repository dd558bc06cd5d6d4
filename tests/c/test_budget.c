// Budgets and the solver by constraints: text, the paper's figure 3, growth, brute force.
#include "check.h"
#include "sanitized.h"

#include <stdio.h>

#include "base/random.h"
#include "budget/budget.h"

#define KERNEL(name, body) "canvas 1\nkernel " name "\na = input\n" body

static const char figure3[] =
    KERNEL("figure3", "b = fc a to=x0\nc = fc a to=G*KH\nd = add c b\ne = fc d to=C\nout e\n");
static const char narrow[] = KERNEL("narrow", "b = fc a to=x0\nc = fc b to=C\nout c\n");
static const char chain[] =
    KERNEL("chain", "b = fc a to=x0\nc = fc b to=x1\nd = fc c to=C\nout d\n");
static const char fork[] = KERNEL(
    "fork", "b = fc a to=x0\nc = fc a to=x1\nd = fc b to=C\ne = fc c to=C\nf = add d e\nout f\n");
static const char convolution[] =
    KERNEL("convolution", "b = unfold a over=H,W k=K\nc = fc b to=C\nout c\n");
static const char squared[] = KERNEL("squared", "b = fc a to=C*C\nc = fc b to=C\nout c\n");
static const char identity[] = KERNEL("identity", "out a\n");
static const char groups[] =
    KERNEL("groups", "b = group a by=G\nc = fc b to=x0\nd = group c by=G\ne = fc d to=C\nout e\n");
static const char share[] = KERNEL("share", "b = fc a to=x0/6\nc = fc b to=C\nout c\n");
static const char mixed[] =
    KERNEL("mixed", "b = fc a to=x0*x1\nc = group b by=4\nd = fc c to=C\nout d\n");
static const char square[] =
    KERNEL("square", "b = fc a to=x0*x0\nc = group b by=4\nd = fc c to=C\nout d\n");
static const char thirds[] = KERNEL("thirds", "b = group a by=3\nc = fc b to=C\nout c\n");

static struct kernel *kernel_of(const char *text) {
  canvas_context ctx = {""};
  struct lexer lx;
  struct kernel *k = NULL;
  if (lexer_open(&lx, &ctx, text, strlen(text)) || kernel_parse(&lx, &k))
    fail_msg("%s", ctx.message);
  return k;
}

// -- text --

static const struct {
  const char *text, *expected;  // the budget in print, or the error message why not
} texts[] = {
    {"macs=0.5x,params=0.5x", "macs=0.5x,params=0.5x"},
    {"macs=900M", "macs=900000000,params=1x"},
    {"params=none", "macs=1x,params=none"},
    {" macs = 0.2x .. 0.5x , params = 1.5k ", "macs=0.2x..0.5x,params=1500"},
    {"params=1G,macs=none", "macs=none,params=1000000000"},
    {"macs=0.2x..none", "macs=0.2x..none,params=1x"},
    {"macs=0.2x..900M", "macs=0.2x..900000000,params=1x"},
    {"macs=0.5x..0.50x", "macs=0.5x..0.5x,params=1x"},
    {"flops=1.8G", "macs=900000000,params=1x"},
    {"flops=7", "macs=3.5,params=1x"},
    {"flops=0.5x..1x", "macs=0.5x..1x,params=1x"},
    {"macs=1e9", "macs=1000000000,params=1x"},
    {"macs=4e18,params=58388608400000000", "macs=4000000000000000000,params=58388608400000000"},
    {"flops=2", "macs=1,params=1x"},
    {"macs=25e-2x", "macs=0.25x,params=1x"},
    {"macs=007.500x", "macs=7.5x,params=1x"},
    {"macs=0.000000000001x", "macs=0.000000000001x,params=1x"},
    {"macs=1.05x\n", "macs=1.05x,params=1x"},
    // what is rejected
    {"", "line 1, column 1: expected a budget such as 'macs=0.5x', found the end of the text"},
    {"macs",
     "line 1, column 5: expected '=' after the name of a budget, found the end of the text"},
    {"macs=",
     "line 1, column 6: expected a positive number such as 0.5x or 900M, or 'none', found the "
     "end of the text"},
    {"macs=nan",
     "line 1, column 6: expected a positive number such as 0.5x or 900M, or 'none', found "
     "'nan'"},
    {"macs=inf",
     "line 1, column 6: expected a positive number such as 0.5x or 900M, or 'none', found "
     "'inf'"},
    {"macs=-1",
     "line 1, column 6: expected a positive number such as 0.5x or 900M, or 'none', found "
     "'-'"},
    {"macs=.5x",
     "line 1, column 6: expected a positive number such as 0.5x or 900M, or 'none', found "
     "'.'"},
    {"macs=0", "line 1, column 6: a budget must be more than 0, or 'none'"},
    {"macs=0.00x", "line 1, column 6: a budget must be more than 0, or 'none'"},
    {"macs=0e9999999", "line 1, column 6: a budget must be more than 0, or 'none'"},
    {"macs=0..0.5x", "line 1, column 6: a budget must be more than 0, or 'none'"},
    {"macs=1e999999", "line 1, column 6: number '1e999999' is too large"},
    {"macs=1e30", "line 1, column 6: number '1e30' is out of range or has more digits than needed"},
    {"macs=1e-30x",
     "line 1, column 6: number '1e-30' is out of range or has more digits than needed"},
    {"macs=0.3333333333333x",
     "line 1, column 6: number '0.3333333333333' is out of range or has more digits than needed"},
    {"macs=4000000000000000001",
     "line 1, column 6: number '4000000000000000001' is out of range or has more digits than "
     "needed"},
    {"flops=1.9",
     "line 1, column 1: the budget of flops is less than 2, which is one multiply-accumulate"},
    {"macs=5000000000G", "line 1, column 16: number is over the limit of 4e18"},
    {"macs=0.5",
     "line 1, column 6: budget 0.5 is less than one, write 0.5x for a share of the layers "
     "replaced"},
    {"macs=5T", "line 1, column 7: unknown unit 'T', use x (of the layers replaced), k, M or G"},
    {"macs=0x10", "line 1, column 6: a budget must be more than 0, or 'none'"},
    {"macs=1x10",
     "line 1, column 7: unknown unit 'x10', use x (of the layers replaced), k, M or G"},
    {"macs=1 x", "line 1, column 8: expected ',' or the end of the budget, found 'x'"},
    {"time=1x", "line 1, column 1: unknown budget 'time', use macs, flops or params"},
    {"0.5x", "line 1, column 1: expected a budget such as 'macs=0.5x', found '0.5'"},
    {"macs=1x,",
     "line 1, column 9: expected a budget such as 'macs=0.5x', found the end of the text"},
    {"macs=1x params=1x",
     "line 1, column 9: expected ',' or the end of the budget, found 'params'"},
    {"macs=1x,macs=2x", "line 1, column 9: the budget of macs stands twice"},
    {"macs=1x,flops=2x", "line 1, column 9: the budget of macs stands twice"},
    {"macs=0.5x..0.2x", "line 1, column 6: the least of a budget is over its most"},
    {"macs=0.5x..",
     "line 1, column 12: expected a positive number such as 0.5x or 900M, or 'none', found "
     "the end of the text"},
    {"macs=none..1x", "line 1, column 10: expected ',' or the end of the budget, found '..'"},
    {"macs=0.5x\x01",
     "line 1, column 10: unexpected byte 0x01, expected ',' or the end of the budget"},
};

static const char *read_budget(const char *text) {
  static char answer[MESSAGE_SIZE];
  canvas_context ctx = {""};
  struct budget b;
  struct buf out = {0};
  if (budget_parse(&ctx, text, strlen(text), &b) != CANVAS_OK) {
    snprintf(answer, sizeof answer, "%s", ctx.message);
    return answer;
  }
  budget_print(&b, &out);
  snprintf(answer, sizeof answer, "%s", out.text);
  buf_free(&out);
  return answer;
}

static void text(void **state) {
  CHECK_ROWS (texts, row) {
    CHECK_TEXT(read_budget(row->text), row->expected, row->text);
    if (strncmp(row->expected, "macs=", 5) == 0)  // parses back to itself
      CHECK_TEXT(read_budget(row->expected), row->expected, row->text);
  }
}

// -- solving --

struct question {
  const char *kernel, *targets, *budget;
  int64_t g, elements_limit;
  bool exempt;
};

// "x0=12; x0=60" (targets in order), or the error message why not with its status in front.
static const char *solve_as(const struct question *q, bool paper, struct solve_trace *trace) {
  static char answer[MESSAGE_SIZE + 8];
  canvas_context ctx = {""};
  struct kernel *k = kernel_of(q->kernel);
  struct targets t;
  struct budget b;
  struct pack *p;
  struct buf out = {0};
  struct solve_options options = {.g = q->g,
                                  .exempt = q->exempt,
                                  .elements_limit = q->elements_limit,
                                  .paper = paper,
                                  .trace = trace};
  if (targets_parse(&ctx, q->targets, strlen(q->targets), &t)) fail_msg("%s", ctx.message);
  if (budget_parse(&ctx, q->budget, strlen(q->budget), &b)) fail_msg("%s", ctx.message);
  canvas_status status = budget_solve(&ctx, k, &t, &b, &options, &p);
  if (status == CANVAS_OK) {
    for (int i = 0; i < p->count; i++) {
      buf_puts(&out, i ? ";" : "");
      for (int s = SIZE_X0; s < SIZES; s++)
        if (p->data[i].sizes.value[s])
          buf_printf(&out, "%s%s=%lld", out.length ? " " : "", size_name((enum size)s),
                     (long long)p->data[i].sizes.value[s]);
    }
    pack_free(p);
  } else {
    buf_printf(&out, "%s: %s", status == CANVAS_NONE ? "none" : "bad", ctx.message);
  }
  snprintf(answer, sizeof answer, "%s", out.text ? out.text : "");
  buf_free(&out);
  targets_free(&t);
  kernel_free(k);
  return answer;
}

// As published: base values and doublings.
static const char *solve(const struct question *q, struct solve_trace *trace) {
  return solve_as(q, true, trace);
}

// The paper's figure 3 with G = 4, K = 3 and 5, C = 64 and 256. The layers cost
// 3136 * 64*(2*x + 12) and 196 * 256*(2*x + 20) macs: at (12, 60) 7225344 + 7024640, at (48, 240)
// 21676032 + 25088000.
#define FIGURE3 "one 64 64 56 56 3\nmany 256 256 14 14 5"

static const struct {
  struct question q;
  const char *expected;
  int rounds;
} rows[] = {
    // the base sizes, with a budget of exactly their cost
    {{figure3, FIGURE3, "macs=14249984,params=none", 4, 0, false}, "x0=12; x0=60", 0},
    {{figure3, FIGURE3, "macs=none,params=38144", 4, 0, false}, "x0=12; x0=60", 0},
    // ... of exactly the cost of (48, 240): after two rounds
    {{figure3, FIGURE3, "macs=46764032,params=none", 4, 0, false}, "x0=48; x0=240", 2},
    {{figure3, FIGURE3, "macs=none,params=134912", 4, 0, false}, "x0=48; x0=240", 2},
    {{figure3, FIGURE3, "macs=46764031,params=none", 4, 0, false}, "x0=48; x0=120", 2},
    // one less than the base
    {{figure3, FIGURE3, "macs=14249983,params=none", 4, 0, false},
     "none: macs 14249984 of the smallest sizes are over the budget of 14249983",
     0},
    {{figure3, FIGURE3, "macs=none,params=38143", 4, 0, false},
     "none: params 38144 of the smallest sizes are over the budget of 38143",
     0},
    {{figure3, FIGURE3, "macs=0.01x,params=none", 4, 0, false},
     "none: macs 14249984 of the smallest sizes are over the budget of 4367319 (0.01x of "
     "436731904)",
     0},
    // the order of the targets does not matter to which is target 1
    {{figure3, "many 256 256 14 14 5\none 64 64 56 56 3", "macs=14249984,params=none", 4, 0, false},
     "x0=60; x0=12",
     0},
    // of targets with equal C the first is target 1: 12 -> ceil(12/20)*20, 20 -> ceil(20/12)*12
    {{figure3, "a 64 64 1 1 3\nb 64 64 1 1 5", "macs=none,params=6656", 4, 0, false},
     "x0=12; x0=20",
     0},
    {{figure3, "b 64 64 1 1 5\na 64 64 1 1 3", "macs=none,params=7680", 4, 0, false},
     "x0=20; x0=24",
     0},

    // growth: what costs least of its dearest budget goes first. Doubling costs 4816896 macs and
    // 1536 params at `one`, 6021120 macs (at 7x7: 1505280) and 30720 params at `many`.
    {{figure3, FIGURE3, "macs=20271104,params=none", 4, 0, false}, "x0=24; x0=60", 1},
    {{figure3, "one 64 64 56 56 3\nmany 256 256 7 7 5", "macs=13798400,params=none", 4, 0, false},
     "x0=12; x0=240",
     2},
    {{figure3, "one 64 64 56 56 3\nmany 256 256 7 7 5", "macs=13798400,params=70000", 4, 0, false},
     "x0=24; x0=60",
     1},
    {{figure3, "one 64 64 56 56 3\nmany 256 256 7 7 5", "macs=13798400,params=700000", 4, 0, false},
     "x0=12; x0=240",
     2},
    // ties go by target, then by variable
    {{narrow, "8,2,2;8,2,2", "macs=192,params=none", 0, 0, false}, "x0=2; x0=1", 1},
    {{fork, "8,2,2", "macs=192,params=none", 0, 0, false}, "x0=2 x1=1", 1},
    {{fork, "8,2,2;8,2,2", "macs=448,params=none", 0, 0, false}, "x0=2 x1=2; x0=2 x1=1", 1},
    // each once in a round: (1, 1) -> (2, 2) and not (4, 1)
    {{fork, "8,2,2", "macs=256,params=none", 0, 0, false}, "x0=2 x1=2", 1},
    // a later round goes on with those that still fit
    {{chain, "8,2,2", "macs=none,params=60", 0, 0, false}, "x0=4 x1=2", 2},

    // what bounds a variable without a budget: the elements of a tensor, the size itself
    {{narrow, "4,4,4", "macs=none,params=none", 0, 1000, false}, "x0=32", 5},
    {{narrow, "4,4,4", "macs=none,params=none", 0, 1024, false}, "x0=64", 6},
    {{narrow, "1,1,1", "macs=none,params=none", 0, INT64_C(1) << 40, false}, "x0=16777216", 24},
    {{narrow, "4,4,4", "macs=none,params=none", 0, 63, false},
     "none: target 't0': node 'a' of kernel 'narrow' has 64 elements, over the limit of 63",
     0},
    {{figure3, "8,1,1", "macs=none,params=none", 8, 150, false},
     "none: target 't0': node 'b' of kernel 'figure3' has 192 weights, over the limit of 150",
     0},

    // base sizes of every kind of dim
    {{share, "8,1,1", "macs=16,params=none", 0, 0, false}, "x0=6", 0},
    {{groups, "8,1,1;24,1,1", "macs=160,params=none", 8, 0, false}, "x0=8; x0=24", 0},
    {{narrow, "8,1,1;12,1,1;20,1,1", "macs=184,params=none", 0, 0, false}, "x0=1; x0=2; x0=3", 0},
    {{mixed, "8,1,1", "macs=40,params=none", 0, 0, false}, "x0=4 x1=1", 0},
    {{square, "8,1,1", "macs=160,params=none", 0, 0, false}, "x0=4", 0},
    {{square, "8,1,1", "macs=640,params=none", 0, 0, false}, "x0=8", 1},
    {{thirds, "12,4,4", "macs=1x", 0, 0, false}, "", 0},
    {{thirds, "12,4,4;16,4,4", "macs=1x", 0, 0, false},
     "none: target 't1': node 'b' of kernel 'thirds' needs a whole number for C/3, which is 16/3",
     0},

    {{KERNEL("coarse",
             "b = fc a to=x0\nc = group b by=65536\nd = fold c mean over=G\ne = fc d to=C\n"
             "out e\n"),
      "1,8,8;1024,8,8", "macs=none,params=none", 0, 0, false},
     "none: target 't1': the base size of x0 is over the limit of 16777216",
     0},

    // copies and strides: the cost counts the copies, H and W are those inside the kernel
    {{narrow, "a 8 32 5 7 3 2", "macs=768,params=none", 0, 0, false}, "x0=1", 0},
    {{narrow, "a 8 32 5 7 3 2", "macs=767,params=none", 0, 0, false},
     "none: macs 768 of the smallest sizes are over the budget of 767",
     0},
    {{narrow, "a 32 8 5 7 3 2", "macs=none,params=64", 0, 0, false}, "x0=1", 0},
    {{convolution, "a 8 32 5 7 3 2", "macs=1x,params=1x", 0, 0, false}, "", 0},

    // budgets relative to the layers replaced, rounded down: 0.1x of 2304 is 230.4
    {{narrow, "8,2,2", "macs=0.1x", 0, 0, false}, "x0=2", 1},
    {{convolution, "8,2,2", "macs=0.999999999999x", 0, 0, false},
     "none: macs 2304 of the smallest sizes are over the budget of 2303 (0.999999999999x of 2304)",
     0},
    {{convolution, "8,2,2", "macs=1x..1x", 0, 0, false}, "", 0},
    {{convolution, "8,2,2", "macs=1.3x,params=0.99x", 0, 0, false},
     "none: params 576 of the smallest sizes are over the budget of 570 (0.99x of 576)",
     0},
    {{convolution, "8,2,2", "macs=1.3x", 0, 0, false}, "", 0},
    {{squared, "8,2,2", "macs=none", 0, 0, false},
     "none: params 1024 of the smallest sizes are over the budget of 576 (1x of 576, the default: "
     "params=none lifts it)",
     0},
    {{squared, "8,2,2", "macs=none,params=1x", 0, 0, false},
     "none: params 1024 of the smallest sizes are over the budget of 576 (1x of 576)",
     0},
    {{convolution, "8,2,2", "flops=4608", 0, 0, false}, "", 0},
    {{convolution, "8,2,2", "flops=4607", 0, 0, false},
     "none: macs 2304 of the smallest sizes are over the budget of 2303",
     0},

    // the least
    {{narrow, "8,2,2", "macs=1024..1100,params=none", 0, 0, false}, "x0=16", 4},
    {{narrow, "8,2,2", "macs=1025..1100,params=none", 0, 0, false},
     "none: macs 1024 of the largest sizes that fit are under the least of 1025",
     0},
    {{narrow, "8,2,2", "macs=0.5x..0.8x,params=0.1x", 0, 0, false},
     "none: macs 128 of the largest sizes that fit are under the least of 1152 (0.5x of 2304)",
     0},
    {{convolution, "8,2,2", "macs=2305..none,params=none", 0, 0, false},
     "none: macs 2304 of the largest sizes that fit are under the least of 2305",
     0},
    {{convolution, "8,2,2", "macs=1.0001x..2x", 0, 0, false},
     "none: macs 2304 of the largest sizes that fit are under the least of 2305 (1.0001x of 2304)",
     0},
    {{convolution, "8,2,2", "macs=0.5x..1000,params=none", 0, 0, false},
     "bad: the budget of macs is empty: at least 1152, at most 1000",
     0},

    // kernels without weights
    {{identity, "8,2,2", "macs=0.5x", 0, 0, false}, "", 0},
    {{identity, "a 16 8 2 2 3", "macs=0.5x", 0, 0, false}, "", 0},
    {{identity, "a 8 16 2 2 3", "macs=0.5x", 0, 0, true}, "", 0},
    {{identity, "a 8 16 2 2 3", "macs=0.5x", 0, 0, false},
     "none: target 'a': kernel 'identity' has no weights, its 2 copies side by side would be equal",
     0},

    // G is a factor of gcd(C_i), here of 16
    {{groups, "32,4,4;48,4,4", "macs=1x", 16, 0, false}, "x0=4096; x0=2048", 8},
    {{groups, "32,4,4;48,4,4", "macs=1x", 32, 0, false},
     "bad: G=32 is no common factor of the targets' channels, give a factor of 16",
     0},
    {{groups, "32,4,4;48,4,4", "macs=1x", -1, 0, false},
     "bad: G=-1 is no common factor of the targets' channels, give a factor of 16",
     0},
    {{groups, "32,4,4;48,4,4", "macs=1x", 0, 0, false},
     "bad: kernel 'groups' uses G, give 'G=', a common factor of the channels (of 16)",
     0},
    {{narrow, "8,2,2", "macs=none", 0, -1, false},
     "bad: limit of -1 elements is not in 1..1099511627776",
     0},
    {{narrow, "8,2,2", "macs=none", 0, INT64_C(1) << 41, false},
     "bad: limit of 2199023255552 elements is not in 1..1099511627776",
     0},
};

static void answers(void **state) {
  CHECK_ROWS (rows, row) {
    struct solve_trace trace;
    char input[512];
    snprintf(input, sizeof input, "%s\n%s\n%s", row->q.kernel, row->q.targets, row->q.budget);
    const char *answer = solve(&row->q, &trace);
    CHECK_TEXT(answer, row->expected, input);
    if (answer[0] == 'x') CHECK_INT(trace.rounds, row->rounds, input);
  }
}

// What comes after the published steps.
static const struct {
  struct question q;
  const char *expected;
  int steps;
} filled[] = {
    // single units fill what doublings leave: 128 -> 144, exactly half of the 3x3 convolution
    {{narrow, "64,8,8", "macs=0.45x..0.5x", 0, 0, false}, "x0=144", 1},
    {{narrow, "64,8,8", "macs=0.5x..0.5x", 0, 0, false}, "x0=144", 1},
    {{narrow, "64,8,8", "macs=0.487x", 0, 0, false}, "x0=140", 2},
    {{narrow, "64,8,8", "macs=0.496x..0.499x", 0, 0, false}, "x0=143", 4},
    {{narrow, "64,8,8", "macs=0.497x..0.499x", 0, 0, false},
     "none: macs 1171456 of the largest sizes that fit are under the least of 1172571 (0.497x of "
     "2359296)",
     0},
    // ... in units: multiples of 12 and of 20
    {{figure3, FIGURE3, "macs=46764032,params=none", 4, 0, false}, "x0=48; x0=240", 0},
    {{figure3, FIGURE3, "macs=51580928,params=none", 4, 0, false}, "x0=48; x0=280", 1},
    {{figure3, FIGURE3, "macs=53788672,params=none", 4, 0, false}, "x0=48; x0=300", 2},
    // the cheaper one first, ties by target and variable, larger powers of two before smaller ones
    {{narrow, "8,2,2;8,2,2", "macs=384,params=none", 0, 0, false}, "x0=4; x0=2", 0},
    {{narrow, "8,2,2;8,2,2", "macs=448,params=none", 0, 0, false}, "x0=5; x0=2", 1},
    {{narrow, "8,2,2;8,2,2", "macs=704,params=none", 0, 0, false}, "x0=7; x0=4", 2},
    // what no budget bounds stays at its power of two, whatever else there is room for
    {{narrow, "4,4,4", "macs=none,params=none", 0, 1000, false}, "x0=32", 0},
    {{narrow, "4,4,4", "macs=1000000,params=none", 0, 1000, false}, "x0=62", 4},
    // base values that do not fit are tried without their scaling by channels
    {{narrow, "8,1,1;64,1,1", "macs=1040,params=none", 0, 0, false}, "x0=1; x0=8", 0},
    {{narrow, "8,1,1;64,1,1", "macs=1039,params=none", 0, 0, false}, "x0=32; x0=4", 0},
    {{narrow, "8,1,1;64,1,1", "macs=144,params=none", 0, 0, false}, "x0=1; x0=1", 0},
    {{narrow, "8,1,1;64,1,1", "macs=143,params=none", 0, 0, false},
     "none: macs 144 of the smallest sizes are over the budget of 143",
     0},
    {{narrow, "a 8 8 1 1 1\nb 64 64 1 1 1", "macs=none,params=none", 0, 300, false},
     "x0=32; x0=4",
     0},
    // exchange: one x takes the budget that the other needs to reach the least
    {{narrow, "a 6 6 1 1 1\nb 10 10 1 1 1", "macs=84..84,params=none", 0, 0, false},
     "x0=2; x0=3",
     0},
    {{narrow, "a 6 6 1 1 1\nb 10 10 1 1 1", "macs=100..100,params=none", 0, 0, false},
     "x0=5; x0=2",
     0},
    {{narrow, "a 6 6 1 1 1\nb 10 10 1 1 1", "macs=34..34,params=none", 0, 0, false},
     "none: macs 32 of the largest sizes that fit are under the least of 34",
     0},
    {{narrow, "8,2,2", "macs=0.5x..0.8x,params=0.1x", 0, 0, false},
     "none: macs 192 of the largest sizes that fit are under the least of 1152 (0.5x of 2304)",
     0},
    // nothing to exchange: without variables there is no pair
    {{identity, "8,2,2", "macs=0.5x..0.8x", 0, 0, false},
     "none: macs 0 of the largest sizes that fit are under the least of 1152 (0.5x of 2304)",
     0},
    // a dim of two variables: other values than multiples may be whole, so nothing is proven
    {{mixed, "8,1,1", "macs=39,params=none", 0, 0, false},
     "none: not found: macs 40 of the smallest sizes are over the budget of 39",
     0},
    {{mixed, "8,1,1", "macs=41..43,params=none", 0, 0, false},
     "none: not found: macs 40 of the largest sizes that fit are under the least of 41",
     0},
};

static void fills_what_is_left(void **state) {
  CHECK_ROWS (filled, row) {
    struct solve_trace trace;
    char input[512];
    snprintf(input, sizeof input, "%s\n%s\n%s", row->q.kernel, row->q.targets, row->q.budget);
    const char *answer = solve_as(&row->q, false, &trace);
    CHECK_TEXT(answer, row->expected, input);
    if (answer[0] == 'x' && row->steps) CHECK_INT(trace.steps, row->steps, input);
  }
}

static void trace_says_what_was_done(void **state) {
  struct question q = {figure3, FIGURE3, "macs=50M,params=none", 4, 0, false};
  struct solve_trace t;
  CHECK_TEXT(solve(&q, &t), "x0=48; x0=240", "figure 3");
  CHECK_INT(t.rounds, 2, "figure 3");
  CHECK_INT(t.doublings, 4, "figure 3");
  CHECK_INT(t.free, 2, "figure 3");
  CHECK_INT(t.baseline[BUDGET_MACS], 436731904, "figure 3");
  CHECK_INT(t.base[BUDGET_MACS], 14249984, "figure 3");
  CHECK_INT(t.used[BUDGET_MACS], 46764032, "figure 3");
  CHECK_INT(t.most[BUDGET_MACS], 50000000, "figure 3");
  CHECK_INT(t.most[BUDGET_PARAMS], INT64_MAX, "figure 3");
}

// A share is the decimal that was written: 0.29 * 100 in binary would be 28.999999999999996.
static const struct {
  const char *budget;
  int64_t most;
} shares[] = {{"macs=0.29x", 29},
              {"macs=0.57x", 57},
              {"macs=1.1x", 110},
              {"macs=0.299x", 29},
              {"macs=0.57999x", 57},
              {"macs=2.3x", 230},
              {"macs=57", 57},
              {"flops=58.9", 29},
              {"flops=0.58x", 58},
              {"macs=4e18", INT64_C(4000000000000000000)},
              {"macs=1000000000G", INT64_C(1000000000000000000)}};

static void shares_are_exact(void **state) {
  CHECK_ROWS (shares, row) {
    struct question q = {identity, "a 10 10 1 1 1", row->budget, 0, 0, false};
    struct solve_trace t;
    CHECK_TEXT(solve(&q, &t), "", row->budget);
    CHECK_INT(t.baseline[BUDGET_MACS], 100, row->budget);
    CHECK_INT(t.most[BUDGET_MACS], row->most, row->budget);
  }
}

// -- brute force: small kernels, targets and budgets by chance --

static const struct {
  const char *text;
  bool separate;  // every dim holds one variable of power one: base sizes are the smallest
} pool[] = {
    {figure3, true},
    {narrow, true},
    {chain, true},
    {fork, true},
    {convolution, true},
    {groups, true},
    {share, true},
    {mixed, false},
    {square, false},
    {thirds, true},
    {KERNEL("involution",
            "b = fc a to=x0\nc = relu b\nd = fc c to=G*KH*KW\ne = group d by=G\n"
            "f = unfold a over=H,W k=K\ng = group f by=G\nh = mul e g\ni = fold h mean over=KH,KW\n"
            "out i\n"),
     true},
    {KERNEL("window",
            "b = unfold a over=W k=5\nc = fc b to=x0\nd = group c by=KW\n"
            "e = fc d to=C*KW\nf = group e by=KW\ng = fold f mean over=G\nout g\n"),
     true},
    {KERNEL("depthwise",
            "b = fc a to=x0\nc = group b each\nd = unfold c over=H k=K\ne = fc d to=2*x0\n"
            "f = fc e to=C\nout f\n"),
     true},
};

enum { TARGETS_TRIED = 3, WHOLE = 5040 };

// The smallest x_j that is legal at this binding while every other variable is WHOLE; 0 if none is.
static int64_t smallest(const struct kernel *k, const struct binding *b, int x) {
  canvas_context ctx = {""};
  struct binding tried = *b;
  for (int s = 0; s < VARIABLES; s++)
    tried.sizes.value[SIZE_X0 + s] = kernel_variables(k) >> s & 1 ? WHOLE : 0;
  for (int64_t value = 1; value <= 2000; value++) {
    tried.sizes.value[SIZE_X0 + x] = value;
    if (binding_check(&ctx, k, &tried, ELEMENTS_LIMIT_MAX, true) == CANVAS_OK) return value;
  }
  return 0;
}

// Paper 6.3 by the letter: x_i = ceil(C_i lcm_1 / (C_1 lcm_i)) lcm_i. False where no size is legal.
static bool expected_base(const struct kernel *k, struct pack *p) {
  for (int x = 0; x < VARIABLES; x++) {
    int64_t lcm[TARGETS_TRIED], first = 0;
    if (!(kernel_variables(k) >> x & 1)) continue;
    for (int i = 0; i < p->count; i++) {
      lcm[i] = smallest(k, &p->data[i], x);
      if (!lcm[i]) return false;
      if (p->data[i].sizes.value[SIZE_C] < p->data[first].sizes.value[SIZE_C]) first = i;
    }
    for (int i = 0; i < p->count; i++) {
      int64_t c = p->data[i].sizes.value[SIZE_C], c1 = p->data[first].sizes.value[SIZE_C],
              n = lcm[i];
      while (n * c1 < c * lcm[first]) n += lcm[i];
      p->data[i].sizes.value[SIZE_X0 + x] = n;
    }
  }
  return true;
}

struct trial {
  struct kernel *kernel;
  bool separate;
  bool whole;  // not only what is published
  struct targets targets;
  struct solve_options options;
  struct solve_trace trace;
  char name[KERNEL_NAME_SIZE + 32];
};

static void make_trial(struct trial *t, uint64_t index) {
  static const int64_t channels[] = {4, 6, 8, 12, 16, 24};
  struct random r;
  random_open(&r, 7, RANDOM_TEST, index);
  size_t chosen = random_below(&r, sizeof pool / sizeof *pool);
  *t = (struct trial){.kernel = kernel_of(pool[chosen].text), .separate = pool[chosen].separate};
  int count = 1 + (int)random_below(&r, TARGETS_TRIED);
  for (int i = 0; i < count; i++) {
    struct target a = {.groups = 1, .dilation = 1};
    int64_t c = channels[random_below(&r, 6)], wide = c << random_below(&r, 2);
    bool widens = random_below(&r, 2);
    snprintf(a.name, sizeof a.name, "t%d", i);
    a.cin = widens ? c : wide;
    a.cout = widens ? wide : c;
    a.projected = !random_below(&r, 4);
    if (a.projected) a.cin = channels[random_below(&r, 6)];
    a.kh = 1 + 2 * (int64_t)random_below(&r, 3);
    a.kw = 1 + 2 * (int64_t)random_below(&r, 3);
    a.h = 1 + random_below(&r, 5);
    a.w = 1 + random_below(&r, 5);
    a.stride = 1 + random_below(&r, 2);
    VEC_PUSH(&t->targets, a);
  }
  int64_t common = targets_common_channels(&t->targets);
  do t->options.g = 1 + random_below(&r, (uint32_t)common);
  while (common % t->options.g);
  t->options.elements_limit = 200 + random_below(&r, 20000);
  t->options.exempt = kernel_has_weights(t->kernel); /* images are small: any weight may be idle */
  snprintf(t->name, sizeof t->name, "%s, trial %llu", t->kernel->name, (unsigned long long)index);
}

static struct bound exactly(int64_t value) {
  return (struct bound){.given = true, .num = value, .den = 1};
}

static canvas_status solve_trial(struct trial *t, const struct budget *b, canvas_context *ctx,
                                 struct pack **out) {
  t->options.trace = &t->trace;
  t->options.paper = !t->whole;
  return budget_solve(ctx, t->kernel, &t->targets, b, &t->options, out);
}

static bool affordable(const struct trial *t, const struct budget *b, const struct pack *p) {
  canvas_context ctx = {""};
  struct cost c;
  for (int i = 0; i < p->count; i++)
    if (binding_check(&ctx, p->kernel, &p->data[i], t->options.elements_limit, false) != CANVAS_OK)
      return false;
  if (!pack_cost(p, &c)) return false;
  return (!b->most[BUDGET_MACS].given || c.macs <= b->most[BUDGET_MACS].num) &&
         (!b->most[BUDGET_PARAMS].given || c.params <= b->most[BUDGET_PARAMS].num);
}

static const struct budget no_budget;

// The answer is legal, within the budget, a power of two times the base, and cannot be doubled.
static void check_full(const struct trial *t, const struct budget *b, struct pack *p,
                       const struct pack *base) {
  CHECK(affordable(t, b, p), t->name);
  for (int i = 0; i < p->count; i++)
    for (int s = SIZE_X0; s < SIZES; s++) {
      int64_t *x = &p->data[i].sizes.value[s], start = base->data[i].sizes.value[s];
      if (!*x) continue;
      CHECK(*x % start == 0 && (*x / start & (*x / start - 1)) == 0, t->name);
      *x *= 2;
      CHECK(!affordable(t, b, p), t->name);
      *x /= 2;
    }
}

// With budgets of exactly the base's cost the base is the answer; one less is rejected by name.
static void check_edges(struct trial *t, const struct pack *base) {
  struct cost c;
  pack_cost(base, &c);
  const int64_t costs[BUDGET_KINDS] = {c.macs, c.params};
  struct budget b = {.most = {exactly(c.macs), exactly(c.params)}};
  canvas_context ctx = {""};
  struct pack *p;
  CHECK_INT(solve_trial(t, &b, &ctx, &p), CANVAS_OK, t->name);
  for (int i = 0; i < p->count; i++)
    CHECK(!memcmp(&p->data[i].sizes, &base->data[i].sizes, sizeof p->data[i].sizes), t->name);
  pack_free(p);
  for (int kind = 0; kind < BUDGET_KINDS; kind++) {
    char expected[128];
    if (costs[kind] < 2) continue;
    b.most[kind].num--;
    CHECK_INT(solve_trial(t, &b, &ctx, &p), CANVAS_NONE, t->name);
    snprintf(expected, sizeof expected, "%s %lld of the smallest sizes are over the budget of %lld",
             budget_kind_name((enum budget_kind)kind), (long long)costs[kind],
             (long long)costs[kind] - 1);
    CHECK_TEXT(ctx.message, expected, t->name);
    b.most[kind].num++;
  }
}

// Budgets by chance, from half the base's cost to 40 times; each may be missing.
static void check_budgets(struct trial *t, const struct pack *base, struct random *r) {
  struct cost c;
  pack_cost(base, &c);
  for (int n = 0; n < 4; n++) {
    canvas_context ctx = {""};
    struct budget b = no_budget;
    struct pack *p;
    const int64_t costs[BUDGET_KINDS] = {c.macs, c.params};
    for (int kind = 0; kind < BUDGET_KINDS; kind++)
      if (random_below(r, 4))
        b.most[kind] = exactly(costs[kind] * (5 + random_below(r, 400)) / 10 + 1);
    bool fits = affordable(t, &b, base);
    CHECK_INT(solve_trial(t, &b, &ctx, &p), fits ? CANVAS_OK : CANVAS_NONE, t->name);
    if (!fits) continue;
    check_full(t, &b, p, base);
    pack_free(p);
    if (t->trace.used[BUDGET_MACS] < 1) continue;
    b.least[BUDGET_MACS] = exactly(t->trace.used[BUDGET_MACS]);
    CHECK_INT(solve_trial(t, &b, &ctx, &p), CANVAS_OK, t->name);
    pack_free(p);
    b.least[BUDGET_MACS].num++;
    if (b.most[BUDGET_MACS].given && b.least[BUDGET_MACS].num > b.most[BUDGET_MACS].num) continue;
    CHECK_INT(solve_trial(t, &b, &ctx, &p), CANVAS_NONE, t->name);
  }
}

static struct pack *empty_pack(const struct trial *t) {
  struct pack *p = pack_new(t->kernel);
  for (int i = 0; i < t->targets.count; i++) {
    struct binding b = {.target = t->targets.data[i]};
    target_sizes(&b.target, t->kernel, &b.sizes, &b.copies);
    b.sizes.value[SIZE_G] = kernel_uses(t->kernel, SIZE_G) ? t->options.g : 1;
    VEC_PUSH(p, b);
  }
  return p;
}

// The base: by the letter of the paper where that is defined, else what the solver says, or NULL.
static struct pack *base_of(struct trial *t) {
  canvas_context ctx = {""};
  struct budget none = no_budget;
  struct pack *p = empty_pack(t);
  if (t->separate && expected_base(t->kernel, p)) return p;
  if (t->separate) {
    pack_free(p);
    return NULL;
  }
  struct pack *solved;
  pack_free(p);
  if (solve_trial(t, &none, &ctx, &solved) != CANVAS_OK) return NULL;
  struct budget tight = {.most = {exactly(t->trace.base[0]), exactly(t->trace.base[1])}};
  pack_free(solved);
  CHECK_INT(solve_trial(t, &tight, &ctx, &solved), CANVAS_OK, t->name);
  return solved;
}

static void brute_force(void **state) {
  enum { TRIALS = 600 };
  int solved = 0, rejected = 0;
  for (uint64_t index = 0; index < TRIALS; index++) {
    canvas_context ctx = {""};
    struct budget none = no_budget;
    struct random r;
    struct trial t;
    struct pack *p;
    make_trial(&t, index);
    random_open(&r, 8, RANDOM_TEST, index);
    struct pack *base = base_of(&t);
    if (base && affordable(&t, &none, base)) {
      solved++;
      check_edges(&t, base);
      check_budgets(&t, base, &r);
    } else {
      rejected++;
      CHECK_INT(solve_trial(&t, &none, &ctx, &p), CANVAS_NONE, t.name);
      CHECK(strncmp(ctx.message, "target 't", 9) == 0, ctx.message);
    }
    pack_free(base);
    targets_free(&t.targets);
    kernel_free(t.kernel);
  }
  CHECK(solved > TRIALS / 4 && rejected > TRIALS / 20, "the trials cover both answers");
}

// -- the whole solver against all combinations of multiples of the units --

struct all {
  const struct trial *trial;
  const struct budget *budget;
  struct pack *pack;
  int64_t *size[TARGETS_TRIED * 2], unit[TARGETS_TRIED * 2];
  int pairs;
  int64_t tried;
};

enum { COMBINATIONS = 4000 };

// The units by brute force; false where there are none or too many.
static bool list_all(struct all *a) {
  for (int i = 0; i < a->pack->count; i++)
    for (int x = 0; x < VARIABLES; x++) {
      if (!(kernel_variables(a->trial->kernel) >> x & 1)) continue;
      if (a->pairs == TARGETS_TRIED * 2) return false;
      int64_t unit = smallest(a->trial->kernel, &a->pack->data[i], x);
      if (!unit) return false;
      a->unit[a->pairs] = unit;
      a->size[a->pairs++] = &a->pack->data[i].sizes.value[SIZE_X0 + x];
    }
  for (int i = 0; i < a->pairs; i++) *a->size[i] = a->unit[i];
  return a->pairs > 0;
}

// Whether a combination with pairs from `at` on chosen is within the budget, least and most.
static bool any(struct all *a, int at) {
  if (++a->tried > COMBINATIONS || !affordable(a->trial, a->budget, a->pack)) return false;
  if (at == a->pairs) {
    struct cost c;
    pack_cost(a->pack, &c);
    return c.macs >= a->budget->least[BUDGET_MACS].num &&
           c.params >= a->budget->least[BUDGET_PARAMS].num;
  }
  bool found = false;
  for (; !found && affordable(a->trial, a->budget, a->pack); *a->size[at] += a->unit[at])
    found = any(a, at + 1);
  *a->size[at] = a->unit[at];
  return found;
}

// No x can be given one unit more, unless that would cost nothing.
static void check_filled(const struct all *a, const struct budget *b) {
  for (int i = 0; i < a->pairs; i++) {
    struct cost before, after;
    pack_cost(a->pack, &before);
    *a->size[i] += a->unit[i];
    if (affordable(a->trial, b, a->pack)) {
      pack_cost(a->pack, &after);
      CHECK(!b->most[BUDGET_MACS].given || after.macs == before.macs, a->trial->name);
      CHECK(!b->most[BUDGET_PARAMS].given || after.params == before.params, a->trial->name);
    }
    *a->size[i] -= a->unit[i];
  }
}

struct tally {
  int found, none, given_up, missed;
};

// One budget: what the solver says against whether there is a combination.
static void check_answer(struct trial *t, struct all *a, const struct budget *b, struct tally *n) {
  canvas_context ctx = {""};
  struct pack *p;
  struct cost c;
  a->budget = b;
  a->tried = 0;
  bool exists = any(a, 0);
  if (!exists && a->tried > COMBINATIONS) return;
  canvas_status status = solve_trial(t, b, &ctx, &p);
  bool proven = strncmp(ctx.message, "not found", 9) != 0;
  if (status == CANVAS_OK) {
    CHECK(exists && affordable(t, b, p), t->name);
    pack_cost(p, &c);
    CHECK(c.macs >= b->least[BUDGET_MACS].num && c.params >= b->least[BUDGET_PARAMS].num, t->name);
    for (int i = 0, pair = 0; i < p->count; i++)
      for (int s = SIZE_X0; s < SIZES; s++)
        if (p->data[i].sizes.value[s]) *a->size[pair++] = p->data[i].sizes.value[s];
    if (!b->least[BUDGET_MACS].given && !b->least[BUDGET_PARAMS].given) check_filled(a, b);
    for (int i = 0; i < a->pairs; i++) *a->size[i] = a->unit[i];
    pack_free(p);
    n->found++;
    return;
  }
  CHECK_INT(status, CANVAS_NONE, ctx.message);
  CHECK(!proven || !exists, ctx.message);
  n->none += proven;
  n->given_up += !proven;
  n->missed += exists;
}

static void against_all_combinations(void **state) {
  enum { SHARE = SANITIZED ? 5 : 1, TRIALS = 200 / SHARE };
  struct tally n = {0};
  for (uint64_t index = 0; index < TRIALS; index++) {
    struct random r;
    struct trial t;
    make_trial(&t, 1000 + index);
    random_open(&r, 9, RANDOM_TEST, index);
    t.whole = true;
    struct all a = {.trial = &t, .pack = empty_pack(&t)};
    const struct budget none = no_budget;
    if (t.separate && list_all(&a) && affordable(&t, &none, a.pack)) {
      struct cost c;
      pack_cost(a.pack, &c);
      const int64_t units[BUDGET_KINDS] = {c.macs, c.params};
      for (int tries = 0; tries < 6; tries++) {
        struct budget b = no_budget;
        for (int kind = 0; kind < BUDGET_KINDS; kind++) {
          if (kind == BUDGET_PARAMS && !random_below(&r, 3)) continue;
          int64_t most = units[kind] * (8 + (int64_t)random_below(&r, 60)) / 10 + 1;
          b.most[kind] = exactly(most);
          if (tries % 2) b.least[kind] = exactly(most - most * (int64_t)random_below(&r, 12) / 100);
          if (kind == BUDGET_PARAMS && random_below(&r, 2)) b.least[kind] = (struct bound){0};
        }
        check_answer(&t, &a, &b, &n);
      }
    }
    pack_free(a.pack);
    targets_free(&t.targets);
    kernel_free(t.kernel);
  }
  printf("%d found, %d proven to have none, %d given up, of which %d have one\n", n.found, n.none,
         n.given_up, n.missed);
  CHECK(n.found > 200 / SHARE && n.none > 100 / SHARE, "the trials cover both answers");
  CHECK(n.missed * 50 <= n.found, "one of fifty may be missed");
}

// -- hostile sizes --

static const struct question hostile[] = {
    {narrow, "a 16777216 1 1 1 1", "macs=1000x,params=none", 0, 0, false},
    {narrow, "a 1 16777216 1 1 1\nb 2 2 16777216 1 1", "macs=none,params=none", 0, 0, false},
    {figure3, "a 4 4 1 1 16777215x1\nb 4 4 1 1 16777213x1", "macs=none,params=none", 4,
     INT64_C(1) << 40, false},
    {figure3, "a 8388608 8388608 1 1 1 1 8388608\nb 8388608 8388608 1 1 8388607x1 1 8388608",
     "macs=none,params=none", 8388608, INT64_C(1) << 40, false},
    {KERNEL("power", "b = fc a to=x0*x0*x0*x0*x0*x0*x0*x0\nc = fc b to=C\nout c\n"), "1,1,1",
     "macs=none,params=none", 0, INT64_C(1) << 40, false},
    {KERNEL("large", "b = fc a to=x0/2147483647\nc = fc b to=C\nout c\n"), "1,1,1", "macs=1000000x",
     0, 0, false},
    {KERNEL("below", "b = fc a to=x0/C/C/C/C/C/C/C/C\nc = fc b to=C\nout c\n"), "1048576,1,1",
     "macs=none", 0, INT64_C(1) << 40, false},
};

static void hostile_sizes(void **state) {
  CHECK_ROWS (hostile, row) {
    for (int paper = 0; paper < 2; paper++) {
      const char *answer = solve_as(row, paper, NULL);
      CHECK(answer[0] == 'x' || strncmp(answer, "none: ", 6) == 0, answer);
    }
  }
}

// Every variable of a wide kernel on many layers, without a budget: SIZE_LIMIT bounds the rounds.
static void many_variables(void **state) {
  struct buf body = {0}, targets = {0};
  buf_puts(&body, "canvas 1\nkernel wide\nn = input\nb0 = fc n to=x0\n");
  for (int x = 1; x < VARIABLES; x++) buf_printf(&body, "b%d = fc b%d to=x%d\n", x, x - 1, x);
  buf_puts(&body, "c = fc b15 to=C\nout c\n");
  for (int i = 0; i < 50; i++) buf_printf(&targets, "t%d 8 8 4 4 3\n", i);
  struct question q = {body.text, targets.text, "macs=none,params=none", 0, 0, false};
  struct solve_trace trace;
  CHECK(solve(&q, &trace)[0] == 'x', "wide");
  CHECK_INT(trace.free, 50 * VARIABLES, "wide");
  CHECK(trace.rounds <= 24, "wide");
  buf_free(&body);
  buf_free(&targets);
}

CHECK_MAIN(cmocka_unit_test(text), cmocka_unit_test(answers),
           cmocka_unit_test(trace_says_what_was_done), cmocka_unit_test(shares_are_exact),
           cmocka_unit_test(brute_force), cmocka_unit_test(fills_what_is_left),
           cmocka_unit_test(against_all_combinations), cmocka_unit_test(hostile_sizes),
           cmocka_unit_test(many_variables))
