// The default schedule: what it is for some programs at machines of three lengths of vectors, that bind takes
// it as it is chosen, that the edits before it keep what is computed, and that choosing takes no time.
#include <time.h>

#include "autoschedule/default.h"
#include "autoschedule/winograd_nest.h"
#include "check.h"
#include "machines.h"
#include "operator_calls.h"
#include "random_program.h"
#include "rewrite/program_edit.h"
#include "row_programs.h"
#include "same_values.h"

static canvas_context ctx;

static const struct machine *const machines[] = {&machine_avx512, &machine_avx2, &machine_sse};

static struct program *called(const char *call) {
  struct program *p;
  CHECK_INT(operator_called(&ctx, call, &p), CANVAS_OK, ctx.message);
  return p;
}

static void same_outputs(const struct program *p, const struct program *q, const char *label,
                         int64_t step) {
  same_values(&ctx, p, q, label, step, -1);
}

// ---- what is chosen ----

#define CONV "conv2d_nhwc height=14 width=14 in_channels=64 out_channels=64 kernel=3 padding=1"
#define TRANSPOSED                                                                             \
  "conv_transpose2d_nchw in_channels=64 height=28 width=28 out_channels=32 kernel=4 stride=2 " \
  "padding=1"
static const struct {
  const char *call;
  int machine;
  const char *line;  // of the schedule after the edits
} chosen[] = {
    {CONV, 0, "kh, kw, ic, Y_w:unroll, oc_v:32:vec =>"},
    {"gemm m=1024 k=1024 n=1024", 0, "n_oo:para, m_o, n_b:4, k, m_i:6:peel:unroll, n_v:64:vec =>"},
    // threads: rows that are left over are one thread's; not for what is over when they have begun
    {"gemm m=256 k=256 n=256", 0, "m_o:para, n_o, k, m_i:6:peel:unroll, n_v:64:vec =>"},
    {"gemm m=20 k=50 n=21", 0, "m_o, k, m_i:10:unroll, n_v:32:mask:vec =>"},
    {"gemv m=256 k=512", 0, "    m_i:unroll, k_i:vec =>"},
    {"gemv m=256 k=512", 1, "    m_i:unroll, k_i:vec =>"},
    {"gemv m=256 k=512", 2, "    m_i:unroll, k_i:vec =>"},
    // fewer partial sums, and more rows that share what they load
    {"gemv m=1024 k=1024", 0, "Y_r[m:1024, k_i:16] ="},
    {"gemv m=1024 k=1024", 1, "k_o, m_i:8:unroll, k_i:vec =>"},
    {"softmax shape=256x128", 0, "total_r[i0:256, i1_i:64] ="},
    // rows that no whole vectors divide, one after the other; not short ones of a
    // function, nor where much of it is for nothing
    {"softmax shape=1024x1003", 0,
     "\nrow0:para =>\n    largest_o, largest_v:128:peel:vec =>\n        @largest = {row0}/i0 // "
     "{largest_o, largest_v}/i1\n    raised_o, raised_v:64:peel:vec =>"},
    {"softmax shape=16x101", 1, "\nrow0 =>\n    largest_o, largest_v:64:peel:vec =>"},
    {"mean shape=12x100 dim=-1", 0, "row0, Y_v:100:mask:vec =>"},
    {"gemv m=12 k=100", 0, "row0, Y_v:100:mask:vec =>"},
    {"mean shape=300x33 dim=-1", 0, "row0, Y_v:33:mask:vec =>"},
    {"gemv m=200 k=19", 1, "row0, Y_v:19:mask:vec =>"},
    {"gemv m=12 k=333", 0, "Y_r[m:12, k_i:64] ="},
    {"softmax shape=1024x67", 0, "@total = i0 // {i1_v}/i1"},
    {"softmax shape=1024x63", 0, "total[i0:1024] = raised[i0, i1] // sum i1:63"},
    // a loop over rows for all stages; none where a row is too large for the first cache, or all are small
    {"softmax shape=1024x1024", 1, "\ni0:para =>\n    i1_o, i1_i:vec =>"},
    {"softmax shape=64x16384", 1, "\ni0:para, i1:vec =>"},
    {"softmax shape=4x512", 1, "\ni0, i1:vec =>"},
    {"zero_pad1d channels=64 length=100", 0, "n, c_l:vec =>"},
    // rows of a window share their loads
    {"depthwise_conv2d_nchw in_channels=32 height=112 width=112 kernel=3 padding=1", 0,
     "kw:unroll, kh:unroll, h_i:14:unroll, Y_w_v:16:vec =>"},
    // an output across the lanes is written from its tile; a window is inside of channels that lie pages apart
    {"conv2d_nchw height=56 width=56 in_channels=64 out_channels=64 kernel=3 padding=1", 0,
     "@Y_c[oc_v][w_i] ="},
    {"conv2d_nchw height=56 width=56 in_channels=64 out_channels=64 kernel=3 padding=1", 0,
     "oc_v, w_i:vec =>"},  // ... in vectors along the rows, which every tile has
    {"conv2d_nchw height=56 width=56 in_channels=64 out_channels=64 kernel=3 padding=1", 0,
     "ic, kh, kw, w_i:14:mask:unroll, oc_v:32:vec =>"},
    // few registers: two vectors, so that each row that is loaded is for two multiply-adds
    {"conv2d_nchw height=56 width=56 in_channels=64 out_channels=64 kernel=3 padding=1", 1,
     "ic, kh, kw, w_i:6:peel:unroll, oc_v:16:vec =>"},
    // ... of a small image it is outside
    {"conv2d_nchw height=10 width=14 in_channels=64 out_channels=64 kernel=3 padding=1", 0,
     "kh, kw, ic, w_i:14:mask:unroll, oc_v:32:vec =>"},
    // phases of a transposed convolution: of rows around the tile, of pixels in it, of windows in the sum
    {TRANSPOSED, 0, "n, h_o:para, Y_c_w_o, h_i:2:unroll =>"},
    // ... whose weights for 96 channels are more than the second cache
    {"conv_transpose2d_nchw in_channels=512 height=4 width=4 out_channels=256 kernel=4 stride=2 "
     "padding=1",
     0, "Y_c_w:unroll, oc_v:32:vec =>"},
    {TRANSPOSED, 0, "kh_o, kw_o, ic, kh_i:2:unroll, kw_i:2:unroll, w_i:14:mask:unroll, oc:vec =>"},
    {TRANSPOSED, 1,
     "kh_o, kw_o, ic, kh_i:2:unroll, kw_i:2:unroll, w_i:6:peel:unroll, oc_v:16:vec =>"},
    // weights that each row of blocks has for itself are asked for
    {"bsr_conv2d_nhwc height=7 width=7 in_channels=512 out_channels=512 kernel=3 padding=1 "
     "blocks=58976",
     0, "ko:dyn(xr):pf("},
    // one that does not divide its window, which is unrolled then
    {"conv_transpose1d in_channels=64 length=64 out_channels=64 kernel=3 stride=2", 0,
     "ic, kl:unroll, l_i:"},
    // ... all of them in no more statements than may be unrolled: the tile is smaller, ...
    {"conv_transpose2d_nchw in_channels=32 height=20 width=20 out_channels=16 kernel=5 stride=2 "
     "padding=2",
     0, "ic, kh:unroll, kw:unroll, w_i:14:peel:unroll, oc:vec =>"},
    // ... or some windows are asked for in each step
    {"conv_transpose2d_nchw in_channels=32 height=13 width=13 out_channels=16 kernel=9 stride=4 "
     "padding=2",
     0, "ic, kh, kw:unroll, w_i:28:peel:unroll, oc:vec =>"},
    {"conv_transpose3d_ncdhw in_channels=16 depth=9 height=9 width=9 out_channels=16 kernel=3 "
     "stride=2",
     0, "kd, kh:unroll, kw:unroll, w_i:"},
    {"conv_transpose3d_ncdhw in_channels=16 depth=9 height=9 width=9 out_channels=16 kernel=3 "
     "stride=2",
     0, "W_p[kh:3, kw:3, ic:16, kd:3, f:16] ="},
};

// The program after the edits, and its schedule, hold the line.
static void holds(const struct program *p, const struct machine *machine, const char *line) {
  struct default_bound made;
  if (default_bind(&ctx, p, machine, &made) != CANVAS_OK) fail_msg("%s: %s", line, ctx.message);
  struct buf text = {0};
  program_print(made.edited ? made.edited : p, &text);
  schedule_print(made.schedule, &text);
  if (!strstr(text.text, line)) fail_msg("\"%s\" is not in\n%s", line, text.text);
  buf_free(&text);
  loop_tree_free(made.tree);
  schedule_free(made.schedule);
  program_free(made.edited);
}

static void what_is_chosen(void **state) {
  CHECK_ROWS (chosen, row) {
    struct program *p = called(row->call);
    struct schedule *naive = schedule_default(p, false, NULL);
    struct buf text = {0};
    schedule_print(naive, &text);
    CHECK(!strstr(text.text, ":unroll"), "the naive one has no marks");
    buf_free(&text);
    schedule_free(naive);
    holds(p, machines[row->machine], row->line);
    program_free(p);
  }
}

#define BEGIN  "canvas 1\nprogram p\n"
#define WINDOW "1 <= h+kh && h+kh < 57 && 1 <= w+kw && w+kw < 57"
#define BLOCKS_OUT                                                                    \
  BEGIN                                                                               \
  "in X f32 [c:96, h:14, w:14]\nin W f32 [o:576, c:96] const\nY[o_o:36, h:14, w:14, " \
  "o_i:16] = X[c, h, w] * W[o_o*16+o_i, c] // sum c:96\nout Y\n"
#define BLOCKS_IN                                                                      \
  BEGIN                                                                                \
  "in X f32 [c_o:4, h:14, w:14, c_i:16]\nin W f32 [o:384, c:64] const\nY[h:14, w:14, " \
  "o:384] = X[c_o, h, w, c_i] * W[o, c_o*16+c_i] // sum c_o:4, c_i:16\nout Y\n"
#define GROUPED                                              \
  "in X f32 [h:16, w:16, c:16]\nin W f32 [o:8, k:4] const\n" \
  "Y[h:16, w:16, o:8] = X[h, w, o/2*4+k] * W[o, k] // sum k:4\nout Y\n"
#define TWO_CONVOLUTIONS                                                             \
  BEGIN                                                                              \
  "in X f32 [k:256, h:14, w:14]\nin W f32 [c:64, k:256, kh:3, kw:3] const\n"         \
  "in V f32 [o:256, c:64] const\n"                                                   \
  "D[c:64, h:14, w:14] = (if 1 <= h+kh && h+kh < 15 && 1 <= w+kw && w+kw < 15 then " \
  "X[k, h+kh-1, w+kw-1] else 0) * W[c, k, kh, kw] // sum k:256, kh:3, kw:3\n"        \
  "Y[o:256, h:14, w:14] = D[k, h, w] * V[o, k] // sum k:64\nout Y\n"
#define LONG_PRODUCTS                                     \
  "in A f32 [b:4, i:64, k:8192]\nin B f32 [b:4, k:8192, " \
  "j:64]\nY[b:4, i:64, j:64] = A[b, i, k] * B[b, k, j] // sum k:8192\nout Y\n"
static const struct {
  const char *program, *line;
  int machine;
} edits[] = {
    // a sum between is kept as it is told where that takes less than with its lanes last
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin V f32 [t:64, c:64] const\nb[c:64, h:56, w:56] = "
           "X[k, h, w] * V[c, k] // sum k:64\nc[c:64, h:56, w:56] = max(b[c, h, w], 0)\nin W f32 "
           "[t:64, c:64] const\nY[c:64, h:56, w:56] = c[k, (h-1)%56, (w-1)%56] * W[c, k] // sum "
           "k:64\nout Y\n",
     "        @c = {c_o, c_i}/c, h, {w_o, w_v}/w\n", 1},
    // ... also of weights that are summed up: other sums read it
    {BEGIN "in X f32 [h:20, w:20, c:64]\nin A f32 [o:16, k:16] const\nin B f32 [k:16, c:64] const\n"
           "V[c:64, o:16] = A[o, k] * B[k, c] // sum k:16\nY[h:20, w:20, o:16] = X[h, w, c] * V[c, "
           "o] // sum c:64\nout Y\n",
     "c, w_i:5:unroll, o:vec =>", 1},
    // a border leaves off so much that a tile of it takes less than all of its products
    {BEGIN
     "in X f32 [n:1, c:256, h:7, w:7]\nin W f32 [r:2, t:256, c:256] const\nY[r:2, n:1, c:256, "
     "h:7, w:7] = (if h < 6 && w < 6 then X[n, k, h+1, w+1] else 0) * W[r, c, k] // sum "
     "k:256\nout Y\n",
     "c_o, k, r:unroll, c_v:32:vec =>", 0},
    // panels are filled up: the lanes of an odd size are no worse than the rows; so that both stay
    {BEGIN "in A f32 [m:1000, k:1017]\nin B f32 [k:1017, n:1003] const\nY[m:1000, n:1003] = "
           "A[m, k] * B[k, n] // sum k:1017\nout Y\n",
     "k, m_i:4:unroll, n_v:24:mask:vec =>", 1},
    {BEGIN "in X f32 [h:7, w:7, c:960]\nin W f32 [kh:3, kw:3, c:960]\nY[h:7, w:7, c:960] = if "
           "1 <= h+kh && h+kh < 8 && 1 <= w+kw && w+kw < 8 then X[h+kh-1, w+kw-1, c] * W[kh, kw, c]"
           " else 0 // sum kh:3, kw:3\nout Y\n",
     "kw, kh:unroll, h:unroll, c_v:8:vec =>", 1},
    // rows of pixels go over the lines of an image where that is surely less: 33 tiles for 42
    {BEGIN "in X f32 [n:1, h:14, w:14, c:528]\nin W f32 [o:256, c:528] const\n"
           "Y[n:1, h:14, w:14, o:256] = X[n, h, w, c] * W[o, c] // sum c:528\nout Y\n",
     "c, h_w_i:6:peel:unroll, o_v:16:vec =>", 1},
    {BEGIN "in X f32 [n:1, h:28, w:28, c:256]\nin W f32 [o:128, c:256] const\n"
           "Y[n:1, h:28, w:28, o:128] = X[n, h, w, c] * W[o, c] // sum c:256\nout Y\n",
     "c, w_i:6:peel:unroll, o_v:16:vec =>", 1},
    // of two axes that take as long the rows go along the inner one
    {BEGIN
     "in X f32 [n:1, a:16, h:28, w:28, b:16]\nin W f32 [o:8, a:16, b:16, v:16] const\n"
     "Y[n:1, o:8, h:28, w:28, v:16] = X[n, a, h, w, b] * W[o, a, b, v] // sum a:16, b:16\nout Y\n",
     "a, b, w_i:6:peel:unroll, v:vec =>", 1},
// rows of images from memory are asked for before, where few products of them are made and less is written
#define PIXELS(n, c, o)                                                                      \
  BEGIN "in X f32 [n:" n ", h:56, w:56, c:" c "]\nin W f32 [c:" c ", o:" o "] const\nY[n:" n \
        ", h:56, w:56, o:" o "] = X[n, h, w, c] * W[c, o] // sum c:" c "\nout Y\n"
    {PIXELS("16", "144", "24"), "\nn:para, h:pf(1), w_o, c, w_i:4:unroll, o:vec =>", 1},
    {PIXELS("16", "144", "24"), "\nn:para, h:pf(1), w_o, c, w_i:14:unroll, o_v:32:mask:vec =>", 0},
    {PIXELS("8", "144", "24"), "\nn:para, h, w_o, c, w_i:14:unroll, o_v:32:mask:vec =>", 0},
    {PIXELS("2", "144", "24"), "\nn:para, h, w_o, c, w_i:4:unroll, o:vec =>", 1},
    {PIXELS("16", "64", "64"), "\nn:para, h:pf(1), w_o, o_o, c, w_i:6:peel:unroll, o_v:16:vec =>",
     1},
    {PIXELS("16", "64", "256"), "\nn:para, h, w_o, o_o, c, w_i:6:peel:unroll, o_v:16:vec =>", 1},
    {PIXELS("64", "24", "144"), "\nn:para, h, w_o, o_o, c, w_i:4:unroll, o_v:24:vec =>", 1},
    {PIXELS("16", "256", "200"), "\nn:para, h, w_o, o_o, c, w_i:6:peel:unroll, o_v:16:mask:vec =>",
     1},
    {BEGIN "in X f32 [p:50176, c:144]\nin W f32 [c:144, o:24] const\n"
           "Y[p:50176, o:24] = X[p, c] * W[c, o] // sum c:144\nout Y\n",
     "\np_o:para:pf(3), c, p_i:4:unroll, o:vec =>", 1},
// channels in blocks of a line: pixels beside each other, also where all blocks of what is made are rows, too; not of
// several images, whose lines come one by one where they are beyond the second cache
#define BLOCKS(n, c, size, o)                                                                \
  BEGIN "in X f32 [n:" n ", a:" c ", h:" size ", w:" size ", b:16]\nin W f32 [o:" o ", a:" c \
        ", b:16, v:16] const\nY[n:" n ", o:" o ", h:" size ", w:" size                       \
        ", v:16] = X[n, a, h, w, b] * W[o, a, b, v] // sum a:" c ", b:16\nout Y\n"
    {BLOCKS("16", "12", "28", "2"), "\nn:para, o, h:pf(4), w_o, a, b, w_i:6:peel:unroll, v:vec =>",
     1},
    {BEGIN "in X f32 [n:16, a:12, h:28, w:28, b:16]\nin W f32 [o:32, c:192] const\n"
           "Y[n:16, o:2, h:28, w:28, v:16] = X[n, a, h, w, b] * W[o*16+v, a*16+b] // sum a:12, "
           "b:16\nout Y\n",
     "\nn:para, h:pf(4), w_o, v_o, a, b, w_i:6:peel:unroll, o:unroll, v_v:8:vec =>", 1},
    {BLOCKS("16", "60", "7", "10"), "h_w_i:5:peel:unroll, v:vec =>", 1},
    {BLOCKS("16", "60", "14", "10"),
     "\nn:para, o, h_w_o:pf(21), a, b, h_w_i:6:peel:unroll, v:vec =>", 1},
    // groups whose channels follow each other are read with the pixel; images of groups one by one
    {BEGIN "in X f32 [h:56, w:56, g:4, c:16]\nin W f32 [g:4, c:16, o:16] const\n"
           "Y[h:56, w:56, g:4, o:16] = X[h, w, g, c] * W[g, c, o] // sum c:16\nout Y\n",
     "\nh:para, w_o, g, c, w_i:6:peel:unroll, o:vec =>", 1},
    {BEGIN "in X f32 [g:4, h:56, w:56, c:16]\nin W f32 [g:4, c:16, o:16] const\n"
           "Y[h:56, w:56, g:4, o:16] = X[g, h, w, c] * W[g, c, o] // sum c:16\nout Y\n",
     "\ng:para, h, w_o, c, w_i:6:peel:unroll, o:vec =>", 1},
    // rows read each other, and each is summed up along its lanes
    {BEGIN "in X f32 [r:64, c:103]\nS[r:64] = X[r, c] // sum c:103\nY[r:64, c:103] = X[r, c] + "
           "S[63-r]\nout Y\n",
     "r, c_o, c_v:64:peel:vec =>\n    @S = r // {c_o, c_v}/c", 1},
#define DEPTHWISE(n, size, channels)                                                               \
  BEGIN "in X f32 [n:" n ", h:" size ", w:" size ", c:" channels                                   \
        "]\nin W f32 [kh:3, kw:3, c:" channels "]\nY[n:" n ", h:" size ", w:" size ", c:" channels \
        "] = if 1 <= h+kh && h+kh <= " size " && 1 <= w+kw && w+kw <= " size                       \
        " then X[n, h+kh-1, w+kw-1, c] * W[kh, kw, c] else 0"                                      \
        " // sum kh:3, kw:3\nout Y\n"
    // rows along a line of an image, as many as leave room; along lines of one that comes from memory, of
    // which not too many are read at once; few of lines that lie in one set of the first cache
    {DEPTHWISE("1", "112", "32"), "kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>", 0},
    {DEPTHWISE("16", "112", "32"), "kw, kh:unroll, h_i:7:unroll, c:vec =>", 0},
    {DEPTHWISE("1", "7", "1024"), "kw, kh:unroll, h_i:4:peel:unroll, c_v:64:vec =>", 0},
    // ... where three lines are more than the first cache; fewer of them by vectors of half a line
    {DEPTHWISE("1", "14", "1024"), "kw, kh:unroll, h_i:5:peel:unroll, c_v:32:vec =>", 0},
    {DEPTHWISE("16", "56", "144"), "kw, kh:unroll, h_i:7:unroll, c_v:16:vec =>", 0},
    {DEPTHWISE("16", "56", "144"), "kw, kh:unroll, h_i:3:peel:unroll, c_v:16:vec =>", 1},
// panels that come from memory are asked for where few tiles use each of them, not where many do; where
// they come later than a small tile is computed, it is a large one
#define SMALL_IMAGES(n)                                                                          \
  BEGIN "in X f32 [n:" n ", h:6, w:6, c:512]\nin W f32 [o:512, c:512, kh:3, kw:3] const\nY[n:" n \
        ", h:4, w:4, o:512] = X[n, h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:512, kh:3, "        \
        "kw:3\nout Y\n"
    {SMALL_IMAGES("1"), "kh, kw, c:pf(128), h:unroll, w:unroll, o_v:16:vec =>", 0},
    // ... or whole, while tiles of rows use the one before
    {SMALL_IMAGES("1"), "o_o:para:pf(1), n, h, kh, kw, c, w:unroll, o_v:16:vec =>", 1},
    {BEGIN
     "in X f32 [h:9, w:9, c:512]\nin W f32 [o:512, c:512, kh:3, kw:3] const\nY[h:7, w:7, o:512] "
     "= X[h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:512, kh:3, kw:3\nout Y\n",
     "o_o:para:pf(1), w, kw, c, kh:unroll, h:unroll, o_v:8:vec =>", 1},
    {BEGIN
     "in X f32 [h:9, w:9, c:512]\nin W f32 [o:512, c:512, kh:3, kw:3] const\nY[h:7, w:7, o:512] "
     "= X[h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:512, kh:3, kw:3\nout Y\n",
     "o_o:para, w_o, kh, kw, c:pf(64), h:unroll, w_i:2:peel:unroll, o_v:32:vec =>", 0},
    {BEGIN
     "in X f32 [w:4, c:1024]\nin W f32 [o:1024, c:1024] const\nY[w:4, o:1024] = X[w, c] * W[o, c] "
     "// sum c:1024\nout Y\n",
     "o_o:para, c:pf(128), w:unroll, o_v:16:vec =>", 1},
    {SMALL_IMAGES("16"), "kh, kw, c, n_i:8:unroll, o_v:32:vec =>", 0},
    // what comes from memory hides a tile without lanes as well: of equals one with lanes
    {BEGIN
     "in X f32 [m:1, k:4096]\nin W f32 [k:4096, n:4160] const\nY[m:1, n:4160] = X[m, k] * W[k, n] "
     "// sum k:4096\nout Y\n",
     "m, n_oo:para, k:pf(64), n_b:2:unroll, n_v:16:vec =>", 0},
    // an image that is larger than the second cache is read once: rows along the outer axis
    {BEGIN "in X f32 [h:56, w:56, c:144]\nin W f32 [kh:3, kw:3, c:144]\nY[h:56, w:56, c:144] = if "
           "1 <= h+kh && h+kh < 57 && 1 <= w+kw && w+kw < 57 then X[h+kh-1, w+kw-1, c] * "
           "W[kh, kw, c] else 0 // sum kh:3, kw:3\nout Y\n",
     "kw, kh:unroll, h_i:7:unroll, c_v:8:vec =>", 1},
    // the border of a sum of few terms stays a condition, that of a long one becomes an image
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin W f32 [kh:3, kw:3, c:64]\nY[h:56, w:56, c:64] = "
           "(if " WINDOW " then X[h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c] // sum kh:3, kw:3\n"
           "out Y\n",
     "kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>", 0},
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin W f32 [kh:3, kw:3, c:64, o:64]\nY[h:56, w:56, o:64] ="
           " (if " WINDOW " then X[h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c, o]"
           " // sum kh:3, kw:3, c:64\nout Y\n",
     "X_m[h:58, w:58, c:64] =", 0},
    // ... and of constant weights the products with it are left out: what they make of a weight that is not
    // finite is prepared
    {BEGIN "in X f32 [h:7, w:7, c:64]\nin W f32 [kh:3, kw:3, c:64, o:64] const\nY[h:7, w:7, o:64] ="
           " (if 1 <= h+kh && h+kh < 8 && 1 <= w+kw && w+kw < 8 then X[h+kh-1, w+kw-1, c] else 0)"
           " * W[kh, kw, c, o] // sum kh:3, kw:3, c:64\nout Y\n",
     "Y_b[kh:3, kw:3, o:64] = 0 * W_p[o/32, kh, kw, c, o%32] // sum c:64", 0},
// ... also where the condition stands in the sum, of a small image: of a larger one most terms are inside
#define GROUPS(size, last)                                                        \
  BEGIN "in X f32 [h:" size ", w:" size                                           \
        ", c:32]\nin W f32 [r:2, t:32, k:16, kh:3, kw:3]"                         \
        " const\nY[h:" size ", w:" size ", o:64] = (if 1 <= h+kh && h+kh < " last \
        " && 1 <= w+kw && w+kw < " last                                           \
        " then X[h+kh-1, w+kw-1, o/32*16+k] else 0) * W[o/32, o%32, k, kh, kw]"   \
        " // sum k:16, kh:3, kw:3\nout Y\n"
    {GROUPS("8", "9"), "Y_b[kh:3, kw:3, o:64] = 0 * W_p[", 1},
    {GROUPS("9", "10"), "o/32*16+k] else 0) * W_p[", 1},
    // ... not where little is left of a sum, or of few channels
    {BEGIN "in X f32 [h:224, w:224, c:3]\nin W f32 [kh:7, kw:7, c:3, o:64] const\n"
           "Y[h:218, w:218, o:64] = (if h+kh < 222 && w+kw < 222 then X[h+kh, w+kw, c] else 0)"
           " * W[kh, kw, c, o] // sum kh:7, kw:7, c:3\nout Y\n",
     "X_m[", 0},
    // rows that stages share: what is prepared of constants stands beside their loop
    {BEGIN "in X f32 [h:16, w:8, c:16]\nin W f32 [r:2, t:32, c:16] const\nB[r:2, c:32, h:16, w:8] ="
           " X[h, w, k] * W[r, c, k] // sum k:16\nM[r:2, c:32, h:16] = B[r, c, h, w] // max w:8\n"
           "E[r:2, c:32, h:16, w:8] = exp(B[r, c, h, w] - M[r, c, h])\n"
           "S[r:2, c:32, h:16] = E[r, c, h, w] // sum w:8\n"
           "Y[r:2, c:32, h:16, w:8] = E[r, c, h, w] / S[r, c, h]\nout Y\n",
     "\nr, t_o, c, t_i:unroll =>\n    @W_p = r, t_o, c, t_i", 1},
// what stands under a condition of other axes than its lanes is packed: of some terms, of a length for each row, and
// of a border that is no range
#define SOME(condition)                                                         \
  BEGIN                                                                         \
  "in A f32 [i:64, k:64]\nin W f32 [j:64, k:64] const\nin L i32 [i:64] 0..65\n" \
  "Y[i:64, j:64] = if " condition " then A[i, k] * W[j, k] else 0 // sum k:64\nout Y\n"
    {SOME("10 <= k && k < 50"), "W_p[", 1},
    {SOME("k < L[i]"), "W_p[", 1},
    {BEGIN
     "in X f32 [c:16, h:7]\nin W f32 [o:32, c:16, k:3] const\nY[h:7, o:32] = if (h+k+6)/7 == 1"
     " then X[c, h+k-1] * W[o, c, k] else 0 // sum c:16, k:3\nout Y\n",
     "W_p[", 1},
    // a window of few channels: its lanes are the outputs, however its border is said
    {BEGIN "in X f32 [h:16, w:16, c:3]\nin W f32 [o:16, c:3, kh:3, kw:3] const\nY[h:16, w:16, o:16]"
           " = if h+kh < 1 || h+kh > 16 || w+kw < 1 || w+kw > 16 then 0 else X[h+kh-1, w+kw-1, c]"
           " * W[o, c, kh, kw] // sum c:3, kh:3, kw:3\nout Y\n",
     "h, w_o, kh, kw, c, w_i:6:peel:unroll, o:vec =>", 1},
// a window of more than half of the first cache: rows of what reads it lie along it, elsewhere along the line
#define COLUMN(size, last)                                                                         \
  BEGIN "in X f32 [n:2, h:" size                                                                   \
        ", w:56, c:64]\nin V f32 [kh:3, c:64]\nin W f32 [o:2, c:64, v:32] const"                   \
        "\nT[n:2, h:" size                                                                         \
        ", w:56, c:64] = (if 1 <= h then X[n, h-1, w, c] * V[0, c] else 0) + "                     \
        "(if w < 1 then X[n, h, w+55, c] else X[n, h, w-1, c]) + X[n, h, w, c] * V[1, c] + (if h " \
        "< " last                                                                                  \
        " then X[n, h+1, w, c] * V[2, c] else 0)\n"                                                \
        "Y[n:2, h:" size ", w:56, o:2, v:32] = T[n, h, w, c] * W[o, c, v] // sum c:64\nout Y\n"
    {COLUMN("56", "55"), "h_o, w =>\n    h_i:7, c:vec =>\n        @T = n, {h_o, h_i}/h, w, c", 0},
    {COLUMN("55", "54"), "w_o =>\n    w_i:7, c:vec =>\n        @T = n, h, {w_o, w_i}/w, c", 0},
// panels in memory that one tile uses are read two at a time
#define MATRIX(rows)                                                          \
  BEGIN "in X f32 [k:25088]\nin W f32 [o:" rows ", k:25088] const\nY[o:" rows \
        "] = X[k] * W[o, "                                                    \
        "k] // sum k:25088\nout Y\n"
    {MATRIX("4096"), "o_oo:para, k:pf(8), o_b:2:unroll, o_v:128:vec =>", 0},
    {MATRIX("128"), "k:pf(16), o:vec =>", 0},
    // ... two of half the lanes where registers do not suffice, which come in time without being asked for
    {MATRIX("4096"), "o_oo:para, k, o_b:2:unroll, o_v:32:vec =>", 1},
    {MATRIX("32"), "k:pf(64), o:vec =>", 1},
    // ... all of their lanes
    {BEGIN "in X f32 [k:4096]\nin W f32 [k:4096, n:4096] const\n"
           "Y[n:4096] = X[k] * W[k, n] // sum k:4096\nout Y\n",
     "n_oo:para, k, n_b:2:unroll, n_v:32:vec =>", 1},
    // ... in which more rows than a tile has use them again: as many as there are
    {BEGIN "in X f32 [i:16, k:25088]\nin W f32 [o:4096, k:25088] const\nY[i:16, o:4096] = X[i, k] "
           "* W[o, k] // sum k:25088\nout Y\n",
     "i:vec =>", 0},
// windows beside each other in the order in which they lie there
#define POOL(stride)                                                                  \
  BEGIN "in X f32 [n:2, h:56, w:56, c:64]\nY[n:2, h:27, w:27, c:64] = X[n, h*" stride \
        "+kh, w*" stride "+kw, c] // max kh:2, kw:2\nout Y\n"
    {POOL("2"), "kh:unroll, kw:unroll, w_i:2:peel:unroll, c:vec =>", 0},
    {POOL("2"), "n:para, h, w, kh, kw, c:vec =>", 1},
// all panels come again for each image, not all images for each block of panels; unless these are few
#define IMAGES(n, padded, size, channels)                                                       \
  BEGIN "in X f32 [n:" n ", h:" padded ", w:" padded ", c:" channels "]\nin W f32 [o:" channels \
        ", c:" channels ", kh:3, kw:3] const\nY[n:" n ", h:" size ", w:" size ", o:" channels   \
        "] = X[n, h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:" channels ", kh:3, kw:3\nout Y\n"
    {IMAGES("16", "58", "56", "256"), "n:para, o_oo, h, w_o, o_b:2, kh", 0},
    {IMAGES("1", "58", "56", "256"), "o_oo:para, n, h, w_o, o_b:2, kh", 0},
    {IMAGES("16", "9", "7", "512"), "o_o:para, ", 0},
    // a border is left out of a large image, too
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin W f32 [kh:3, kw:3, c:64, o:64] const\nY[h:56, w:56, "
           "o:64] = (if " WINDOW " then X[h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c, o]"
           " // sum kh:3, kw:3, c:64\nout Y\n",
     "Y_b[kh:3, kw:3, o:64] = 0 * W_p", 0},
    // as many lanes as pixels use the same element of an image
    {BEGIN "in X f32 [c:64, h:14, w:14]\nin W f32 [c:64, o:32, kh:8, kw:8] const\nY[o:32, h:112, "
           "w:112] = X[c, h/8, w/8] * W[c, o, h%8, w%8] // sum c:64\nout Y\n",
     "h_i:8:unroll, w_v:8:vec =>", 0},
    // weights that two digits of an axis choose
    {BEGIN "in X f32 [r:2, k:64, w:98]\nin W f32 [r:2, t:64, k:64] const\nS[c:128, w:98] = "
           "X[c/64, k, w] * W[c/64, c%64, k] // sum k:64\nY[w:98, c:128] = S[c, w]\nout Y\n",
     "W_p[r:2, t_o:2, k:64, t_i:32] =", 0},
    // windows that only multiply are no stage of their own
    {BEGIN "in X f32 [c:64, h:58, w:58]\nin V f32 [c:64]\nin W f32 [o:4, c:64, kh:3, kw:3]\n"
           "G[c:64, kh:3, kw:3, h:56, w:56] = X[c, h+kh, w+kw] * V[c]\nY[o:4, h:56, w:56] = "
           "G[c, kh, kw, h, w] * W[o, c, kh, kw] // sum c:64, kh:3, kw:3\nout Y\n",
     "X[c, h+kh, w+kw] * V[c] * W", 0},
    // ... and what is read shifted stays one
    {BEGIN "in X f32 [h:64, w:64]\nE[h:64, w:64] = exp(X[h, w])\nY[h:64, w:64] = X[h, w] - "
           "(if 1 <= w then E[h, w-1] else 0)\nout Y\n",
     "E[h:64, w:64] = exp(X[h, w])", 0},
    // what is computed in the tile loads along the lanes in a circle: they are all of the axis
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin W f32 [c:64, k:3]\nS[c:64, h:54, w:56] = "
           "X[c, h+k, w] * W[c, k] // sum k:3\nY[c:64, h:54, w:56] = X[c, h, (w-1)%56] + "
           "S[c, h, w]\nout Y\n",
     ":unroll, w_v:64:mask:vec =>", 0},
    // a map under conditions has lanes along them
    {BEGIN "in A f32 [h:28, c:32]\nin B f32 [h:28, c:32]\n"
           "Y[h:28, c:64] = if c < 32 then A[h, c] else B[h, c-32]\nout Y\n",
     "h, c_o, c_v:16:vec =>", 0},
    {BEGIN "in X f32 [c:64, w:56]\n"
           "Y[c:64, w:58] = if 1 <= w && w < 57 then X[c, w-1] else 0\nout Y\n",
     "c, w_o, w_v:16:peel:vec =>", 0},
    // ... and of a load that mostly goes straight along them, an image in a border of its reflection
    {BEGIN "in X f32 [c:64, w:56]\n"
           "Y[c:64, w:58] = X[c, min(max(max(1-w, w-1), 0), 55-max(w-56, 0))]\nout Y\n",
     "Y[c:64, w:58] = if 1 <= w && w < 57 then X[c, w-1] else if w < 1 then X[c, 1] else X[c, 54]",
     0},
    {BEGIN "in X f32 [w:100001]\nY[w:100001] = X[(w+17)%100001]\nout Y\n",
     "Y[w:100001] = if w < 99984 then X[w+17] else X[w-99984]", 0},
    // ... of more pieces the longest, if it is most of them, and none where they are short
    {BEGIN "in X f32 [w:100]\nY[w:100] = X[w + max(w-90, 0)*2]\nout Y\n",
     "Y[w:100] = if w < 91 then X[w] else X[w+max(w-90, 0)*2]", 0},
    {BEGIN "in X f32 [c:64, w:6]\nY[c:64, w:6] = X[c, (w+2)%6]\nout Y\n",
     "Y[c:64, w:6] = X[c, (w+2)%6]", 0},
    // what is left over of a copy across lanes, and of a vector that is turned round, is code of its own
    {BEGIN "in X f32 [a:1001, b:1003]\nY[i:1003, j:1001] = X[j, i]\nout Y\n",
     "j_o:para, i, j_i:16:peel:unroll =>", 0},
    {BEGIN "in X f32 [i:1000, j:1001]\nY[i:1000, j:1001] = X[i, 1000-j]\nout Y\n",
     "i:para, j_o, j_v:32:peel:vec =>", 0},
    {BEGIN "in X f32 [a:1001, b:1003]\nin B f32 [i:1003, j:1001]\n"
           "Y[i:1003, j:1001] = X[j, i]*2 + B[i, j]\nout Y\n",
     "i_o:para, j, i_i:16:peel:unroll =>", 0},
    // an image is turned by lines of what is read; by lines of what is written where that falls into few sets, ...
    {BEGIN "in X f32 [h:56, w:56, c:64]\nY[c:64, h:56, w:56] = X[h, w, c] * 2\nout Y\n",
     "c_o:para, h_w, c_i:16 =>", 0},
    {BEGIN "in X f32 [h:64, w:64, c:64]\nY[c:64, h:64, w:64] = X[h, w, c] * 2\nout Y\n",
     "h_w_o:para, c, h_w_i:16 =>", 0},
    {BEGIN "in X f32 [h:64, w:64, c:64]\nY[c:64, h:64, w:64] = X[h, w, c] * 2\nout Y\n",
     "h_w_o:para, c, h_w_i:16 =>", 1},
    {BEGIN "in X f32 [h:64, w:64, c:64]\nin S f32 [c:64]\nY[c:64, h:64, w:64] = X[h, w, c] * S[c]\n"
           "out Y\n",
     "h_w_o:para, c, h_w_i:16 =>", 0},
    {BEGIN "in X f32 [b:4, a:1024, c:64]\nY[c:64, a:1024, b:4] = X[b, a, c] * 2\nout Y\n",
     "c_o:para, a, b, c_i:16 =>", 0},
    // ... and what is read does not
    {BEGIN "in X f32 [c:64, h:64, w:64]\nY[h:64, w:64, c:64] = X[c, h, w] * 2\nout Y\n",
     "h:para, w_o, c, w_i:16 =>", 0},
    {BEGIN "in X f32 [a:4, h:32, w:32, b:1024]\nY[a:4, b:1024, h:32, w:32] = X[a, h, w, b] * 2\n"
           "out Y\n",
     "a:para, b_o, h_w, b_i:16 =>", 0},
    // ... also where lanes of a vector would go to such lines
    {BEGIN "in X f32 [h:64, w:64, c:64]\nin Z f32 [h:64, w:64, c:64]\nY[c:128, h:64, w:64] = "
           "if c < 64 then X[h, w, c] else Z[h, w, c-64]\nout Y\n",
     "h_w_o:para, c, h_w_i:16 =>", 0},
    {BEGIN "in X f32 [h:64, w:64, c:16]\nin Z f32 [h:64, w:64, c:16]\nY[c:16, h:64, w:64] = "
           "if X[h, w, c] < Z[h, w, c] then max(X[h, w, c] * 0.3 + 0.1, 0) * min(X[h, w, c], 6) "
           "else Z[h, w, c]\nout Y\n",
     "h_w:para, c:vec =>", 0},
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin Z f32 [h:56, w:56, c:64]\nY[c:128, h:56, w:56] = "
           "if c < 64 then X[h, w, c] else Z[h, w, c-64]\nout Y\n",
     "h_w:para, c_o, c_v:16:vec =>", 0},
    // loads of rows bind one vector of a long sum: they are shared by a window that stays in registers, ...
    {BEGIN
     "in X f32 [h:58, w:58, c:64]\nin W f32 [o:64, k:16, kh:3, kw:3] const\n"
     "Y[h:56, w:56, o:64] = X[h+kh, w+kw, o/16*16+k] * W[o, k, kh, kw] // sum k:16, kh:3, kw:3"
     "\nout Y\n",
     "kh, k, kw:unroll, w_i:14:unroll, o_v:16:vec =>", 0},
    // ... of as many rows as leave room for it
    {BEGIN "in X f32 [h:229, w:229, c:3]\nin W f32 [o:16, c:3, kh:7, kw:7] const\n"
           "Y[h:112, w:112, o:16] = X[h*2+kh, w*2+kw, c] * W[o, c, kh, kw] // sum kh:7, kw:7, c:3"
           "\nout Y\n",
     "kh, c, kw:unroll, w_i:8:unroll, o:vec =>", 0},
    // few registers: as many sums as leave room for the vectors of both blocks and what is broadcast, ...
    {BEGIN "in X f32 [h:6, w:12, k:256]\nin W f32 [r:2, o:64, k:256, v:8] const\n"
           "Y[r:2, h:6, w:12, o:64, v:8] = X[h, w, k] * W[r, o, k, v] // sum k:256\nout Y\n",
     "h:para, w_o, o, k, w_i:6:unroll, r:unroll, v:vec =>", 1},
    // ... not 7 rows of them: one sum would be on the stack
    {BEGIN "in X f32 [h:7, w:7, k:256]\nin W f32 [r:2, o:64, k:256, v:8] const\n"
           "Y[r:2, h:7, w:7, o:64, v:8] = X[h, w, k] * W[r, o, k, v] // sum k:256\nout Y\n",
     "h_w_o:para, o, k, h_w_i:5:peel:unroll, r:unroll, v:vec =>", 1},
    // rows that divide the blocks which they are in: 14 of them would have as many addresses
    {BEGIN "in X f32 [h:56, w_o:7, k:64, w_i:8]\nin W f32 [o:16, k:64, v:16]\n"
           "Y[o:256, h:56, w:56] = X[h, w/8, k, w%8] * W[o/16, k, o%16] // sum k:64\nout Y\n",
     "o_o:para, h, w_o, k, o_i:8:unroll, w_v:8:vec =>", 1},
    // ... and rows of a window share the vectors that are permuted for them
    {BEGIN "in X f32 [c:64, h:114, w:114]\n"
           "Y[c:64, h:56, w:56] = X[c, h*2+kh, w*2+kw] // max kh:3, kw:3\nout Y\n",
     "kw:unroll, kh:unroll, h_i:7:unroll, w_v:8:vec =>", 1},
    // rows along a line rather than one in a line each, of which the first cache keeps few
    {TWO_CONVOLUTIONS, "h:para, c_o, kh, kw, k, w:unroll, c_v:32:vec =>", 0},
    // vectors that have their lanes across what is written are transposed, of few rows and of those left over, too
    {TWO_CONVOLUTIONS, "o_v, w_i:vec =>", 1},
    {TWO_CONVOLUTIONS, "kh, kw, k, w_i:5:peel:unroll, c_v:16:vec =>", 1},
    // an image whose lines the first cache keeps for all channels is not packed ...
    {BEGIN
     "in X f32 [c:128, h:28, w:28]\nin W f32 [t:512, c:128] const\n"
     "D[c:512, h:28, w:28] = X[k, h, w] * W[c, k] // sum k:128\n"
     "E[h:28, w:28] = D[c, h, w] // max c:512\n"
     "Y[c:128, h:28, w:28] = E[h, w] + (if 1 <= h && 1 <= w then X[c, h-1, w-1] else 0)\nout Y\n",
     "D[c:512, h:28, w:28] = X[k, h, w] * W", 1},
    // the pixels of a window that begins anew at the end of the line lie there once
    {BEGIN "in X f32 [c:64, h:56, w:56]\nY[c:64, h:56, w:56] = if h+kh < 57 && w+kw < 57 then "
           "X[c, (h+kh)%56, (w+kw)%56] else 0 // max kh:3, kw:3\nout Y\n",
     "X_m[c:64, h:58, w:58] =", 1},
    // rows along a line rather than in lines of their own, which leave the first cache with the panels beside them
    {BEGIN
     "in X f32 [n:1, c:128, h:28, w:28]\n"
     "P_sum[n:1, c:128, h:14, w:14] = X[n, c, h*2+kh, w*2+kw] // sum kh:2, kw:2\n"
     "P[n:1, c:128, h:14, w:14] = P_sum[n, c, h, w] / (2 * 2)\n"
     "in w0 f32 [r:2, t:1, c:128] const\n"
     "d[r:2, n:1, c:1, h:14, w:14] = (if 1 <= h then P[n, k, h-1, w] else 0) * w0[r, c, k] // sum "
     "k:128\n"
     "e[r:2, n:1, c:128, h:14, w:14] = d[r, n, 0, h, w] + (if 1 <= w then P[n, c, h, w-1] else 0)\n"
     "in w1 f32 [r:2, t:256, c:128] const\n"
     "f[r:2, n:1, c:256, h:14, w:14] = e[r, n, k, h, w] * w1[r, c, k] // sum k:128\n"
     "g[r:2, n:1, c:256, h:14, w:14] = max(f[r, n, c, h, w], 0)\n"
     "in w2 f32 [r:2, t:128, c:256] const\n"
     "Y[n:1, c:256, h:14, w:14] = g[c/128, n, k, h, w] * w2[c/128, c%128, k] // sum k:256\n"
     "out Y\n",
     "k, f_w_i:5:peel:unroll, f_c_v:16:vec =>", 1},
    // rows of a matrix beyond the second cache: several lines of each page
    {BEGIN "in A f32 [k:1000, m:1003]\nin x f32 [k:1000]\n"
           "Y[m:1003] = A[k, m] * x[k] // sum k:1000\nout Y\n",
     "k:pf(18), m_v:112:mask:vec =>", 0},
    {BEGIN "in A f32 [k:2048, m:2048]\nin x f32 [k:2048]\n"
           "Y[m:2048] = A[k, m] * x[k] // sum k:2048\nout Y\n",
     "m_o:para, k:pf(32), m_v:64:vec =>", 0},
    {BEGIN "in X f32 [c:64, w:56]\nY[c:64, w:56] = X[c, (w+20)%56]\nout Y\n",
     "Y[c:64, w:56] = if w < 36 then X[c, w+20] else X[c, w-36]", 0},
    // ... also where it would be computed element by element in the tile of a sum
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin W f32 [o:64, c:64, k:3] const\n"
           "S[o:64, h:56, w:56] = (if 1 <= w+k && w+k < 57 then X[c, h, w+k-1] else 0) * "
           "W[o, c, k] // sum c:64, k:3\n"
           "Y[o:64, h:56, w:56] = max(S[o, h, w], X[o, (h-1)%56, (w-1)%56])\nout Y\n",
     "o_v, w_i:vec =>\n        @Y", 0},
    // windows of an image in the second cache: one block of lanes goes through all of them, ...
    {BEGIN "in X f32 [h:9, w:9, c:960]\nin W f32 [kh:3, kw:3, c:960] const\n"
           "Y[h:7, w:7, c:960] = X[h+kh, w+kw, c] * W[kh, kw, c] // sum kh:3, kw:3\nout Y\n",
     "c_o, h, kh:unroll, kw:unroll, w:unroll, c_v:32:vec =>", 0},
    // ... also of one that is larger, or several, image by image, by whole lines or where a window is wide; ...
    {DEPTHWISE("1", "28", "720"),
     "n, c_o:para, h, w_o, kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>", 0},
    {DEPTHWISE("4", "28", "240"),
     "n:para, c_o, h, w_o, kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>", 0},
    // ... also of every second pixel, not of few terms, nor where it is read alone, as by a pooling; ...
    {BEGIN "in X f32 [n:1, h:32, w:28, c:240]\nin W f32 [kh:3, kw:3, c:240] const\n"
           "Y[n:1, h:28, w:24, c:240] = X[n, h+kh*2, w+kw*2, c] * W[kh, kw, c] // sum kh:3, "
           "kw:3\nout Y\n",
     "n, c_o:para, h, kh, kw, w:unroll, c_v:16:vec =>", 0},
    {BEGIN "in X f32 [n:1, h:58, w:56, c:240]\nin W f32 [kh:3, c:240] const\n"
           "Y[n:1, h:56, w:56, c:240] = X[n, h+kh, w, c] * W[kh, c] // sum kh:3\nout Y\n",
     "n, h_o:para, w, c_o, kh:unroll, h_i:5:peel:unroll, c_v:48:vec =>", 0},
    {BEGIN "in X f32 [n:1, h:58, w:58, c:144]\n"
           "Y[n:1, h:56, w:56, c:144] = X[n, h+kh, w+kw, c] // max kh:3, kw:3\nout Y\n",
     "n, w:para, h_o, c_o, kw, kh:unroll, h_i:5:peel:unroll, c_v:48:vec =>", 0},
    // lanes of an image in memory
    {BEGIN "in X f64 [n:2, h:224, w:224, c:12]\n"
           "Y f64 [n:2, h:111, w:111, c:12] = X[n, h*2+kh, w*2+kw, c] // max kh:3, kw:3\nout Y\n",
     "n:para, w, h_o, kh, kw, h_i:4:peel:unroll, c:vec =>", 1},
    // ... or all lanes go through it in strips, which the first cache keeps; not through what comes from memory
    {DEPTHWISE("1", "56", "144"),
     "n, w_o:para, h, c_o, kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>", 0},
    {DEPTHWISE("4", "56", "144"),
     "n:para, w_o, h, c_o, kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>", 0},
    {DEPTHWISE("1", "28", "256"), "n, w_o:para, h, c_o, kh, kw:unroll, w_i:7:unroll, c_v:32:vec =>",
     0},
    {DEPTHWISE("64", "56", "144"),
     "n:para, h_o, w, c_o, kw, kh:unroll, h_i:7:unroll, c_v:16:vec =>", 0},
    {DEPTHWISE("1", "28", "240"), "n, h_o:para, w, c_o, kw, kh:unroll, h_i:7:unroll, c_v:8:vec =>",
     1},
    {BEGIN
     "in X f32 [h:28, w:28, c:240]\nin W f32 [kh:5, kw:5, c:240] const\n"
     "Y[h:14, w:14, c:240] = if 2 <= h*2+kh && h*2+kh < 30 && 2 <= w*2+kw && w*2+kw < 30 then "
     "X[h*2+kh-2, w*2+kw-2, c] * W[kh, kw, c] else 0 // sum kh:5, kw:5\nout Y\n",
     "c_o:para, h_o, w, kw, kh:unroll, h_i:7:unroll, c_v:8:vec =>", 1},
    // ... unless their lines want the same set of the first cache
    {BEGIN "in X f32 [h:9, w:9, c:1024]\nin W f32 [kh:3, kw:3, c:1024] const\n"
           "Y[h:7, w:7, c:1024] = X[h+kh, w+kw, c] * W[kh, kw, c] // sum kh:3, kw:3\nout Y\n",
     "h_o, w, c_o, kw, kh:unroll, h_i:4:peel:unroll, c_v:64:vec =>", 0},
    // a function that is the same for a row is computed once for it, none that a condition guards
    {BEGIN "in X f32 [c:64, l:100]\nin S f32 [c:64]\n"
           "Y[c:64, l:100] = X[c, l] / (1 + exp(-S[c]))\nout Y\n",
     "Y_s[c:64] = 1 + exp(-S[c])\nY[c:64, l:100] = X[c, l] / Y_s[c]", 0},
    {BEGIN "in X f32 [c:64, l:100]\nin S f32 [c:32]\n"
           "Y[c:64, l:100] = if c < 32 then X[c, l] * exp(S[c]) else 0\nout Y\n",
     "X[c, l] * exp(S[c])", 0},
    // sums over an axis of less than a vector, one for each of its steps
    {BEGIN "in X f32 [c:64, h:14, w:14]\nY[c:64] = X[c, h, w] // sum h:14, w:14\nout Y\n",
     "row0, Y_o, Y_v:128:peel:vec =>\n    @Y = {row0}/c // {Y_o, Y_v}/h_w", 0},
    {BEGIN "in X f32 [c:64, h:28, w:14]\nY[c:64] = X[c, h*2, w] // sum h:14, w:14\nout Y\n",
     "Y_r[c:64, w_i:14] =", 0},
    {BEGIN "in X f32 [c:64, h:7, w:7]\nY[c:64] = X[c, h, w] // sum h:7, w:7\nout Y\n",
     "Y[c:64] = X[c, h_w] // sum h_w:49", 0},
    // sums along rows of a program that has others, too; not of short rows, nor where lanes go elsewhere
    {BEGIN "in X f32 [c:64, g:8, p:196]\nM[c:64] = X[c, g, p] // mean g:8, p:196\n"
           "Y[c:64, g:8, p:196] = X[c, 7-g, p] - M[c]\nout Y\n",
     "g, p_o, p_v:128:peel:vec =>\n        @M = c // g, {p_o, p_v}/p", 0},
    {BEGIN "in X f32 [c:64, g:8, p:56]\nM[c:64] = X[c, g, p] // mean g:8, p:56\n"
           "Y[c:64, g:8, p:56] = X[c, 7-g, p] - M[c]\nout Y\n",
     "M_r[c:64, p_i:", 0},
    {BEGIN "in X f32 [p:196, c:64]\nM[c:64] = X[p, c] // mean p:196\nout M\n", "c:vec =>", 0},
    {BEGIN "in X f32 [i:1048]\nY[i:1000] = X[i+k] // mean k:49\nout Y\n", "k, i_v:", 0},
    {BEGIN "in X f32 [c:64, i:1048]\nM[c:64, i:1000] = X[c, i+k] // mean k:49\n"
           "Y[c:64, i:1000] = X[c, 1047-i] - M[c, 999-i]\nout Y\n",
     "k, i_v:128:mask:vec =>\n        @M", 0},
    // pixels that are read as pixels are one axis, unless that leaves no rows for stages to share
    {BEGIN "in X f32 [n:1, c:64, h:57, w:57]\nin W f32 [o:96, c:64]\n"
           "Y[n:1, o:96, h:57, w:57] = X[n, c, h, w] * W[o, c] // sum c:64\nout Y\n",
     "Y[n:1, o:96, h_w:3249] =", 0},
    {BEGIN "in X f32 [n:1, c:96, h:56, w:56]\nM[n:1, h:56, w:56] = X[n, c, h, w] // mean c:96\n"
           "Y[n:1, c:96, h:56, w:56] = X[n, c, h, w] - M[n, h, w]\nout Y\n",
     "\nh:para =>\n", 1},
    {BEGIN "in X f32 [n:2, h:56, w:56]\nin S f32 [p:3136]\n"
           "Y[n:2, h:56, w:56] = X[n, h, w] * S[h*56+w]\nout Y\n",
     "n, {h, w}:fold:vec =>", 0},
    // a padded image is kept as the lanes of its reader want it
    {BEGIN "in X f32 [h:30, w:32, c:64]\nin W f32 [o:16, c:8, k:3]\n"
           "P[h:30, w:34, c:64] = if 1 <= w && w < 33 then X[h, w-1, c] else 0\n"
           "Y[h:30, w:32, o:16] = P[h, w+k, o/2*8+c] * W[o, c, k] // sum k:3, c:8\nout Y\n",
     "P_t[h:30, c:64, w:34] =", 0},
    // lanes are the channels of a pixel, whose groups are permuted: all of a short sum is unrolled
    {BEGIN GROUPED, "h, w_o, k:unroll, w_i:8:unroll, o:vec =>", 1},
    {BEGIN GROUPED, "h, k:unroll, w:unroll, o:vec =>", 0},
    // lanes that are the channels of one group want the same number of the image
    {BEGIN "in X f32 [h:10, w:58, c:64]\nin W f32 [kh:3, kw:3, c:16, o:64] const\n"
           "Y[h:8, w:56, o:64] = X[h+kh, w+kw, o/16*16+c] * W[kh, kw, c, o]"
           " // sum kh:3, kw:3, c:16\nout Y\n",
     "o_v:16:vec =>", 0},
    // weights whose channels come in blocks are packed, along blocks of their own or of the lanes
    {BLOCKS_OUT, "W_p[o_o:36, c:96, o_i:16] =", 0},
    {BLOCKS_IN, "W_p[o_o:12, c:64, o_i:32] =", 0},
    {BLOCKS_IN, "W_p[o_o:24, c:64, o_i:16] =", 1},
    // rows are one line of the image, not one each; what they share is loaded once for two vectors
    {BLOCKS_OUT, "c, w:unroll, o_o_i:2:unroll, o_i:vec =>", 0},
    // a divisor that is the same for a row: its reciprocal where that is proved to be normal, ...
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] * X[n, c] // mean c:64\n"
           "Y[n:8, c:64] = X[n, c] / sqrt(V[n] + 0.00001)\nout Y\n",
     "Y_d[n:8] = 1 / sqrt(V[n] + 1e-05)\nY[n:8, c:64] = X[n, c] * Y_d[n]", 0},
    {BEGIN "in X f32 [n:8, c:64]\nS[n:8] = exp(X[n, c]) // sum c:64\n"
           "Y[n:8, c:64] = X[n, c] / max(sqrt(S[n]), 0.5)\nout Y\n",
     "= X[n, c] * Y_d[n]", 0},
    // ... not where it may be 0, negative, or large, and not once for each element
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] * X[n, c] // mean c:64\n"
           "Y[n:8, c:64] = X[n, c] / sqrt(V[n])\nout Y\n",
     "= X[n, c] / Y_s[n]", 0},
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] * X[(n+1)%8, c] // sum c:64\n"
           "Y[n:8, c:64] = X[n, c] / (sqrt(V[n]) + 1)\nout Y\n",
     "= X[n, c] / Y_s[n]", 0},
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] // max c:64\n"
           "Y[n:8, c:64] = X[n, c] / max(V[n], 2)\nout Y\n",
     "/ max(V[n], 2)", 0},
    {BEGIN "in X f32 [n:8, c:64]\nY[n:8, c:64] = X[n, c] / sqrt(X[n, c] * X[n, c] + 1)\nout Y\n",
     "/ sqrt(X[n, c] * X[n, c] + 1)", 0},
    // a long sum comes in parts, of which all tiles read what stays in the second cache, ...
    {BEGIN "in X f32 [k:100000, i:64]\nY[i:64, j:64] = X[k, i] * X[k, j] // sum k:100000\nout Y\n",
     "k_o, i_o:para, j_o, k_i:1000, i_i:6:peel:unroll, j_v:16:vec =>", 1},
    // ... whose lines lie in few sets of the first cache, and are packed, ...
    {BEGIN "in X f32 [k:8192, i:512]\nY[i:512, j:512] = X[k, i] * X[k, j] // sum k:8192\nout Y\n",
     "X_p[i_o:32, k:8192, i_i:16] =", 1},
    // ... packed once for all of them, ...
    {BEGIN
     "in A f32 [i:64, k:100000]\nin B f32 [j:64, k:100000]\nY[i:64, j:64] = A[i, k] * B[j, k] // "
     "sum k:100000\nout Y\n",
     "Y[i:64, j:64] = A[i, k] * B_p[j/16, k, j%16] // sum k:100000", 1},
    // ... each matrix of many by itself, ...
    {BEGIN LONG_PRODUCTS, "b:para, k_o, j_oo, i_o, j_b:2, k_i:1024, i_i:6:peel:unroll, j_v:16:vec",
     1},
    {BEGIN LONG_PRODUCTS, "b:para, k_o, i_o, k_i:1024, i_i:6:peel:unroll, j:vec =>", 0},
    // ... what no such number divides with a rest, and what reads it behind it, ...
    {BEGIN
     "in A f32 [i:64, k:20011]\nin B f32 [k:20011, j:64]\nS[i:64, j:64] = A[i, k] * B[k, j] // "
     "sum k:20011\nY[i:64, j:64] = max(S[i, j] + 1, 0)\nout Y\n",
     "k_i:1024:peel, i_i:6:peel:unroll, j_v:16:vec =>\n    @S = {i_o, i_i}/i, {j_o, j_v}/j // "
     "{k_o, k_i}/k\n"
     "{i, j}:fold:vec =>\n    @Y = i, j",
     1},
    // ... with lanes that follow each other where the sums go to, though others are cheaper
    {BEGIN
     "in A f32 [i:128, k:16384]\nin B f32 [k:16384, j:1024] const\nY[i:128, j:1024] = A[i, k] * "
     "B[k, j] // sum k:16384\nout Y\n",
     "k_o, j_o:para, i_o, k_i:512, i_i:6:peel:unroll, j_v:64:vec =>", 0},
    // not where memory would round the sums of each part, nor where most of it is read once
    {BEGIN
     "in X f32 [k:100000, i:64]\nY bf16 [i:64, j:64] = X[k, i] * X[k, j] // sum k:100000\nout Y\n",
     "k:pf(256), j_i:14:peel:unroll, i_v:8:vec =>", 1},
    {BEGIN "in A f32 [i:4, k:50000]\nin B f32 [k:50000, j:64]\nY[i:4, j:64] = A[i, k] * B[k, j] // "
           "sum k:50000\nout Y\n",
     "j_o:para, k:pf(128), i:unroll, j_v:16:vec =>", 1},
    // the image between two sums is kept as it is told, as in the program that was edited for that
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin V f32 [o:64, c:64, k:3] const\n"
           "in W f32 [o:64, c:64, k:3] const\n"
           "S[o:64, h:56, w:56] = (if 1 <= h+k && h+k < 57 then X[c, h+k-1, w] else 0) * V[o, c, k]"
           " // sum c:64, k:3\n"
           "Y[o:64, h:56, w:56] = (if 1 <= w+k && w+k < 57 then S[c, h, w+k-1] else 0) * W[o, c, k]"
           " // sum c:64, k:3\nout Y\n",
     "\n    c, k, Y_c_w_i:14:mask:unroll, o_v:vec =>", 0},
    // functions of what is not side by side are computed in lanes, and then copied
    {BEGIN "in X f32 [k:64, w:3]\nin W f32 [c:128, k:64] const\nS[c:128, w:3] = X[k, w] * W[c, k]"
           " // sum k:64\nY[c:128, w:3] = exp(S[c, w])\nout Y\n",
     "Y_c[c:128, w:3] = exp(", 0},
    // ... or are a stage of their own, where they read something else in a twisted way
    {BEGIN "in X f32 [k:64, w:7]\nin W f32 [c:128, k:64] const\nS[c:128, w:7] = X[k, w] * W[c, k]"
           " // sum k:64\nY[c:128, w:7] = exp(S[c, w] + X[c%64, (w+1)%7])\nout Y\n",
     "c, w_v:8:mask:vec =>\n    @Y = c, {w_v}/w", 0},
    {BEGIN "in X f32 [k:64, w:7]\nin W f32 [c:128, k:64] const\nS[c:128, w:7] = X[k, w] * W[c, k]"
           " // sum k:64\nY[c:128, w:7] = exp(S[c, w])\nout Y\n",
     "Y[c:128, w:7] = exp(", 0},
    // ... and never called for each element, whatever that would save
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin W f32 [o:32, c:64, kh:3, kw:3] const\n"
           "in V f32 [o:64, c:32] const\n"
           "S[o:32, h:56, w:56] = (if 1 <= h+kh && h+kh < 57 && 1 <= w+kw && w+kw < 57 then "
           "X[c, h+kh-1, w+kw-1] else 0) * W[o, c, kh, kw] // sum c:64, kh:3, kw:3\n"
           "E[o:32, h:56, w:56] = 1 / (1 + exp(-S[o, h, w]))\n"
           "Y[o:64, h:56, w:56] = E[c, h, w] * V[o, c] // sum c:32\nout Y\n",
     "w_i:unroll, o_v:vec =>\n        @E", 2},
    {BEGIN "in X f32 [n:1, c:64, h:56, w:56]\nin W f32 [t:64, c:64] const\nin V f32 [c:64] const\n"
           "S[n:1, c:64, h:56, w:56] = X[n, k, h, w] * W[c, k] // sum k:64\n"
           "Y[n:1, c:64, h:56, w:56] = min(X[n, c, (h+1)%56, (w+1)%56] * V[c], "
           "1 / (1 + exp(-max(S[n, c, h, w], 0))))\nout Y\n",
     "c_i:unroll, w_v:vec =>\n        @Y", 2},
};

// Panels that two stages want are packed once; where a program may have no more stages there are none, and it is bound.
static void panels_are_few(void **state) {
  struct default_bound made;
  struct buf text = {0};
  buf_puts(&text, BEGIN
           "in X f32 [i:64, k:64]\nin Z f32 [i:64, k:64]\nin W f32 [j:64, k:64] const\n"
           "A[i:64, j:64] = X[i, k] * W[j, k] // sum k:64\n"
           "B[i:64, j:64] = Z[i, k] * W[j, k] // sum k:64\n");
  for (int full = 0; full < 2; full++) {
    struct program *p;
    for (int i = 0; full && i < PROGRAM_STAGES - 5; i++)
      buf_printf(&text, "u%d[i:64] = X[i, 0] + %d\n", i, i);
    size_t length = text.length;
    buf_puts(&text, "out A\nout B\n");
    CHECK_INT(program_parse(&ctx, text.text, text.length, &p), CANVAS_OK, ctx.message);
    CHECK_INT(default_bind(&ctx, p, &machine_avx512, &made), CANVAS_OK, ctx.message);
    const struct program *edited = made.edited ? made.edited : p;
    CHECK_INT(program_verify(&ctx, edited), CANVAS_OK, ctx.message);
    CHECK(full || program_find(edited, "W_p") >= 0, "one panel");
    CHECK(program_find(edited, "W_p2") < 0, "not two of them");
    text.length = length;
    loop_tree_free(made.tree);
    schedule_free(made.schedule);
    program_free(made.edited);
    program_free(p);
  }
  buf_free(&text);
}

static void what_is_edited(void **state) {
  CHECK_ROWS (edits, row) {
    struct program *p;
    CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK, ctx.message);
    holds(p, machines[row->machine], row->line);
    struct program *q = default_program(p, machines[row->machine]);
    if (q) same_outputs(p, q, row->line, 1999);
    program_free(q);
    program_free(p);
  }
}

// Each element of what a map loads piece by piece.
static void pieces_keep(void **state) {
  static const char *const loads[] = {"(w+13)%40",
                                      "(w+39)%40 ",
                                      "min(max(max(3-w, w-3), 0), 39-max(w-42, 0))",
                                      "min(max(w-3, 0), 39)",
                                      "39-min(w, 39)",
                                      "w/2 + max(w-30, 0)/2"};
  CHECK_ROWS (loads, load) {
    char text[256];
    struct program *p;
    snprintf(text, sizeof text, BEGIN "in X f32 [c:2, w:40]\nY[c:2, w:46] = X[c, %s]\nout Y\n",
             *load);
    CHECK_INT(program_parse(&ctx, text, strlen(text), &p), CANVAS_OK, ctx.message);
    struct program *q = default_program(p, &machine_avx512);
    if (q) same_outputs(p, q, *load, 1);
    program_free(q);
    program_free(p);
  }
}

// Frees p.
static void leaves_border_out(struct program *p) {
  struct program *q = default_program(p, &machine_avx2);
  assert_non_null(q);
  struct buf text = {0};
  program_print(q, &text);
  if (!strstr(text.text, "Y_b[") || strstr(text.text, "X_m[")) fail_msg("%s", text.text);
  same_values(&ctx, p, q, "an infinite weight", 1, 1);
  buf_free(&text);
  program_free(q);
  program_free(p);
}

// A weight that is not finite makes nan of the zeros around an image, also where no product with them is left.
static void borders_keep_nan(void **state) {
  static const char groups[] = GROUPS("4", "5");
  struct program *p = called(
      "conv2d_nhwc height=6 width=5 in_channels=64 out_channels=64 kernel=3 "
      "padding=1 weights=hwio");
  p->tensors.data[p->inputs.data[1]].constant = true;
  leaves_border_out(p);
  CHECK_INT(program_parse(&ctx, groups, strlen(groups), &p), CANVAS_OK, ctx.message);
  leaves_border_out(p);
}

// ---- rows that stages share ----

static void rows_are_shared(void **state) {
  struct machine small = small_cache(&machine_avx512);
  CHECK_ROWS (row_programs, row) {
    struct program *p;
    CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK, ctx.message);
    holds(p, &small, row->line);
    program_free(p);
  }
}

// ---- bind takes it ----

static int refused;

static void bind_one(const struct program *p, const struct machine *machine, const char *label) {
  struct schedule *s = schedule_default(p, true, machine);
  struct loop_tree *tree;
  refused += strcmp(s->name, "heuristic") != 0;
  CHECK_INT(loop_tree_bind(&ctx, p, s, machine, &tree), CANVAS_OK, label);
  loop_tree_free(tree);
  schedule_free(s);
}

static void is_taken(void **state) {
  CHECK_ROWS (operator_calls, call) {
    struct program *p = called(*call);
    CHECK_ROWS (machines, machine) {
      struct program *edited = default_program(p, *machine);
      bind_one(p, *machine, *call);
      if (edited) bind_one(edited, *machine, *call);
      program_free(edited);
    }
    program_free(p);
  }
  CHECK_INT(refused, 0, "operators");
  for (uint64_t seed = 0; seed < 300; seed++) {
    struct program *p = random_program(seed);
    const struct machine *machine = machines[seed % 3];
    struct program *edited = default_program(p, machine);
    bind_one(p, machine, "random");
    if (edited) bind_one(edited, machine, "random");
    program_free(edited);
    program_free(p);
  }
  print_message("%d of 300 random programs have the plain schedule\n", refused);
  CHECK(refused <= 30, "few random programs have the plain schedule");
}

// ---- the edits keep what is computed ----

static void edits_keep(void **state) {
  int edited = 0;
  CHECK_ROWS (operator_calls, call) {
    struct program *p = called(*call), *q = default_program(p, &machine_avx512);
    if (q) same_outputs(p, q, *call, 3);
    edited += q != NULL;
    program_free(q);
    program_free(p);
  }
  CHECK(edited >= 4, "operators are edited");
}

#define HEAD   "canvas 1\nprogram p\nin X f32 [h:9]\nin W f32 [k:3]\n"
#define HALVES "canvas 1\nprogram p\nin X bf16 [h:9]\nin W f32 [k:3]\n"
// A border and an index by blocks, outlined: the line of the new stage, which rounds nothing.
static const struct {
  const char *program, *stage;
} outlined[] = {
    {HEAD "Y[h:9] = (if 1 <= h+k && h+k < 10 then X[h+k-1] else 0) * W[k] // sum k:3\nout Y\n",
     "M[h:11] = if 1 <= h && h < 10 then X[h-1] else 0"},
    {HEAD "Y[h:9] = (if h+k < 10 then X[(h+k)%9] else 0) * W[k] // sum k:3\nout Y\n",
     "M[h:11] = if h < 10 then X[h%9] else 0"},
    {HEAD "Y[h:9] = X[((h+k)%9+(h+k)/9)%9] * W[k] // sum k:3\nout Y\n", "M[h:11] = X["},
    {HEAD "Y[h:9] = X[(h+k*2)%9/2+(h+k)%5] * W[k] // sum k:3\nout Y\n", "M[h:9, k:3] = X["},
    {HEAD "Y[h:4] = (if 1 <= h*2+k then X[h*2+k-1] else 0) * W[k] // sum k:3\nout Y\n",
     "M[h:9] = if 1 <= h then X[h-1] else 0"},
    {HEAD "Y[h:9] = X[h/3*3+k] * W[k] // sum k:3\nout Y\n", "M[h:9] = X[h]"},
    {HEAD "Y[h:9] = X[(h+1)%9] * W[k] // sum k:3\nout Y\n", "M[h:9] = X[(h+1)%9]"},
    {HEAD "Y bf16 [h:9] = X[(h+1)%9] * W[k] // sum k:3\nout Y\n", "\nM[h:9] = X[(h+1)%9]"},
    {HEAD "Y f64 [h:9] = X[(h+1)%9] * W[k] // sum k:3\nout Y\n", "\nM f64 [h:9] = X[(h+1)%9]"},
    {HALVES "Y bf16 [h:9] = (if h+k < 9 then X[h+k] else 2) * W[k] // sum k:3\nout Y\n",
     "\nM bf16 [h:11] = if h < 9 then X[h] else 2"},
    {HALVES "Y bf16 [h:9] = (if h+k < 9 then X[h+k] else 0.1) * W[k] // sum k:3\nout Y\n",
     "\nM[h:11] = if h < 9 then X[h] else 0.1"},
};

static void outlines(void **state) {
  CHECK_ROWS (outlined, row) {
    struct program *p, *q;
    CHECK_INT(program_parse(&ctx, row->program, strlen(row->program), &p), CANVAS_OK, ctx.message);
    int stage = p->outputs.data[0], body = p->tensors.data[stage].body;
    CHECK_INT(program_outline(&ctx, p, stage, p->nodes.data[body].arg[0], "M", &q), CANVAS_OK,
              ctx.message);
    struct buf text = {0};
    program_print(q, &text);
    if (!strstr(text.text, row->stage)) fail_msg("\"%s\" is not in\n%s", row->stage, text.text);
    same_outputs(p, q, row->stage, 3);
    buf_free(&text);
    program_free(q);
    program_free(p);
  }
}

// ---- time ----

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_time(const char *call) {
  struct program *p = called(call);
  double least = 1;
  for (int i = 0; i < 9; i++) {
    default_clear_cache();
    double begin = seconds();
    struct program *q = default_program(p, &machine_avx512);
    schedule_free(schedule_default(q, true, &machine_avx512));
    double taken = seconds() - begin;
    if (taken < least) least = taken;
    program_free(q);
  }
  print_message("edits and schedule of %.13s: %.2f ms\n", call, 1e3 * least);
  CHECK(least < 20e-3, "time to choose");  // 1 ms, and what sanitizers add
  program_free(p);
}

static void takes_no_time(void **state) {
  check_time(CONV);
  check_time("conv2d_nchw height=57 width=57 in_channels=64 out_channels=96 kernel=1");
  check_time("conv2d_nhwc height=57 width=57 in_channels=64 out_channels=96 kernel=1");
}

// ---- Winograd's convolution ----

#define CHANNELS(c) " in_channels=" #c " out_channels=" #c " kernel=3 padding=1"
static const struct {
  const char *call, *more;  // stages after it, in the place of its output
  int machine;
  const char *line;  // of the schedule; NULL: that of any other program
} winograds[] = {
    // weights of a tile stay in the first cache; a block of tiles beside all weights in the second
    {"conv2d_nhwc height=32 width=32" CHANNELS(64), "", 0, "    ni_n:1, hm:2:para, hi:1:peel =>\n"},
    {"conv2d_nhwc height=32 width=32" CHANNELS(64), "", 0, " wi:4:peel:unroll, ov:vec =>\n"},
    // weights that come from the second cache are read once for more places
    {"conv2d_nhwc height=16 width=16" CHANNELS(128), "", 0,
     "m_ic:pf(20), hi:unroll, wi:4:peel:unroll, ov:vec"},
    {"conv2d_nhwc height=16 width=16" CHANNELS(128), "", 0,
     "    ni_n:1, hm:2:para, hi:2:peel =>\n"},
    // images that share weights of more than the second cache, and the threads
    {"conv2d_nhwc batch=10 height=14 width=14" CHANNELS(256), "", 0, "    ni_n:10:para, hm:"},
    // blocks divide the rows of tiles where some do
    {"conv2d_nhwc height=56 width=56" CHANNELS(64), "", 0, ", hm:1:para, hi:2:peel =>\n"},
    {"conv2d_nhwc height=148 width=16" CHANNELS(128), "", 0, ", hm:8:para, hi:2:peel =>\n"},
    // fewer registers
    {"conv2d_nhwc height=32 width=32" CHANNELS(64), "", 1, "hi:unroll, wi:2:peel:unroll, ov:vec"},
    // of tiles with as many sums that which takes fewer weights, where those come from the second cache
    {"conv2d_nhwc height=16 width=16" CHANNELS(128), "", 1,
     "m_ic, hi:unroll, wi:4:peel:unroll, ov:vec"},
    // they come from memory block by block
    {"conv2d_nhwc height=16 width=16" CHANNELS(128), "", 1,
     "    m_a:para, m_b, ob:pf(1), ni_n, hm"},
    // maps of it are computed in its place; not what reads it elsewhere
    {"conv2d_nhwc height=32 width=32" CHANNELS(64),
     "Z[n:1, h:32, w:32, k:64] = max(Y[n, h, w, k], 0)\nV[n:1, h:32, w:32, k:64] = Z[n, h, w, k] * "
     "Y[n, h, w, k]\nout V\n",
     0, "            @V = {nb_n, ni_n}/n, {hb, hm, hi, y_i}/h, {y_w, y_j}/w, {sb, sv}/k\n"},
    {"conv2d_nhwc height=32 width=32" CHANNELS(64),
     "Z[n:1, h:32, w:32, k:64] = Y[n, 31-h, w, k]\nout Z\n", 0, NULL},
    {"conv2d_nhwc height=32 width=32" CHANNELS(64),
     "Z[n:1] = Y[n, h, w, k] // sum h:32, w:32, k:64\nout Z\n", 0, NULL},
    // channels across the lanes
    {"conv2d_nchw height=32 width=32" CHANNELS(64), "", 0, NULL},
};

static struct program *in_tiles_of_4(const char *call, const char *more) {
  struct program *given = called(call), *p;
  struct buf text = {0};
  program_print(given, &text);
  if (*more) strstr(text.text, "out Y")[0] = '\0';
  char *whole = mem_alloc(strlen(text.text) + strlen(more) + 1);
  strcat(strcpy(whole, text.text), more);
  program_free(given);
  CHECK_INT(program_parse(&ctx, whole, strlen(whole), &given), CANVAS_OK, ctx.message);
  p = program_with_winograd(given, 4);
  assert_non_null(p);
  program_free(given);
  free(whole);
  buf_free(&text);
  return p;
}

static void winograd_in_blocks(void **state) {
  CHECK_ROWS (winograds, row) {
    struct program *p = in_tiles_of_4(row->call, row->more);
    struct schedule *s = default_winograd(p, machines[row->machine]);
    struct buf text = {0};
    if (!row->line) CHECK(!s, row->more);
    if (row->line) {
      CHECK(s && !default_program(p, machines[row->machine]), row->line);
      schedule_print(s, &text);
      CHECK(strstr(text.text, row->line), text.text);
    }
    buf_free(&text);
    schedule_free(s);
    program_free(p);
  }
}

CHECK_MAIN(cmocka_unit_test(winograd_in_blocks), cmocka_unit_test(what_is_chosen),
           cmocka_unit_test(pieces_keep), cmocka_unit_test(borders_keep_nan),
           cmocka_unit_test(panels_are_few), cmocka_unit_test(what_is_edited),
           cmocka_unit_test(rows_are_shared), cmocka_unit_test(is_taken),
           cmocka_unit_test(edits_keep), cmocka_unit_test(outlines),
           cmocka_unit_test(takes_no_time))
