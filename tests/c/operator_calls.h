// A small call of each operator of the library, with every argument that it takes.
#ifndef CANVAS_TESTS_OPERATOR_CALLS_H
#define CANVAS_TESTS_OPERATOR_CALLS_H

#include <stdio.h>
#include <string.h>

#include "operator/operator.h"

static const char *const operator_calls[] = {
    "zero_pad1d batch=2 channels=3 length=4 padding=1x2",
    "zero_pad2d batch=2 channels=3 height=4 width=5 padding=1x2x3x4",
    "zero_pad2d_nchwc batch=2 channels=6 height=4 width=5 in_block=3 padding=1x2x3x4",
    "zero_pad3d batch=2 channels=3 depth=2 height=4 width=5 padding=1x2x3x4x0x1",
    "zero_expand1d batch=2 channels=3 length=7 stride=3",
    "zero_expand2d batch=2 channels=3 height=4 width=5 stride=2x3",
    "zero_expand3d channels=2 depth=2 height=3 width=4 stride=1x2x3",
    "conv1d batch=2 in_channels=4 length=9 out_channels=6 kernel=3 bias=1 stride=2 padding=1 "
    "dilation=2 groups=2 dtype=f64",
    "conv_transpose1d batch=2 in_channels=4 length=9 out_channels=6 kernel=3 bias=1 stride=2 "
    "padding=1 output_padding=1 groups=2 dilation=2",
    "conv2d_nchw batch=2 in_channels=4 height=7 width=8 out_channels=6 kernel=3x2 bias=1 "
    "stride=2x1 padding=1x0 dilation=1x2 groups=2",
    "conv2d_nchwc batch=2 in_channels=8 height=7 width=8 in_block=2 out_channels=12 out_block=3 "
    "kernel=3 bias=1 stride=2 padding=1 groups=2",
    "conv_transpose2d_nchw batch=2 in_channels=4 height=5 width=6 out_channels=6 kernel=3 bias=1 "
    "stride=2x3 padding=1 output_padding=1x2 groups=2",
    "depthwise_conv2d_nchw batch=2 in_channels=3 height=7 width=8 factor=2 kernel=3 bias=1 "
    "stride=2 "
    "padding=1",
    "conv2d_nhwc batch=2 height=7 width=8 in_channels=4 out_channels=6 kernel=3 bias=1 padding=1 "
    "groups=2 weights=hwio dtype=bf16",
    "conv3d_ncdhw batch=2 in_channels=4 depth=3 height=5 width=6 out_channels=6 kernel=2x3x3 "
    "bias=1 "
    "stride=1x2x1 padding=1 dilation=1x1x2 groups=2",
    "conv_transpose3d_ncdhw in_channels=4 depth=2 height=3 width=4 out_channels=6 kernel=3 bias=1 "
    "stride=2 padding=1 output_padding=1x0x1 groups=2",
    "pixelcnn batch=2 height=5 width=6 in_channels=3 out_channels=4 kernel=3 mask_type=A bias=1 "
    "padding=1",
    "gatedpixelcnn batch=2 height=4 width=5 channels=3 kernel=3 class_vector=1",
    "shiftconv2d_nhwc batch=2 height=4 width=5 channels=17 kernel=3 stride=2",
    "shiftconv2d_nhwc_argmax batch=2 height=4 width=5 channels=6 kernel=3",
    "im2col_nchw batch=2 in_channels=4 height=5 width=6 kernel=3 padding=1 groups=2",
    "im2col_nhwc batch=2 height=5 width=6 in_channels=4 kernel=3 padding=1",
    "col2img_nchw batch=2 channels=6 height=3 width=5 groups=2",
    "gemm_conv2d_nchw batch=2 in_channels=4 height=5 width=6 out_channels=2 kernel=3 groups=2 "
    "bias=1",
    "gemm_conv2d_nhwc batch=2 height=5 width=6 in_channels=4 out_channels=2 kernel=3 bias=1",
    "gemv m=3 k=4 transpose_a=1",
    "gemm m=3 k=4 n=5 transpose_a=1 transpose_b=1",
    "batch_gemm batch=2 m=3 k=4 n=5 transpose_b=1",
    "linear batch=2 in_features=3 out_features=4 bias=1",
    "bilinear batch=3 in1_features=4 in2_features=5 out_features=6 bias=1",
    "mttkrp3d m=3 k=4 l=5 n=6",
    "lstmcell batch=3 input_size=5 hidden_size=6 bias=1",
    "block_circulant_linear batch=2 in_features=8 out_features=12 block=4 bias=1",
    "block_circulant_matrix rows=9 columns=14 block=4",
    "bsr_gemm m=3 k=8 n=12 blocks=5 block_rows=3 block_columns=2 bias=1",
    "bsr_conv2d_nhwc batch=2 height=5 width=6 in_channels=4 out_channels=8 kernel=3 blocks=7 "
    "block_rows=4 block_columns=2 bias=1 stride=2 padding=1",
    "mean shape=2x3x4 dim=0,-1",
    "variance shape=2x3x4 dim=0,-1",
    "batch_normalization2d batch=9 channels=5",
    "pointwise_multiply shape=3x4x5",
    "softmax shape=2x3x4 dim=1",
    "max_pool1d batch=2 channels=3 length=9 kernel=3 stride=2 padding=1 dilation=2 ceil_mode=1",
    "max_pool2d_nchw channels=3 height=7 width=8 kernel=3 stride=2 padding=1 ceil_mode=1",
    "max_pool2d_nhwc height=7 width=8 channels=3 kernel=3x2 stride=2 padding=1 dilation=1x2",
    "maxunpooling1d batch=2 channels=3 length=7 kernel=3 stride=2 padding=1",
    "maxunpooling2d batch=2 channels=3 height=4 width=5 kernel=2",
    "avg_pool1d batch=2 channels=3 length=9 kernel=3 stride=2 padding=1 ceil_mode=1",
    "avg_pool2d_nchw channels=3 height=7 width=8 kernel=3 stride=2 padding=1 count_include_pad=0",
    "avg_pool2d_nhwc height=7 width=8 channels=3 kernel=3 stride=2 padding=1 ceil_mode=1",
};
enum { OPERATOR_CALLS = sizeof operator_calls / sizeof *operator_calls };

// The program of "NAME ARGUMENT=VALUE ...".
static inline canvas_status operator_called(canvas_context *ctx, const char *text,
                                            struct program **out) {
  char name[64];
  int length = (int)strcspn(text, " ");
  snprintf(name, sizeof name, "%.*s", length, text);
  return operator_program(ctx, name, text + length, strlen(text + length), out);
}

#endif
