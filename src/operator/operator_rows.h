/* The operator table: one row per operator, its builder in operator_FAMILY.c.
 *
 * A row without a builder does not link. `spatial` is the number of axes that windows run along.
 */
#ifndef CANVAS_OPERATOR_OPERATOR_ROWS_H
#define CANVAS_OPERATOR_OPERATOR_ROWS_H

#include "operator/operator.h"

#define CONV      "bias=0 stride=1 padding=0 dilation=1 groups=1"
#define TRANSPOSE "bias=0 stride=1 padding=0 output_padding=0 groups=1 dilation=1"
#define MAX_POOL  "kernel stride=kernel padding=0 dilation=1 ceil_mode=0"
#define TYPE      " dtype=f32"
#define AVG_POOL  "kernel stride=kernel padding=0 ceil_mode=0 count_include_pad=1"

/* clang-format off */
/*    name                     spatial arguments
 *                                     meaning */
#define OPERATORS(X) \
  X(zero_pad1d,                1, "batch=1 channels length padding=0" TYPE, \
    "X [batch, channels, length] with zeros before and after") \
  X(zero_pad2d,                2, "batch=1 channels height width padding=0" TYPE, \
    "X [batch, channels, height, width] with zeros around") \
  X(zero_pad2d_nchwc,          2, "batch=1 channels height width in_block=16 padding=0" TYPE, \
    "X [batch, channels/in_block, height, width, in_block] with zeros around") \
  X(zero_pad3d,                3, "batch=1 channels depth height width padding=0" TYPE, \
    "X [batch, channels, depth, height, width] with zeros around") \
  X(zero_expand1d,             1, "batch=1 channels length stride=1" TYPE, \
    "X [batch, channels, length] with stride-1 zeros between two elements") \
  X(zero_expand2d,             2, "batch=1 channels height width stride=1" TYPE, \
    "X [batch, channels, height, width] with stride-1 zeros between two elements of an axis") \
  X(zero_expand3d,             3, "batch=1 channels depth height width stride=1" TYPE, \
    "X [batch, channels, depth, height, width] with stride-1 zeros between two elements of an axis") \
  X(conv1d,                    1, "batch=1 in_channels length out_channels kernel " CONV TYPE, \
    "convolution of X [batch, in_channels, length] with W [out_channels, in_channels/groups, kernel]") \
  X(conv_transpose1d,          1, "batch=1 in_channels length out_channels kernel " TRANSPOSE TYPE, \
    "transposed convolution with W [in_channels, out_channels/groups, kernel]") \
  X(conv2d_nchw,               2, "batch=1 in_channels height width out_channels kernel " CONV TYPE, \
    "convolution of X [batch, in_channels, height, width] with W [out_channels, in_channels/groups, kernel]") \
  X(conv2d_nchwc,              2, "batch=1 in_channels height width in_block=16 out_channels out_block=16 kernel " CONV TYPE, \
    "the same in blocks of channels: X [batch, in_channels/in_block, height, width, in_block], " \
    "W [out_channels/out_block, in_channels/groups/in_block, kernel, in_block, out_block]") \
  X(conv_transpose2d_nchw,     2, "batch=1 in_channels height width out_channels kernel " TRANSPOSE TYPE, \
    "transposed convolution with W [in_channels, out_channels/groups, kernel]") \
  X(depthwise_conv2d_nchw,     2, "batch=1 in_channels height width factor=1 kernel bias=0 stride=1 padding=0 dilation=1" TYPE, \
    "every channel convolved by itself, with W [in_channels, factor, kernel]") \
  X(conv2d_nhwc,               2, "batch=1 height width in_channels out_channels kernel " CONV " weights=oihw" TYPE, \
    "convolution of X [batch, height, width, in_channels] with W [out_channels, in_channels/groups, kernel], or [kernel, in_channels/groups, out_channels]") \
  X(conv3d_ncdhw,              3, "batch=1 in_channels depth height width out_channels kernel " CONV TYPE, \
    "convolution of X [batch, in_channels, depth, height, width] with W [out_channels, in_channels/groups, kernel]") \
  X(conv_transpose3d_ncdhw,    3, "batch=1 in_channels depth height width out_channels kernel " TRANSPOSE TYPE, \
    "transposed convolution with W [in_channels, out_channels/groups, kernel]") \
  X(pixelcnn,                  2, "batch=1 height width in_channels out_channels kernel mask_type bias=0 stride=1 padding=0 dilation=1" TYPE, \
    "conv2d_nhwc with W [out_channels, in_channels, kernel] that sees only what stands before a pixel in reading order (A), or that and the pixel (B)") \
  X(gatedpixelcnn,             2, "batch=1 height width channels kernel class_vector=0 dilation=1" TYPE, \
    "a layer of the gated PixelCNN: WV [2*channels, channels, kernel], WVH [2*channels, 2*channels], " \
    "WH [2*channels, channels, kernel's width], WO [channels, channels], class [batch, 2*channels]; results Y and gate_v") \
  X(shiftconv2d_nhwc,          2, "batch=1 height width channels kernel dilation=1 stride=1" TYPE, \
    "X [batch, height, width, channels] with channel c moved by element place[c] of the window") \
  X(shiftconv2d_nhwc_argmax,   2, "batch=1 height width channels kernel dilation=1 stride=1" TYPE, \
    "the same by the element that is the largest of W [channels, kernel]") \
  X(im2col_nchw,               2, "batch=1 in_channels height width kernel stride=1 padding=0 dilation=1 groups=1" TYPE, \
    "the windows of X as columns: [groups, in_channels/groups * kernel, batch * windows]") \
  X(im2col_nhwc,               2, "batch=1 height width in_channels kernel stride=1 padding=0 dilation=1" TYPE, \
    "the windows of X as rows: [batch * windows, kernel * in_channels]") \
  X(col2img_nchw,              0, "batch=1 channels height width groups=1" TYPE, \
    "X [groups, channels/groups, batch * height * width] as [batch, channels, height, width]") \
  X(gemm_conv2d_nchw,          2, "batch=1 in_channels height width out_channels kernel " CONV TYPE, \
    "conv2d_nchw as im2col_nchw and a matrix product") \
  X(gemm_conv2d_nhwc,          2, "batch=1 height width in_channels out_channels kernel bias=0 stride=1 padding=0 dilation=1" TYPE, \
    "im2col_nhwc times W [out_channels, kernel * in_channels]: Y [batch * windows, out_channels]") \
  X(gemv,                      0, "m k transpose_a=0" TYPE, \
    "A [m, k] times X [k]") \
  X(gemm,                      0, "m k n transpose_a=0 transpose_b=0" TYPE, \
    "A [m, k] times B [k, n]; transposed they are given as [k, m] and [n, k]") \
  X(batch_gemm,                0, "batch m k n transpose_a=0 transpose_b=0" TYPE, \
    "A [batch, m, k] times B [batch, k, n]; transposed [batch, k, m] and [batch, n, k]") \
  X(linear,                    0, "batch=1 in_features out_features bias=0" TYPE, \
    "X [batch, in_features] times W [out_features, in_features], transposed") \
  X(bilinear,                  0, "batch=1 in1_features in2_features out_features bias=0" TYPE, \
    "X1 [batch, in1_features] and X2 [batch, in2_features] times W [out_features, in1_features, in2_features]") \
  X(mttkrp3d,                  0, "m k l n" TYPE, \
    "A [m, k, l] times B [k, n] and C [l, n], summed over k and l: Y [m, n]") \
  X(lstmcell,                  0, "batch=1 input_size hidden_size bias=0" TYPE, \
    "a step of an LSTM: X [batch, input_size], state H and C [batch, hidden_size], W [4*hidden_size, input_size] and " \
    "WH [4*hidden_size, hidden_size], rows i f g o, biases B and BH. Results: Y, the next H, and cell, the next C") \
  X(block_circulant_linear,    0, "batch=1 in_features out_features block bias=0" TYPE, \
    "linear with a block-circulant weight: W [out_features/block, in_features/block, block] is the first row of each block") \
  X(block_circulant_matrix,    0, "rows columns block" TYPE, \
    "the block-circulant matrix nearest to X [rows, columns]: means along the diagonals of the blocks") \
  X(bsr_gemm,                  0, "m k n blocks block_rows=16 block_columns=1 bias=0" TYPE, \
    "X [m, k] times a block-sparse W [n, k], transposed: W [blocks, block_rows, block_columns], " \
    "each block's column ind [blocks], where the blocks of a row begin ptr [n/block_rows + 1]") \
  X(bsr_conv2d_nhwc,           2, "batch=1 height width in_channels out_channels kernel blocks block_rows=16 block_columns=1 " \
                                  "bias=0 stride=1 padding=0 dilation=1" TYPE, \
    "gemm_conv2d_nhwc with a block-sparse W [out_channels, kernel * in_channels]: W, ind, ptr as of bsr_gemm") \
  X(mean,                      0, "shape dim=0" TYPE, \
    "the mean of X along some axes, which go") \
  X(variance,                  0, "shape dim=0" TYPE, \
    "the sum of (X - mean)^2 along some axes, which go, by one less than their elements") \
  X(batch_normalization2d,     0, "batch channels epsilon=1e-5" TYPE, \
    "X [batch, channels] less the mean, by the root of variance and epsilon, of each channel") \
  X(pointwise_multiply,        0, "shape" TYPE, \
    "A times B, element by element") \
  X(softmax,                   0, "shape dim=-1" TYPE, \
    "exp(X - largest) / total along some axes") \
  X(max_pool1d,                1, "batch=1 channels length " MAX_POOL TYPE, \
    "the maximum of each window of X [batch, channels, length]") \
  X(max_pool2d_nchw,           2, "batch=1 channels height width " MAX_POOL TYPE, \
    "the maximum of each window of X [batch, channels, height, width]") \
  X(max_pool2d_nhwc,           2, "batch=1 height width channels " MAX_POOL TYPE, \
    "the maximum of each window of X [batch, height, width, channels]") \
  X(maxunpooling1d,            1, "batch=1 channels length kernel stride=kernel padding=0" TYPE, \
    "maxima X [batch, channels, length] put back to indices, which are as max_pool1d of torch gives them") \
  X(maxunpooling2d,            2, "batch=1 channels height width kernel stride=kernel padding=0" TYPE, \
    "maxima X [batch, channels, height, width] put back to indices, which are as max_pool2d of torch gives them") \
  X(avg_pool1d,                1, "batch=1 channels length " AVG_POOL TYPE, \
    "the mean of each window of X [batch, channels, length]") \
  X(avg_pool2d_nchw,           2, "batch=1 channels height width " AVG_POOL TYPE, \
    "the mean of each window of X [batch, channels, height, width]") \
  X(avg_pool2d_nhwc,           2, "batch=1 height width channels " AVG_POOL TYPE, \
    "the mean of each window of X [batch, height, width, channels]")
/* clang-format on */

#define X(name, ...) canvas_status build_##name(struct build *b);
OPERATORS(X)
#undef X

#endif
