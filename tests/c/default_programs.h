/* Programs of the default schedule, one row for each way to make code that the compiler knows: what
 * test_default_times.c holds their schedules to.
 *
 * `most` is the predicted time in microseconds that the default schedule had when the row was written, by
 * schedule_cost.h and the likely rates of the machine. A change may make it shorter. Where a row names a text, the
 * program after its edits, or the schedule, holds it: each mechanism is shown once, and so is what would be wrong.
 */
#ifndef CANVAS_TESTS_DEFAULT_PROGRAMS_H
#define CANVAS_TESTS_DEFAULT_PROGRAMS_H

#include "check.h"
#include "operator_calls.h"
#include "program/program.h"

#define CONV "conv2d_nhwc height=14 width=14 in_channels=64 out_channels=64 kernel=3 padding=1"
#define TRANSPOSED                                                                             \
  "conv_transpose2d_nchw in_channels=64 height=28 width=28 out_channels=32 kernel=4 stride=2 " \
  "padding=1"

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

#define PIXELS(n, c, o)                                                                      \
  BEGIN "in X f32 [n:" n ", h:56, w:56, c:" c "]\nin W f32 [c:" c ", o:" o "] const\nY[n:" n \
        ", h:56, w:56, o:" o "] = X[n, h, w, c] * W[c, o] // sum c:" c "\nout Y\n"
#define BLOCKS(n, c, size, o)                                                                \
  BEGIN "in X f32 [n:" n ", a:" c ", h:" size ", w:" size ", b:16]\nin W f32 [o:" o ", a:" c \
        ", b:16, v:16] const\nY[n:" n ", o:" o ", h:" size ", w:" size                       \
        ", v:16] = X[n, a, h, w, b] * W[o, a, b, v] // sum a:" c ", b:16\nout Y\n"
#define DEPTHWISE(n, size, channels)                                                               \
  BEGIN "in X f32 [n:" n ", h:" size ", w:" size ", c:" channels                                   \
        "]\nin W f32 [kh:3, kw:3, c:" channels "]\nY[n:" n ", h:" size ", w:" size ", c:" channels \
        "] = if 1 <= h+kh && h+kh <= " size " && 1 <= w+kw && w+kw <= " size                       \
        " then X[n, h+kh-1, w+kw-1, c] * W[kh, kw, c] else 0"                                      \
        " // sum kh:3, kw:3\nout Y\n"
#define SMALL_IMAGES(n)                                                                          \
  BEGIN "in X f32 [n:" n ", h:6, w:6, c:512]\nin W f32 [o:512, c:512, kh:3, kw:3] const\nY[n:" n \
        ", h:4, w:4, o:512] = X[n, h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:512, kh:3, "        \
        "kw:3\nout Y\n"
#define GROUPS(size, last)                                                        \
  BEGIN "in X f32 [h:" size ", w:" size                                           \
        ", c:32]\nin W f32 [r:2, t:32, k:16, kh:3, kw:3]"                         \
        " const\nY[h:" size ", w:" size ", o:64] = (if 1 <= h+kh && h+kh < " last \
        " && 1 <= w+kw && w+kw < " last                                           \
        " then X[h+kh-1, w+kw-1, o/32*16+k] else 0) * W[o/32, o%32, k, kh, kw]"   \
        " // sum k:16, kh:3, kw:3\nout Y\n"
#define SOME(condition)                                                         \
  BEGIN                                                                         \
  "in A f32 [i:64, k:64]\nin W f32 [j:64, k:64] const\nin L i32 [i:64] 0..65\n" \
  "Y[i:64, j:64] = if " condition " then A[i, k] * W[j, k] else 0 // sum k:64\nout Y\n"
#define COLUMN(size, last)                                                                         \
  BEGIN "in X f32 [n:2, h:" size                                                                   \
        ", w:56, c:64]\nin V f32 [kh:3, c:64]\nin W f32 [o:2, c:64, v:32] const"                   \
        "\nT[n:2, h:" size                                                                         \
        ", w:56, c:64] = (if 1 <= h then X[n, h-1, w, c] * V[0, c] else 0) + "                     \
        "(if w < 1 then X[n, h, w+55, c] else X[n, h, w-1, c]) + X[n, h, w, c] * V[1, c] + (if h " \
        "< " last                                                                                  \
        " then X[n, h+1, w, c] * V[2, c] else 0)\n"                                                \
        "Y[n:2, h:" size ", w:56, o:2, v:32] = T[n, h, w, c] * W[o, c, v] // sum c:64\nout Y\n"
#define MATRIX(rows)                                                          \
  BEGIN "in X f32 [k:25088]\nin W f32 [o:" rows ", k:25088] const\nY[o:" rows \
        "] = X[k] * W[o, "                                                    \
        "k] // sum k:25088\nout Y\n"
#define POOL(stride)                                                                  \
  BEGIN "in X f32 [n:2, h:56, w:56, c:64]\nY[n:2, h:27, w:27, c:64] = X[n, h*" stride \
        "+kh, w*" stride "+kw, c] // max kh:2, kw:2\nout Y\n"
#define IMAGES(n, padded, size, channels)                                                       \
  BEGIN "in X f32 [n:" n ", h:" padded ", w:" padded ", c:" channels "]\nin W f32 [o:" channels \
        ", c:" channels ", kh:3, kw:3] const\nY[n:" n ", h:" size ", w:" size ", o:" channels   \
        "] = X[n, h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:" channels ", kh:3, kw:3\nout Y\n"

static const struct {
  const char *program; /* or a call of an operator */
  int machine;         /* of machine_model */
  double most;         /* microseconds */
  const char *shows;   /* part of the text of the program or the schedule; NULL: any */
} default_programs[] = {
    // register tile: rows of pixels, unrolled, times vectors of output channels
    {CONV, 0, 89.91, "kh, kw, ic, Y_w:unroll, oc_v:32:vec =>"},
    // cache blocks: four panels of the weights stay in L2 while all rows run
    {"gemm m=1024 k=1024 n=1024", 0, 1.335e+04,
     "n_oo:para, m_o, n_b:4, k, m_i:6:peel:unroll, n_v:64:vec =>"},
    // a remainder of rows is peeled, one of lanes is masked
    {"gemm m=256 k=256 n=256", 0, 202, NULL},
    {"gemm m=20 k=50 n=21", 0, 0.606, "m_o, k, m_i:10:unroll, n_v:32:mask:vec =>"},
    // horizontal reduction: the vector axis is the reduction
    {"gemv m=256 k=512", 0, 6.774, "    m_i:unroll, k_i:vec =>"},
    {"gemv m=256 k=512", 1, 6.766, NULL},
    {"gemv m=256 k=512", 2, 39.26, NULL},
    // split reduction: partial sums in lanes, then a stage that adds them up
    {"gemv m=1024 k=1024", 0, 286.1, "Y_r[m:1024, k_i:16] ="},
    {"gemv m=1024 k=1024", 1, 289.6, NULL},
    {"softmax shape=256x128", 0, 27.9, NULL},
    // rows whose length is no multiple of the vector: all stages row by row, the remainder peeled
    {"softmax shape=1024x1003", 0, 1159,
     "\nrow0:para =>\n    largest_o, largest_v:128:peel:vec =>\n        @largest = {row0}/i0 // "
     "{largest_o, largest_v}/i1\n    raised_o, raised_v:64:peel:vec =>"},
    {"softmax shape=16x101", 1, 2.235, NULL},
    // the same for short rows, and rows where partial sums are better
    {"mean shape=12x100 dim=-1", 0, 0.064, NULL},
    {"gemv m=12 k=100", 0, 0.064, NULL},
    {"mean shape=300x33 dim=-1", 0, 1.384, NULL},
    {"gemv m=200 k=19", 1, 0.702, NULL},
    {"gemv m=12 k=333", 0, 0.1108, NULL},
    {"softmax shape=1024x67", 0, 69.27, NULL},
    {"softmax shape=1024x63", 0, 59.89, NULL},
    // fused stages: all stages of a row share one loop, where the row fits into L1
    {"softmax shape=1024x1024", 1, 1294, "\ni0:para =>\n    i1_o, i1_i:vec =>"},
    {"softmax shape=64x16384", 1, 1814, NULL},
    {"softmax shape=4x512", 1, 1.832, NULL},
    {"zero_pad1d channels=64 length=100", 0, 0.297, NULL},
    // the rows of a sliding window share their loads
    {"depthwise_conv2d_nchw in_channels=32 height=112 width=112 kernel=3 padding=1", 0, 472.3,
     NULL},
    // an output that is not contiguous along the vector axis is transposed in registers
    {"conv2d_nchw height=56 width=56 in_channels=64 out_channels=64 kernel=3 padding=1", 0, 1642,
     "@Y_c[oc_v][w_i] ="},
    // few registers, and images of other sizes
    {"conv2d_nchw height=56 width=56 in_channels=64 out_channels=64 kernel=3 padding=1", 1, 4026,
     NULL},
    {"conv2d_nchw height=10 width=14 in_channels=64 out_channels=64 kernel=3 padding=1", 0, 67.75,
     NULL},
    // phases of a strided transposed convolution: each has a part of the window
    {TRANSPOSED, 0, 399.8, "n, h_o:para, Y_c_w_o, h_i:2:unroll =>"},
    {"conv_transpose2d_nchw in_channels=512 height=4 width=4 out_channels=256 kernel=4 stride=2 "
     "padding=1",
     0, 2805, NULL},
    {TRANSPOSED, 1, 1073, NULL},
    // gather: sparse blocks of weights, prefetched
    {"bsr_conv2d_nhwc height=7 width=7 in_channels=512 out_channels=512 kernel=3 padding=1 "
     "blocks=58976",
     0, 752, "ko:dyn(xr):pf("},
    // a consumer that reads digits of its axes is computed in the tile; rows of blocks are inside of
    // the pixels, where L2 holds the weights, but not the image
    {"bsr_conv2d_nhwc height=64 width=64 in_channels=64 out_channels=64 kernel=3 padding=1 "
     "blocks=460",
     0, 532.4, "@Y = {n, parts_h, w_o, w_i}/y, {xr, xi}/x // ki"},
    {"bsr_conv2d_nhwc height=64 width=64 in_channels=64 out_channels=64 kernel=3 padding=1 "
     "blocks=460",
     0, 532.4, "parts_h:para, w_o, xr =>"},
    // pixels that share few sets of L1: as many as these hold
    {"bsr_conv2d_nhwc batch=2 height=7 width=7 in_channels=512 out_channels=64 kernel=3 padding=1 "
     "blocks=1843",
     0, 118, "n:unroll, parts_w:unroll, ki:unroll, xi:vec =>"},
    // transposed convolutions whose stride does not divide the window, and large windows
    {"conv_transpose1d in_channels=64 length=64 out_channels=64 kernel=3 stride=2", 0, 16.13, NULL},
    {"conv_transpose2d_nchw in_channels=32 height=20 width=20 out_channels=16 kernel=5 stride=2 "
     "padding=2",
     0, 62.54, NULL},
    {"conv_transpose2d_nchw in_channels=32 height=13 width=13 out_channels=16 kernel=9 stride=4 "
     "padding=2",
     0, 231.1, NULL},
    {"conv_transpose3d_ncdhw in_channels=16 depth=9 height=9 width=9 out_channels=16 kernel=3 "
     "stride=2",
     0, 523.8, NULL},
    // layout: a stage between two reductions keeps the layout of the program
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin V f32 [t:64, c:64] const\nb[c:64, h:56, w:56] = "
           "X[k, h, w] * V[c, k] // sum k:64\nc[c:64, h:56, w:56] = max(b[c, h, w], 0)\nin W f32 "
           "[t:64, c:64] const\nY[c:64, h:56, w:56] = c[k, (h-1)%56, (w-1)%56] * W[c, k] // sum "
           "k:64\nout Y\n",
     1, 724.3, "        @c = {c_o, c_i}/c, h, {w_o, w_v}/w\n"},
    {BEGIN "in X f32 [h:20, w:20, c:64]\nin A f32 [o:16, k:16] const\nin B f32 [k:16, c:64] const\n"
           "V[c:64, o:16] = A[o, k] * B[k, c] // sum k:16\nY[h:20, w:20, o:16] = X[h, w, c] * V[c, "
           "o] // sum c:64\nout Y\n",
     1, 8.942, NULL},
    // partly masked reductions and odd sizes
    {BEGIN
     "in X f32 [n:1, c:256, h:7, w:7]\nin W f32 [r:2, t:256, c:256] const\nY[r:2, n:1, c:256, "
     "h:7, w:7] = (if h < 6 && w < 6 then X[n, k, h+1, w+1] else 0) * W[r, c, k] // sum "
     "k:256\nout Y\n",
     0, 72.12, NULL},
    {BEGIN "in A f32 [m:1000, k:1017]\nin B f32 [k:1017, n:1003] const\nY[m:1000, n:1003] = "
           "A[m, k] * B[k, n] // sum k:1017\nout Y\n",
     1, 2.918e+04, NULL},
    {BEGIN "in X f32 [h:7, w:7, c:960]\nin W f32 [kh:3, kw:3, c:960]\nY[h:7, w:7, c:960] = if "
           "1 <= h+kh && h+kh < 8 && 1 <= w+kw && w+kw < 8 then X[h+kh-1, w+kw-1, c] * W[kh, kw, c]"
           " else 0 // sum kh:3, kw:3\nout Y\n",
     1, 9.532, NULL},
    {BEGIN "in A f32 [m:333, k:200]\nin B f32 [n:777, k:200]\nY[m:333, n:777] = "
           "A[m, k] * B[n, k] // sum k:200\nout Y\n",
     0, 690, "@B_p"},
    {BEGIN "in A f32 [m:1, k:20]\nin B f32 [n:1000, k:20]\nY[m:1, n:1000] = "
           "A[m, k] * B[n, k] // sum k:20\nout Y\n",
     0, 4.467, "Y_v:"},
    // the padded image of a strided depth-wise convolution, whose rows would be gathered
    {"conv2d_nchw batch=4 in_channels=192 out_channels=192 height=28 width=28 kernel=7 stride=2 "
     "padding=3 groups=192",
     1, 1208, "pad_t[n:4, h:34, w:34, ic:192] ="},
    // a partial sum for each element of groups, and the mean of a group for each of its elements
    {BEGIN "in X f32 [h:3136, c:96]\nM[g:32] = X[h, g*3+i] // mean h:3136, i:3\n"
           "V[g:32] = (X[h, g*3+i] - M[g]) * (X[h, g*3+i] - M[g]) // mean h:3136, i:3\n"
           "Y[h:3136, c:96] = (X[h, c] - M[c/3]) * V[c/3]\nout Y\n",
     1, 333.3, "V_r[g_i:96] = (X[h, g_i] - M_m2[g_i]) * (X[h, g_i] - M_m2[g_i]) // mean h:3136"},
    {BEGIN "in X f32 [h:1024, c:320]\nin V f32 [g:32]\nY[h:1024, c:320] = X[h, c] * V[c/10]\n"
           "out Y\n",
     1, 178.8, "Y[h:1024, c:320] = X[h, c] * V_m[c]"},
    // merged axes: tiles of pixels go across the lines of an image
    {BEGIN "in X f32 [n:1, h:14, w:14, c:528]\nin W f32 [o:256, c:528] const\n"
           "Y[n:1, h:14, w:14, o:256] = X[n, h, w, c] * W[o, c] // sum c:528\nout Y\n",
     1, 586.4, "c, h_w_i:6:peel:unroll, o_v:16:vec =>"},
    {BEGIN "in X f32 [n:1, h:28, w:28, c:256]\nin W f32 [o:128, c:256] const\n"
           "Y[n:1, h:28, w:28, o:128] = X[n, h, w, c] * W[o, c] // sum c:256\nout Y\n",
     1, 593, NULL},
    {BEGIN
     "in X f32 [n:1, a:16, h:28, w:28, b:16]\nin W f32 [o:8, a:16, b:16, v:16] const\n"
     "Y[n:1, o:8, h:28, w:28, v:16] = X[n, a, h, w, b] * W[o, a, b, v] // sum a:16, b:16\nout Y\n",
     1, 631.8, NULL},
    // prefetch: rows of an image that comes from memory
    {PIXELS("16", "144", "24"), 1, 4880, "\nn:para, h:pf(1), w_o, c, w_i:4:unroll, o:vec =>"},
    {PIXELS("16", "144", "24"), 0, 3448, NULL},
    {PIXELS("8", "144", "24"), 0, 1724, NULL},
    {PIXELS("2", "144", "24"), 1, 610.1, NULL},
    {PIXELS("16", "64", "64"), 1, 4780, NULL},
    {PIXELS("16", "64", "256"), 1, 1.96e+04, NULL},
    {PIXELS("64", "24", "144"), 1, 2.012e+04, NULL},
    {PIXELS("16", "256", "200"), 1, 6.18e+04, NULL},
    {BEGIN "in X f32 [p:50176, c:144]\nin W f32 [c:144, o:24] const\n"
           "Y[p:50176, o:24] = X[p, c] * W[c, o] // sum c:144\nout Y\n",
     1, 4878, NULL},
    // channels in blocks
    {BLOCKS("16", "12", "28", "2"), 1, 1906, NULL},
    {BEGIN "in X f32 [n:16, a:12, h:28, w:28, b:16]\nin W f32 [o:32, c:192] const\n"
           "Y[n:16, o:2, h:28, w:28, v:16] = X[n, a, h, w, b] * W[o*16+v, a*16+b] // sum a:12, "
           "b:16\nout Y\n",
     1, 1937, NULL},
    {BLOCKS("16", "60", "7", "10"), 1, 2965, NULL},
    {BLOCKS("16", "60", "14", "10"), 1, 1.159e+04, NULL},
    // groups of channels, in the pixel and in images of their own
    {BEGIN "in X f32 [h:56, w:56, g:4, c:16]\nin W f32 [g:4, c:16, o:16] const\n"
           "Y[h:56, w:56, g:4, o:16] = X[h, w, g, c] * W[g, c, o] // sum c:16\nout Y\n",
     1, 84.12, NULL},
    {BEGIN "in X f32 [g:4, h:56, w:56, c:16]\nin W f32 [g:4, c:16, o:16] const\n"
           "Y[h:56, w:56, g:4, o:16] = X[g, h, w, c] * W[g, c, o] // sum c:16\nout Y\n",
     1, 88.62, NULL},
    // reductions whose results other rows read
    {BEGIN "in X f32 [r:64, c:103]\nS[r:64] = X[r, c] // sum c:103\nY[r:64, c:103] = X[r, c] + "
           "S[63-r]\nout Y\n",
     1, 1.273, NULL},
    // depth-wise convolution: tiles along a line, or along a column where the image is in memory
    {DEPTHWISE("1", "112", "32"), 0, 164.7, "kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>"},
    {DEPTHWISE("16", "112", "32"), 0, 3599, NULL},
    {DEPTHWISE("1", "7", "1024"), 0, 30.65, NULL},
    {DEPTHWISE("1", "14", "1024"), 0, 120.8, NULL},
    {DEPTHWISE("16", "56", "144"), 0, 4060, NULL},
    {DEPTHWISE("16", "56", "144"), 1, 4319, NULL},
    // prefetch: panels of weights that few tiles use
    {SMALL_IMAGES("1"), 0, 820, "kh, kw, c:pf(128), h:unroll, w:unroll, o_v:16:vec =>"},
    {SMALL_IMAGES("1"), 1, 1124, NULL},
    {BEGIN
     "in X f32 [h:9, w:9, c:512]\nin W f32 [o:512, c:512, kh:3, kw:3] const\nY[h:7, w:7, o:512] "
     "= X[h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:512, kh:3, kw:3\nout Y\n",
     1, 2968, NULL},
    {BEGIN
     "in X f32 [h:9, w:9, c:512]\nin W f32 [o:512, c:512, kh:3, kw:3] const\nY[h:7, w:7, o:512] "
     "= X[h+kh, w+kw, c] * W[o, c, kh, kw] // sum c:512, kh:3, kw:3\nout Y\n",
     0, 1459, NULL},
    {BEGIN
     "in X f32 [w:4, c:1024]\nin W f32 [o:1024, c:1024] const\nY[w:4, o:1024] = X[w, c] * W[o, c] "
     "// sum c:1024\nout Y\n",
     1, 305.7, NULL},
    {SMALL_IMAGES("16"), 0, 7067, NULL},
    // a matrix and a vector: all time is memory
    {BEGIN
     "in X f32 [m:1, k:4096]\nin W f32 [k:4096, n:4160] const\nY[m:1, n:4160] = X[m, k] * W[k, n] "
     "// sum k:4096\nout Y\n",
     0, 4674, NULL},
    // images larger than L2, and conditions in short reductions
    {BEGIN "in X f32 [h:56, w:56, c:144]\nin W f32 [kh:3, kw:3, c:144]\nY[h:56, w:56, c:144] = if "
           "1 <= h+kh && h+kh < 57 && 1 <= w+kw && w+kw < 57 then X[h+kh-1, w+kw-1, c] * "
           "W[kh, kw, c] else 0 // sum kh:3, kw:3\nout Y\n",
     1, 261.5, NULL},
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin W f32 [kh:3, kw:3, c:64]\nY[h:56, w:56, c:64] = "
           "(if " WINDOW " then X[h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c] // sum kh:3, kw:3\n"
           "out Y\n",
     0, 25.88, NULL},
    // padding buffer: the operand of a long reduction is copied with its padding
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin W f32 [kh:3, kw:3, c:64, o:64]\nY[h:56, w:56, o:64] ="
           " (if " WINDOW " then X[h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c, o]"
           " // sum kh:3, kw:3, c:64\nout Y\n",
     0, 1362, "X_m[h:58, w:58, c:64] ="},
    // products with the padding are left out; a stage keeps the effect of weights that are NaN
    {BEGIN "in X f32 [h:7, w:7, c:64]\nin W f32 [kh:3, kw:3, c:64, o:64] const\nY[h:7, w:7, o:64] ="
           " (if 1 <= h+kh && h+kh < 8 && 1 <= w+kw && w+kw < 8 then X[h+kh-1, w+kw-1, c] else 0)"
           " * W[kh, kw, c, o] // sum kh:3, kw:3, c:64\nout Y\n",
     0, 17.16, "Y_b[kh:3, kw:3, o:64] = 0 * W_p[o/32, kh, kw, c, o%32] // sum c:64"},
    {GROUPS("8", "9"), 1, 12.54, NULL},
    {GROUPS("9", "10"), 1, 19.32, NULL},
    // a reduction over few channels
    {BEGIN "in X f32 [h:224, w:224, c:3]\nin W f32 [kh:7, kw:7, c:3, o:64] const\n"
           "Y[h:218, w:218, o:64] = (if h+kh < 222 && w+kw < 222 then X[h+kh, w+kw, c] else 0)"
           " * W[kh, kw, c, o] // sum kh:7, kw:7, c:3\nout Y\n",
     0, 6082, NULL},
    // packed weights beside a loop that stages share
    {BEGIN "in X f32 [h:16, w:8, c:16]\nin W f32 [r:2, t:32, c:16] const\nB[r:2, c:32, h:16, w:8] ="
           " X[h, w, k] * W[r, c, k] // sum k:16\nM[r:2, c:32, h:16] = B[r, c, h, w] // max w:8\n"
           "E[r:2, c:32, h:16, w:8] = exp(B[r, c, h, w] - M[r, c, h])\n"
           "S[r:2, c:32, h:16] = E[r, c, h, w] // sum w:8\n"
           "Y[r:2, c:32, h:16, w:8] = E[r, c, h, w] / S[r, c, h]\nout Y\n",
     1, 20.47, NULL},
    // packing under a condition of other axes: a range, a length per row, and no range
    {SOME("10 <= k && k < 50"), 1, 3.45, NULL},
    {SOME("k < L[i]"), 1, 6.313, "W_p["},
    {BEGIN
     "in X f32 [c:16, h:7]\nin W f32 [o:32, c:16, k:3] const\nY[h:7, o:32] = if (h+k+6)/7 == 1"
     " then X[c, h+k-1] * W[o, c, k] else 0 // sum c:16, k:3\nout Y\n",
     1, 0.3274, NULL},
    // a window of few channels
    {BEGIN "in X f32 [h:16, w:16, c:3]\nin W f32 [o:16, c:3, kh:3, kw:3] const\nY[h:16, w:16, o:16]"
           " = if h+kh < 1 || h+kh > 16 || w+kw < 1 || w+kw > 16 then 0 else X[h+kh-1, w+kw-1, c]"
           " * W[o, c, kh, kw] // sum c:3, kh:3, kw:3\nout Y\n",
     1, 3.317, NULL},
    // fused producer: a stage is computed for one tile of rows of its consumer
    {COLUMN("56", "55"), 0, 432.4,
     "h_o, w =>\n    h_i:7, c:vec =>\n        @T = n, {h_o, h_i}/h, w, c"},
    {COLUMN("55", "54"), 0, 398.9, NULL},
    // two panels at once, where one tile uses each panel and all come from memory
    {MATRIX("4096"), 0, 2.768e+04, "o_oo:para, k:pf(8), o_b:2:unroll, o_v:128:vec =>"},
    {MATRIX("128"), 0, 868.7, NULL},
    {MATRIX("4096"), 1, 2.819e+04, NULL},
    {MATRIX("32"), 1, 225.8, NULL},
    {BEGIN "in X f32 [k:4096]\nin W f32 [k:4096, n:4096] const\n"
           "Y[n:4096] = X[k] * W[k, n] // sum k:4096\nout Y\n",
     1, 4575, NULL},
    {BEGIN "in X f32 [i:16, k:25088]\nin W f32 [o:4096, k:25088] const\nY[i:16, o:4096] = X[i, k] "
           "* W[o, k] // sum k:25088\nout Y\n",
     0, 4.629e+04, NULL},
    // pooling whose windows do not overlap
    {POOL("2"), 0, 104.5, NULL},
    {POOL("2"), 1, 127, NULL},
    // large weights and several images: which of the two is read again
    {IMAGES("16", "58", "56", "256"), 0, 3.29e+05, NULL},
    {IMAGES("1", "58", "56", "256"), 0, 2.056e+04, NULL},
    {IMAGES("16", "9", "7", "512"), 0, 2.077e+04, NULL},
    // padding of a large image, and upsampling
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin W f32 [kh:3, kw:3, c:64, o:64] const\nY[h:56, w:56, "
           "o:64] = (if " WINDOW " then X[h+kh-1, w+kw-1, c] else 0) * W[kh, kw, c, o]"
           " // sum kh:3, kw:3, c:64\nout Y\n",
     0, 1258, NULL},
    {BEGIN "in X f32 [c:64, h:14, w:14]\nin W f32 [c:64, o:32, kh:8, kw:8] const\nY[o:32, h:112, "
           "w:112] = X[c, h/8, w/8] * W[c, o, h%8, w%8] // sum c:64\nout Y\n",
     0, 634.9, NULL},
    // packed weights that two digits of an axis choose, and stages that are inlined or stay
    {BEGIN "in X f32 [r:2, k:64, w:98]\nin W f32 [r:2, t:64, k:64] const\nS[c:128, w:98] = "
           "X[c/64, k, w] * W[c/64, c%64, k] // sum k:64\nY[w:98, c:128] = S[c, w]\nout Y\n",
     0, 9.808, NULL},
    {BEGIN "in X f32 [c:64, h:58, w:58]\nin V f32 [c:64]\nin W f32 [o:4, c:64, kh:3, kw:3]\n"
           "G[c:64, kh:3, kw:3, h:56, w:56] = X[c, h+kh, w+kw] * V[c]\nY[o:4, h:56, w:56] = "
           "G[c, kh, kw, h, w] * W[o, c, kh, kw] // sum c:64, kh:3, kw:3\nout Y\n",
     0, 142.4, NULL},
    {BEGIN "in X f32 [h:64, w:64]\nE[h:64, w:64] = exp(X[h, w])\nY[h:64, w:64] = X[h, w] - "
           "(if 1 <= w then E[h, w-1] else 0)\nout Y\n",
     0, 1.7, NULL},
    // an operand in a circle, and conditions along the vector axis
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin W f32 [c:64, k:3]\nS[c:64, h:54, w:56] = "
           "X[c, h+k, w] * W[c, k] // sum k:3\nY[c:64, h:54, w:56] = X[c, h, (w-1)%56] + "
           "S[c, h, w]\nout Y\n",
     0, 170.8, NULL},
    {BEGIN "in A f32 [h:28, c:32]\nin B f32 [h:28, c:32]\n"
           "Y[h:28, c:64] = if c < 32 then A[h, c] else B[h, c-32]\nout Y\n",
     0, 0.128, NULL},
    {BEGIN "in X f32 [c:64, w:56]\n"
           "Y[c:64, w:58] = if 1 <= w && w < 57 then X[c, w-1] else 0\nout Y\n",
     0, 0.2764, NULL},
    // an index in pieces becomes a condition with contiguous loads
    {BEGIN "in X f32 [c:64, w:56]\n"
           "Y[c:64, w:58] = X[c, min(max(max(1-w, w-1), 0), 55-max(w-56, 0))]\nout Y\n",
     0, 0.2764,
     "Y[c:64, w:58] = if 1 <= w && w < 57 then X[c, w-1] else if w < 1 then X[c, 1] else X[c, 54]"},
    {BEGIN "in X f32 [w:100001]\nY[w:100001] = X[(w+17)%100001]\nout Y\n", 0, 8.646, NULL},
    {BEGIN "in X f32 [w:100]\nY[w:100] = X[w + max(w-90, 0)*2]\nout Y\n", 0, 0.01404, NULL},
    {BEGIN "in X f32 [c:64, w:6]\nY[c:64, w:6] = X[c, (w+2)%6]\nout Y\n", 0, 0.866, NULL},
    // copies that transpose or reverse, with a remainder
    {BEGIN "in X f32 [a:1001, b:1003]\nY[i:1003, j:1001] = X[j, i]\nout Y\n", 0, 695.3, NULL},
    {BEGIN "in X f32 [i:1000, j:1001]\nY[i:1000, j:1001] = X[i, 1000-j]\nout Y\n", 0, 542.1, NULL},
    {BEGIN "in X f32 [a:1001, b:1003]\nin B f32 [i:1003, j:1001]\n"
           "Y[i:1003, j:1001] = X[j, i]*2 + B[i, j]\nout Y\n",
     0, 988.1, NULL},
    // transposition: by cache lines of the source or of the destination
    {BEGIN "in X f32 [h:56, w:56, c:64]\nY[c:64, h:56, w:56] = X[h, w, c] * 2\nout Y\n", 0, 134.9,
     "c_o:para, h_w, c_i:16 =>"},
    {BEGIN "in X f32 [h:64, w:64, c:64]\nY[c:64, h:64, w:64] = X[h, w, c] * 2\nout Y\n", 0, 184.8,
     NULL},
    {BEGIN "in X f32 [h:64, w:64, c:64]\nY[c:64, h:64, w:64] = X[h, w, c] * 2\nout Y\n", 1, 193.6,
     NULL},
    {BEGIN "in X f32 [h:64, w:64, c:64]\nin S f32 [c:64]\nY[c:64, h:64, w:64] = X[h, w, c] * S[c]\n"
           "out Y\n",
     0, 184.8, NULL},
    {BEGIN "in X f32 [b:4, a:1024, c:64]\nY[c:64, a:1024, b:4] = X[b, a, c] * 2\nout Y\n", 0, 197.4,
     NULL},
    {BEGIN "in X f32 [c:64, h:64, w:64]\nY[h:64, w:64, c:64] = X[c, h, w] * 2\nout Y\n", 0, 185,
     NULL},
    {BEGIN "in X f32 [a:4, h:32, w:32, b:1024]\nY[a:4, b:1024, h:32, w:32] = X[a, h, w, b] * 2\n"
           "out Y\n",
     0, 3209, NULL},
    // transposition of what conditions choose
    {BEGIN "in X f32 [h:64, w:64, c:64]\nin Z f32 [h:64, w:64, c:64]\nY[c:128, h:64, w:64] = "
           "if c < 64 then X[h, w, c] else Z[h, w, c-64]\nout Y\n",
     0, 386.6, NULL},
    {BEGIN "in X f32 [h:64, w:64, c:16]\nin Z f32 [h:64, w:64, c:16]\nY[c:16, h:64, w:64] = "
           "if X[h, w, c] < Z[h, w, c] then max(X[h, w, c] * 0.3 + 0.1, 0) * min(X[h, w, c], 6) "
           "else Z[h, w, c]\nout Y\n",
     0, 34, NULL},
    {BEGIN "in X f32 [h:56, w:56, c:64]\nin Z f32 [h:56, w:56, c:64]\nY[c:128, h:56, w:56] = "
           "if c < 64 then X[h, w, c] else Z[h, w, c-64]\nout Y\n",
     0, 230.2, NULL},
    // windows of grouped convolutions in registers
    {BEGIN
     "in X f32 [h:58, w:58, c:64]\nin W f32 [o:64, k:16, kh:3, kw:3] const\n"
     "Y[h:56, w:56, o:64] = X[h+kh, w+kw, o/16*16+k] * W[o, k, kh, kw] // sum k:16, kh:3, kw:3"
     "\nout Y\n",
     0, 327.8, NULL},
    {BEGIN "in X f32 [h:229, w:229, c:3]\nin W f32 [o:16, c:3, kh:7, kw:7] const\n"
           "Y[h:112, w:112, o:16] = X[h*2+kh, w*2+kw, c] * W[o, c, kh, kw] // sum kh:7, kw:7, c:3"
           "\nout Y\n",
     0, 334.9, NULL},
    // two blocks of lanes, with few registers
    {BEGIN "in X f32 [h:6, w:12, k:256]\nin W f32 [r:2, o:64, k:256, v:8] const\n"
           "Y[r:2, h:6, w:12, o:64, v:8] = X[h, w, k] * W[r, o, k, v] // sum k:256\nout Y\n",
     1, 560.7, NULL},
    {BEGIN "in X f32 [h:7, w:7, k:256]\nin W f32 [r:2, o:64, k:256, v:8] const\n"
           "Y[r:2, h:7, w:7, o:64, v:8] = X[h, w, k] * W[r, o, k, v] // sum k:256\nout Y\n",
     1, 454.7, NULL},
    // pixels in blocks, and windows with a stride of two
    {BEGIN "in X f32 [h:56, w_o:7, k:64, w_i:8]\nin W f32 [o:16, k:64, v:16]\n"
           "Y[o:256, h:56, w:56] = X[h, w/8, k, w%8] * W[o/16, k, o%16] // sum k:64\nout Y\n",
     1, 1418, NULL},
    {BEGIN "in X f32 [c:64, h:114, w:114]\n"
           "Y[c:64, h:56, w:56] = X[c, h*2+kh, w*2+kw] // max kh:3, kw:3\nout Y\n",
     1, 302, NULL},
    // two convolutions: the layout between them
    {TWO_CONVOLUTIONS, 0, 357.2, NULL},
    {TWO_CONVOLUTIONS, 1, 786.5, NULL},
    // reductions of which others read a line, a circle or a part
    {BEGIN
     "in X f32 [c:128, h:28, w:28]\nin W f32 [t:512, c:128] const\n"
     "D[c:512, h:28, w:28] = X[k, h, w] * W[c, k] // sum k:128\n"
     "E[h:28, w:28] = D[c, h, w] // max c:512\n"
     "Y[c:128, h:28, w:28] = E[h, w] + (if 1 <= h && 1 <= w then X[c, h-1, w-1] else 0)\nout Y\n",
     1, 1337, NULL},
    {BEGIN "in X f32 [c:64, h:56, w:56]\nY[c:64, h:56, w:56] = if h+kh < 57 && w+kw < 57 then "
           "X[c, (h+kh)%56, (w+kw)%56] else 0 // max kh:3, kw:3\nout Y\n",
     1, 102.4, NULL},
    // a block of a network: pooling, convolutions and groups
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
     1, 764, NULL},
    // columns of a matrix beyond L2, and a rotation
    {BEGIN "in A f32 [k:1000, m:1003]\nin x f32 [k:1000]\n"
           "Y[m:1003] = A[k, m] * x[k] // sum k:1000\nout Y\n",
     0, 405.2, NULL},
    {BEGIN "in A f32 [k:2048, m:2048]\nin x f32 [k:2048]\n"
           "Y[m:2048] = A[k, m] * x[k] // sum k:2048\nout Y\n",
     0, 1694, NULL},
    {BEGIN "in X f32 [c:64, w:56]\nY[c:64, w:56] = X[c, (w+20)%56]\nout Y\n", 0, 0.386, NULL},
    // fused consumer: an element-wise stage in the tile of its producer
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin W f32 [o:64, c:64, k:3] const\n"
           "S[o:64, h:56, w:56] = (if 1 <= w+k && w+k < 57 then X[c, h, w+k-1] else 0) * "
           "W[o, c, k] // sum c:64, k:3\n"
           "Y[o:64, h:56, w:56] = max(S[o, h, w], X[o, (h-1)%56, (w-1)%56])\nout Y\n",
     0, 508.8, "o_v, w_i:vec =>\n        @Y"},
    // blocks of channels go through the whole image
    {BEGIN "in X f32 [h:9, w:9, c:960]\nin W f32 [kh:3, kw:3, c:960] const\n"
           "Y[h:7, w:7, c:960] = X[h+kh, w+kw, c] * W[kh, kw, c] // sum kh:3, kw:3\nout Y\n",
     0, 13.72, NULL},
    {DEPTHWISE("1", "28", "720"), 0, 533.3, NULL},
    {DEPTHWISE("4", "28", "240"), 0, 614.7, NULL},
    // windows with dilation, of one column, and pooling
    {BEGIN "in X f32 [n:1, h:32, w:28, c:240]\nin W f32 [kh:3, kw:3, c:240] const\n"
           "Y[n:1, h:28, w:24, c:240] = X[n, h+kh*2, w+kw*2, c] * W[kh, kw, c] // sum kh:3, "
           "kw:3\nout Y\n",
     0, 26.48, NULL},
    {BEGIN "in X f32 [n:1, h:58, w:56, c:240]\nin W f32 [kh:3, c:240] const\n"
           "Y[n:1, h:56, w:56, c:240] = X[n, h+kh, w, c] * W[kh, c] // sum kh:3\nout Y\n",
     0, 429.9, NULL},
    {BEGIN "in X f32 [n:1, h:58, w:58, c:144]\n"
           "Y[n:1, h:56, w:56, c:144] = X[n, h+kh, w+kw, c] // max kh:3, kw:3\nout Y\n",
     0, 295.3, NULL},
    // f64 in memory
    {BEGIN "in X f64 [n:2, h:224, w:224, c:12]\n"
           "Y f64 [n:2, h:111, w:111, c:12] = X[n, h*2+kh, w*2+kw, c] // max kh:3, kw:3\nout Y\n",
     1, 980.8, NULL},
    // strips: all channels go through a strip of the image that L1 keeps
    {DEPTHWISE("1", "56", "144"), 0, 353.8,
     "n, w_o:para, h, c_o, kh, kw:unroll, w_i:14:unroll, c_v:16:vec =>"},
    {DEPTHWISE("4", "56", "144"), 0, 1414, NULL},
    // the same for other sizes, batches and machines
    {DEPTHWISE("1", "28", "256"), 0, 51.69, NULL},
    {DEPTHWISE("64", "56", "144"), 0, 1.624e+04, NULL},
    {DEPTHWISE("1", "28", "240"), 1, 81.6, NULL},
    {BEGIN
     "in X f32 [h:28, w:28, c:240]\nin W f32 [kh:5, kw:5, c:240] const\n"
     "Y[h:14, w:14, c:240] = if 2 <= h*2+kh && h*2+kh < 30 && 2 <= w*2+kw && w*2+kw < 30 then "
     "X[h*2+kh-2, w*2+kw-2, c] * W[kh, kw, c] else 0 // sum kh:5, kw:5\nout Y\n",
     1, 55.83, NULL},
    // lines that map to the same set of L1
    {BEGIN "in X f32 [h:9, w:9, c:1024]\nin W f32 [kh:3, kw:3, c:1024] const\n"
           "Y[h:7, w:7, c:1024] = X[h+kh, w+kw, c] * W[kh, kw, c] // sum kh:3, kw:3\nout Y\n",
     0, 28.18, NULL},
    // a function that is the same along a row is computed once per row
    {BEGIN "in X f32 [c:64, l:100]\nin S f32 [c:64]\n"
           "Y[c:64, l:100] = X[c, l] / (1 + exp(-S[c]))\nout Y\n",
     0, 2.447, "Y_s[c:64] = 1 + exp(-S[c])\nY[c:64, l:100] = X[c, l] / Y_s[c]"},
    // no function that a condition guards is computed for the whole row
    {BEGIN "in X f32 [c:64, l:100]\nin S f32 [c:32]\n"
           "Y[c:64, l:100] = if c < 32 then X[c, l] * exp(S[c]) else 0\nout Y\n",
     0, 0.5165, "X[c, l] * exp(S[c])"},
    // means over images, of contiguous and of strided pixels
    {BEGIN "in X f32 [c:64, h:14, w:14]\nY[c:64] = X[c, h, w] // sum h:14, w:14\nout Y\n", 0,
     0.7568, NULL},
    {BEGIN "in X f32 [c:64, h:28, w:14]\nY[c:64] = X[c, h*2, w] // sum h:14, w:14\nout Y\n", 0,
     1.294, NULL},
    {BEGIN "in X f32 [c:64, h:7, w:7]\nY[c:64] = X[c, h, w] // sum h:7, w:7\nout Y\n", 0, 0.3007,
     NULL},
    // means of rows whose results other stages read
    {BEGIN "in X f32 [c:64, g:8, p:196]\nM[c:64] = X[c, g, p] // mean g:8, p:196\n"
           "Y[c:64, g:8, p:196] = X[c, 7-g, p] - M[c]\nout Y\n",
     0, 20.15, NULL},
    {BEGIN "in X f32 [c:64, g:8, p:56]\nM[c:64] = X[c, g, p] // mean g:8, p:56\n"
           "Y[c:64, g:8, p:56] = X[c, 7-g, p] - M[c]\nout Y\n",
     0, 4.158, NULL},
    {BEGIN "in X f32 [p:196, c:64]\nM[c:64] = X[p, c] // mean p:196\nout M\n", 0, 0.2977, NULL},
    {BEGIN "in X f32 [i:1048]\nY[i:1000] = X[i+k] // mean k:49\nout Y\n", 0, 0.9337, NULL},
    {BEGIN "in X f32 [c:64, i:1048]\nM[c:64, i:1000] = X[c, i+k] // mean k:49\n"
           "Y[c:64, i:1000] = X[c, 1047-i] - M[c, 999-i]\nout Y\n",
     0, 65.14, NULL},
    // pixels become one axis where no stages share their rows
    {BEGIN "in X f32 [n:1, c:64, h:57, w:57]\nin W f32 [o:96, c:64]\n"
           "Y[n:1, o:96, h:57, w:57] = X[n, c, h, w] * W[o, c] // sum c:64\nout Y\n",
     0, 310.1, NULL},
    {BEGIN "in X f32 [n:1, c:96, h:56, w:56]\nM[n:1, h:56, w:56] = X[n, c, h, w] // mean c:96\n"
           "Y[n:1, c:96, h:56, w:56] = X[n, c, h, w] - M[n, h, w]\nout Y\n",
     1, 366.8, NULL},
    {BEGIN "in X f32 [n:2, h:56, w:56]\nin S f32 [p:3136]\n"
           "Y[n:2, h:56, w:56] = X[n, h, w] * S[h*56+w]\nout Y\n",
     0, 0.3571, NULL},
    // a padded image in the layout of its consumer
    {BEGIN "in X f32 [h:30, w:32, c:64]\nin W f32 [o:16, c:8, k:3]\n"
           "P[h:30, w:34, c:64] = if 1 <= w && w < 33 then X[h, w-1, c] else 0\n"
           "Y[h:30, w:32, o:16] = P[h, w+k, o/2*8+c] * W[o, c, k] // sum k:3, c:8\nout Y\n",
     0, 43.33, NULL},
    // permuted lanes: channels of a pixel that repeat an input
    {BEGIN GROUPED, 1, 0.7173, "h, w_o, k:unroll, w_i:8:unroll, o:vec =>"},
    {BEGIN GROUPED, 0, 0.6853, NULL},
    // groups as wide as a vector
    {BEGIN "in X f32 [h:10, w:58, c:64]\nin W f32 [kh:3, kw:3, c:16, o:64] const\n"
           "Y[h:8, w:56, o:64] = X[h+kh, w+kw, o/16*16+c] * W[kh, kw, c, o]"
           " // sum kh:3, kw:3, c:16\nout Y\n",
     0, 45.83, NULL},
    // packing: weights become panels of the vector axis
    {BLOCKS_OUT, 0, 116.6, "W_p[o_o:36, c:96, o_i:16] ="},
    {BLOCKS_IN, 0, 54.59, NULL},
    {BLOCKS_IN, 1, 120.8, NULL},
    // a division by a value of the row becomes a product with its reciprocal
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] * X[n, c] // mean c:64\n"
           "Y[n:8, c:64] = X[n, c] / sqrt(V[n] + 0.00001)\nout Y\n",
     0, 0.08017, "Y_d[n:8] = 1 / sqrt(V[n] + 1e-05)\nY[n:8, c:64] = X[n, c] * Y_d[n]"},
    {BEGIN "in X f32 [n:8, c:64]\nS[n:8] = exp(X[n, c]) // sum c:64\n"
           "Y[n:8, c:64] = X[n, c] / max(sqrt(S[n]), 0.5)\nout Y\n",
     0, 0.2428, NULL},
    // no reciprocal where the divisor may be 0, negative or large
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] * X[n, c] // mean c:64\n"
           "Y[n:8, c:64] = X[n, c] / sqrt(V[n])\nout Y\n",
     0, 0.2347, "= X[n, c] / Y_s[n]"},
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] * X[(n+1)%8, c] // sum c:64\n"
           "Y[n:8, c:64] = X[n, c] / (sqrt(V[n]) + 1)\nout Y\n",
     0, 0.2582, "= X[n, c] / Y_s[n]"},
    {BEGIN "in X f32 [n:8, c:64]\nV[n:8] = X[n, c] // max c:64\n"
           "Y[n:8, c:64] = X[n, c] / max(V[n], 2)\nout Y\n",
     0, 0.2293, "/ max(V[n], 2)"},
    {BEGIN "in X f32 [n:8, c:64]\nY[n:8, c:64] = X[n, c] / sqrt(X[n, c] * X[n, c] + 1)\nout Y\n", 0,
     0.3913, NULL},
    // K-blocking: a long reduction runs in parts, whose operands stay in L2
    {BEGIN "in X f32 [k:100000, i:64]\nY[i:64, j:64] = X[k, i] * X[k, j] // sum k:100000\nout Y\n",
     1, 1.866e+04, "k_o, i_o:para, j_o, k_i:1000, i_i:6:peel:unroll, j_v:16:vec =>"},
    {BEGIN "in X f32 [k:8192, i:512]\nY[i:512, j:512] = X[k, i] * X[k, j] // sum k:8192\nout Y\n",
     1, 9.645e+04, NULL},
    {BEGIN
     "in A f32 [i:64, k:100000]\nin B f32 [j:64, k:100000]\nY[i:64, j:64] = A[i, k] * B[j, k] // "
     "sum k:100000\nout Y\n",
     1, 2.196e+04, NULL},
    // the same for many matrices, remainders and consumers
    {BEGIN LONG_PRODUCTS, 1, 6025, NULL},
    {BEGIN LONG_PRODUCTS, 0, 3142, NULL},
    {BEGIN
     "in A f32 [i:64, k:20011]\nin B f32 [k:20011, j:64]\nS[i:64, j:64] = A[i, k] * B[k, j] // "
     "sum k:20011\nY[i:64, j:64] = max(S[i, j] + 1, 0)\nout Y\n",
     1, 3684, NULL},
    {BEGIN
     "in A f32 [i:128, k:16384]\nin B f32 [k:16384, j:1024] const\nY[i:128, j:1024] = A[i, k] * "
     "B[k, j] // sum k:16384\nout Y\n",
     0, 4.877e+04, NULL},
    // no parts where storing them would round; few rows
    {BEGIN
     "in X f32 [k:100000, i:64]\nY bf16 [i:64, j:64] = X[k, i] * X[k, j] // sum k:100000\nout Y\n",
     1, 6.971e+04, "k:pf(256), j_i:14:peel:unroll, i_v:8:vec =>"},
    {BEGIN "in A f32 [i:4, k:50000]\nin B f32 [k:50000, j:64]\nY[i:4, j:64] = A[i, k] * B[k, j] // "
           "sum k:50000\nout Y\n",
     1, 1960, NULL},
    // stages in the layout that the program tells
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin V f32 [o:64, c:64, k:3] const\n"
           "in W f32 [o:64, c:64, k:3] const\n"
           "S[o:64, h:56, w:56] = (if 1 <= h+k && h+k < 57 then X[c, h+k-1, w] else 0) * V[o, c, k]"
           " // sum c:64, k:3\n"
           "Y[o:64, h:56, w:56] = (if 1 <= w+k && w+k < 57 then S[c, h, w+k-1] else 0) * W[o, c, k]"
           " // sum c:64, k:3\nout Y\n",
     0, 1075, NULL},
    // functions of values that are not contiguous
    {BEGIN "in X f32 [k:64, w:3]\nin W f32 [c:128, k:64] const\nS[c:128, w:3] = X[k, w] * W[c, k]"
           " // sum k:64\nY[c:128, w:3] = exp(S[c, w])\nout Y\n",
     0, 0.5895, NULL},
    {BEGIN "in X f32 [k:64, w:7]\nin W f32 [c:128, k:64] const\nS[c:128, w:7] = X[k, w] * W[c, k]"
           " // sum k:64\nY[c:128, w:7] = exp(S[c, w] + X[c%64, (w+1)%7])\nout Y\n",
     0, 4.454, NULL},
    {BEGIN "in X f32 [k:64, w:7]\nin W f32 [c:128, k:64] const\nS[c:128, w:7] = X[k, w] * W[c, k]"
           " // sum k:64\nY[c:128, w:7] = exp(S[c, w])\nout Y\n",
     0, 1.362, NULL},
    {BEGIN "in X f32 [c:64, h:56, w:56]\nin W f32 [o:32, c:64, kh:3, kw:3] const\n"
           "in V f32 [o:64, c:32] const\n"
           "S[o:32, h:56, w:56] = (if 1 <= h+kh && h+kh < 57 && 1 <= w+kw && w+kw < 57 then "
           "X[c, h+kh-1, w+kw-1] else 0) * W[o, c, kh, kw] // sum c:64, kh:3, kw:3\n"
           "E[o:32, h:56, w:56] = 1 / (1 + exp(-S[o, h, w]))\n"
           "Y[o:64, h:56, w:56] = E[c, h, w] * V[o, c] // sum c:32\nout Y\n",
     2, 1.227e+04, NULL},
    {BEGIN "in X f32 [n:1, c:64, h:56, w:56]\nin W f32 [t:64, c:64] const\nin V f32 [c:64] const\n"
           "S[n:1, c:64, h:56, w:56] = X[n, k, h, w] * W[c, k] // sum k:64\n"
           "Y[n:1, c:64, h:56, w:56] = min(X[n, c, (h+1)%56, (w+1)%56] * V[c], "
           "1 / (1 + exp(-max(S[n, c, h, w], 0))))\nout Y\n",
     2, 2619, NULL},
};

static inline struct program *default_program_of(canvas_context *ctx, const char *text) {
  struct program *p;
  if (strncmp(text, BEGIN, strlen(BEGIN)) != 0)
    CHECK_INT(operator_called(ctx, text, &p), CANVAS_OK, ctx->message);
  else
    CHECK_INT(program_parse(ctx, text, strlen(text), &p), CANVAS_OK, ctx->message);
  return p;
}

#endif
