// A small call of each operator of the library, with every argument that it takes.
#ifndef CANVAS_TESTS_OPERATOR_CALLS_H
#define CANVAS_TESTS_OPERATOR_CALLS_H

#include <stdio.h>
#include <string.h>

#include "operator/operator.h"

static const char *const operator_calls[] = {
    "zero_pad1d batch=2 channels=3 length=4 padding=1x2",
    "zero_pad2d batch=2 channels=3 height=4 width=5 padding=1x2x3x4",
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
    "im2col_nchw batch=2 in_channels=4 height=5 width=6 kernel=3 padding=1 groups=2",
    "im2col_nhwc batch=2 height=5 width=6 in_channels=4 kernel=3 padding=1",
    "gemm_conv2d_nchw batch=2 in_channels=4 height=5 width=6 out_channels=2 kernel=3 groups=2 "
    "bias=1",
    "gemm_conv2d_nhwc batch=2 height=5 width=6 in_channels=4 out_channels=2 kernel=3 bias=1",
    "gemv m=3 k=4 transpose_a=1",
    "gemm m=3 k=4 n=5 transpose_a=1 transpose_b=1",
    "batch_gemm batch=2 m=3 k=4 n=5 transpose_b=1",
    "linear batch=2 in_features=3 out_features=4 bias=1",
    "bsr_gemm m=3 k=8 n=12 blocks=5 block_rows=3 block_columns=2 bias=1",
    "bsr_conv2d_nhwc batch=2 height=5 width=6 in_channels=4 out_channels=8 kernel=3 blocks=7 "
    "block_rows=4 block_columns=2 bias=1 stride=2 padding=1",
    "mean shape=2x3x4 dim=0,-1",
    "softmax shape=2x3x4 dim=1",
    "max_pool1d batch=2 channels=3 length=9 kernel=3 stride=2 padding=1 dilation=2 ceil_mode=1",
    "max_pool2d_nchw channels=3 height=7 width=8 kernel=3 stride=2 padding=1 ceil_mode=1",
    "max_pool2d_nhwc height=7 width=8 channels=3 kernel=3x2 stride=2 padding=1 dilation=1x2",
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
