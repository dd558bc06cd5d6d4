"""The operator library against torch: each row of the table is one program, evaluated whole by the
interpreter on random inputs and compared with torch's own operator in float64.

A row is what a user would write after `canvas operator`.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from operator_references import (  # noqa: E402
    TORCH,
    Tensors,
    Values,
    bsr_columns,
    numbers,
    unpool_options,
)
from torch.nn import functional as F  # noqa: E402

import canvas  # noqa: E402
from canvas import _core  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parents[2]
CANVAS = Path(sys.executable).parent / "canvas"

ROWS = """
zero_pad1d channels=3 length=5 padding=2
zero_pad1d batch=2 channels=1 length=1 padding=0x3
zero_pad1d channels=2 length=7 padding=0
zero_pad1d channels=2 length=4 padding=4x1
zero_pad1d channels=1 length=11 padding=1
zero_pad2d channels=3 height=5 width=4 padding=1
zero_pad2d batch=2 channels=1 height=1 width=1 padding=2x0
zero_pad2d channels=2 height=3 width=7 padding=1x2x3x0
zero_pad2d channels=2 height=3 width=2 padding=0
zero_pad2d channels=1 height=2 width=13 padding=0x5

conv1d in_channels=3 length=11 out_channels=4 kernel=3
conv1d batch=2 in_channels=4 length=13 out_channels=6 kernel=5 stride=2 padding=2 bias=1 groups=2
conv1d in_channels=2 length=1 out_channels=3 kernel=1
conv1d in_channels=2 length=17 out_channels=2 kernel=2 stride=5 padding=1
conv1d in_channels=5 length=19 out_channels=5 kernel=3 dilation=4 padding=3 groups=5 bias=1
conv1d in_channels=1 length=4 out_channels=2 kernel=4 padding=0x2

conv2d_nchw in_channels=3 height=7 width=5 out_channels=4 kernel=3 padding=1
conv2d_nchw batch=2 in_channels=4 height=1 width=1 out_channels=6 kernel=1 bias=1
conv2d_nchw in_channels=2 height=11 width=13 out_channels=3 kernel=2x3 stride=4x5 padding=1x0
conv2d_nchw in_channels=6 height=9 width=8 out_channels=4 kernel=3x1 dilation=2x1 groups=2 bias=1
conv2d_nchw in_channels=5 height=6 width=7 out_channels=10 kernel=3 groups=5 padding=1 stride=2
conv2d_nchw in_channels=1 height=1 width=9 out_channels=1 kernel=1x7 padding=0x3
conv2d_nchw in_channels=2 height=5 width=5 out_channels=2 kernel=3 padding=0x1x2x0

conv2d_nhwc height=7 width=5 in_channels=3 out_channels=4 kernel=3 padding=1
conv2d_nhwc batch=2 height=1 width=1 in_channels=4 out_channels=6 kernel=1 bias=1
conv2d_nhwc height=11 width=13 in_channels=2 out_channels=3 kernel=2x3 stride=4x5 padding=1x0
conv2d_nhwc height=9 width=8 in_channels=6 out_channels=4 kernel=3x1 dilation=2 groups=2 bias=1
conv2d_nhwc height=9 width=8 in_channels=6 out_channels=4 kernel=3 groups=2 padding=1 weights=hwio
conv2d_nhwc height=5 width=3 in_channels=7 out_channels=7 kernel=3 groups=7 padding=1 weights=hwio

conv2d_nchwc in_channels=8 height=5 width=6 in_block=4 out_channels=6 out_block=3 kernel=3 \
 padding=1
conv2d_nchwc batch=2 in_channels=3 height=1 width=1 in_block=3 out_channels=2 out_block=1 kernel=1
conv2d_nchwc in_channels=8 height=9 width=7 in_block=2 out_channels=12 out_block=3 kernel=3x2 \
 stride=2x1 groups=2 bias=1
conv2d_nchwc in_channels=5 height=7 width=7 in_block=1 out_channels=5 out_block=1 kernel=3 groups=5
conv2d_nchwc in_channels=16 height=3 width=11 out_channels=32 kernel=1x3 dilation=1x3 padding=0x2 \
 bias=1

depthwise_conv2d_nchw in_channels=3 height=7 width=5 kernel=3 padding=1
depthwise_conv2d_nchw in_channels=3 height=7 width=5 factor=2 kernel=3 bias=1 stride=2
depthwise_conv2d_nchw batch=2 in_channels=1 height=1 width=1 kernel=1 bias=1
depthwise_conv2d_nchw in_channels=4 height=11 width=8 factor=3 kernel=5x3 dilation=2x1 padding=3x1
depthwise_conv2d_nchw in_channels=2 height=7 width=7 kernel=2 stride=5

conv_transpose1d in_channels=3 length=5 out_channels=4 kernel=3
conv_transpose1d batch=2 in_channels=4 length=7 out_channels=6 kernel=4 stride=2 padding=1 bias=1 \
 groups=2
conv_transpose1d in_channels=1 length=1 out_channels=1 kernel=1
conv_transpose1d in_channels=3 length=4 out_channels=3 kernel=3 stride=5 dilation=2 groups=3 \
 output_padding=4
conv_transpose1d in_channels=2 length=11 out_channels=2 kernel=2 padding=3 stride=3 bias=1
conv_transpose1d in_channels=2 length=6 out_channels=3 kernel=3 padding=2x0 stride=2

conv_transpose2d_nchw in_channels=3 height=4 width=5 out_channels=2 kernel=3
conv_transpose2d_nchw batch=2 in_channels=4 height=4 width=4 out_channels=6 kernel=4 stride=2 \
 padding=1 groups=2 bias=1
conv_transpose2d_nchw in_channels=2 height=1 width=1 out_channels=3 kernel=2x1
conv_transpose2d_nchw in_channels=3 height=3 width=5 out_channels=3 kernel=3x2 stride=3x1 \
 dilation=1x2 output_padding=2x1 groups=3
conv_transpose2d_nchw in_channels=1 height=5 width=3 out_channels=1 kernel=2 padding=2x1 \
 stride=3x4 bias=1
conv_transpose2d_nchw in_channels=2 height=3 width=3 out_channels=2 kernel=3 padding=1x0x0x2 \
 output_padding=1 stride=2

im2col_nchw in_channels=3 height=5 width=7 kernel=3 padding=1
im2col_nchw batch=2 in_channels=4 height=6 width=5 kernel=3x2 stride=2x3 groups=2 padding=1x0
im2col_nchw in_channels=1 height=1 width=1 kernel=1
im2col_nchw in_channels=5 height=7 width=9 kernel=2 dilation=3x2 groups=5
im2col_nchw batch=3 in_channels=2 height=4 width=3 kernel=4x1 stride=5

im2col_nhwc height=5 width=7 in_channels=3 kernel=3 padding=1
im2col_nhwc batch=2 height=6 width=5 in_channels=4 kernel=3x2 stride=2x3 padding=1x0
im2col_nhwc height=1 width=1 in_channels=1 kernel=1
im2col_nhwc height=7 width=9 in_channels=5 kernel=2 dilation=3x2
im2col_nhwc batch=3 height=4 width=3 in_channels=2 kernel=4x1 stride=5

gemm_conv2d_nchw in_channels=3 height=5 width=7 out_channels=4 kernel=3 padding=1
gemm_conv2d_nchw batch=2 in_channels=4 height=6 width=5 out_channels=6 kernel=3x2 stride=2x3 \
 groups=2 bias=1
gemm_conv2d_nchw in_channels=1 height=1 width=1 out_channels=2 kernel=1 bias=1
gemm_conv2d_nchw in_channels=5 height=7 width=9 out_channels=5 kernel=2 dilation=3x2 groups=5
gemm_conv2d_nchw batch=3 in_channels=2 height=4 width=3 out_channels=1 kernel=4x1 stride=5

gemm_conv2d_nhwc height=5 width=7 in_channels=3 out_channels=4 kernel=3 padding=1
gemm_conv2d_nhwc batch=2 height=6 width=5 in_channels=4 out_channels=6 kernel=3x2 stride=2x3 bias=1
gemm_conv2d_nhwc height=1 width=1 in_channels=1 out_channels=2 kernel=1 bias=1
gemm_conv2d_nhwc height=7 width=9 in_channels=5 out_channels=5 kernel=2 dilation=3x2
gemm_conv2d_nhwc batch=3 height=4 width=3 in_channels=2 out_channels=1 kernel=4x1 stride=5

gemv m=5 k=7
gemv m=1 k=1
gemv m=13 k=3 transpose_a=1
gemv m=1 k=31
gemv m=17 k=1 transpose_a=1
gemm m=5 k=7 n=3
gemm m=1 k=1 n=1
gemm m=13 k=3 n=11 transpose_a=1
gemm m=4 k=5 n=6 transpose_b=1
gemm m=7 k=2 n=1 transpose_a=1 transpose_b=1
batch_gemm batch=2 m=5 k=7 n=3
batch_gemm batch=1 m=1 k=1 n=1
batch_gemm batch=3 m=13 k=3 n=2 transpose_a=1
batch_gemm batch=2 m=4 k=5 n=6 transpose_b=1
batch_gemm batch=5 m=7 k=2 n=1 transpose_a=1 transpose_b=1
linear in_features=7 out_features=3
linear batch=5 in_features=7 out_features=3 bias=1
linear in_features=1 out_features=1 bias=1
linear batch=13 in_features=11 out_features=1
linear batch=2 in_features=1 out_features=17 bias=1

bsr_gemm m=5 k=7 n=32 blocks=9
bsr_gemm m=1 k=1 n=1 blocks=1 block_rows=1
bsr_gemm m=7 k=12 n=15 blocks=4 block_rows=3 block_columns=4 bias=1
bsr_gemm m=3 k=5 n=8 blocks=40 block_rows=1 bias=1
bsr_gemm m=2 k=35 n=22 blocks=1 block_rows=11 block_columns=7
bsr_conv2d_nhwc height=5 width=4 in_channels=3 out_channels=32 kernel=3 padding=1 blocks=23
bsr_conv2d_nhwc batch=2 height=6 width=5 in_channels=4 out_channels=6 kernel=3x2 stride=2x3 \
 blocks=7 block_rows=3 block_columns=4 bias=1
bsr_conv2d_nhwc height=1 width=1 in_channels=1 out_channels=2 kernel=1 blocks=1 block_rows=2 bias=1
bsr_conv2d_nhwc height=7 width=9 in_channels=5 out_channels=5 kernel=2 dilation=3x2 blocks=60 \
 block_rows=1
bsr_conv2d_nhwc batch=2 height=9 width=10 in_channels=4 out_channels=32 kernel=3 padding=1 \
 blocks=18
bsr_conv2d_nhwc height=12 width=19 in_channels=3 out_channels=8 kernel=2x3 stride=1x2 \
 dilation=3x2 blocks=4 block_rows=2 bias=1
bsr_conv2d_nhwc height=1 width=8 in_channels=5 out_channels=16 kernel=1 blocks=1
bsr_conv2d_nhwc height=4 width=3 in_channels=2 out_channels=8 kernel=4x1 stride=5 blocks=1 \
 block_rows=4 block_columns=8

mean shape=5
mean shape=3x4x5 dim=1
mean shape=2x3x5x7 dim=2,3
mean shape=1x1 dim=-1
mean shape=2x3x2x3x2 dim=0,-1,2
softmax shape=5
softmax shape=3x7
softmax shape=2x3x5 dim=1
softmax shape=1x1 dim=0
softmax shape=2x3x5 dim=0,2
softmax shape=4x1x6x3 dim=-2

max_pool1d channels=2 length=9 kernel=3
max_pool1d channels=1 length=10 kernel=4 stride=3 padding=2 ceil_mode=1
max_pool1d batch=2 channels=3 length=1 kernel=1
max_pool1d channels=1 length=17 kernel=3 dilation=4 stride=2 padding=1
max_pool1d channels=2 length=7 kernel=2 stride=5 ceil_mode=1
max_pool2d_nchw channels=2 height=8 width=7 kernel=3 stride=2 padding=1
max_pool2d_nchw channels=1 height=7 width=9 kernel=2x3 ceil_mode=1
max_pool2d_nchw batch=2 channels=3 height=1 width=1 kernel=1 stride=3
max_pool2d_nchw channels=1 height=11 width=13 kernel=2 dilation=3x2 stride=1x4 padding=1x0
max_pool2d_nchw channels=2 height=5 width=6 kernel=3 stride=4 padding=1 ceil_mode=1
max_pool2d_nhwc height=8 width=7 channels=2 kernel=3 stride=2 padding=1
max_pool2d_nhwc height=7 width=9 channels=1 kernel=2x3 ceil_mode=1
max_pool2d_nhwc batch=2 height=1 width=1 channels=3 kernel=1
max_pool2d_nhwc height=11 width=13 channels=1 kernel=2 dilation=3x2 stride=1x4 padding=1x0
max_pool2d_nhwc height=5 width=6 channels=2 kernel=3 stride=4 padding=1 ceil_mode=1
avg_pool1d channels=2 length=9 kernel=3
avg_pool1d channels=1 length=10 kernel=4 stride=3 padding=2 ceil_mode=1
avg_pool1d channels=1 length=10 kernel=4 stride=3 padding=2 ceil_mode=1 count_include_pad=0
avg_pool1d batch=2 channels=3 length=1 kernel=1
avg_pool1d channels=1 length=17 kernel=3 stride=2 padding=1 count_include_pad=0
avg_pool1d channels=2 length=7 kernel=2 stride=5 ceil_mode=1
avg_pool2d_nchw channels=2 height=8 width=7 kernel=3 stride=2 padding=1
avg_pool2d_nchw channels=2 height=8 width=7 kernel=3 stride=2 padding=1 count_include_pad=0
avg_pool2d_nchw channels=1 height=7 width=9 kernel=2x3 ceil_mode=1
avg_pool2d_nchw batch=2 channels=3 height=1 width=1 kernel=1 stride=3
avg_pool2d_nchw channels=2 height=5 width=6 kernel=3 stride=2 padding=1 ceil_mode=1
avg_pool2d_nchw channels=2 height=5 width=6 kernel=4x3 stride=3 padding=2x1 ceil_mode=1 \
 count_include_pad=0
avg_pool2d_nhwc height=8 width=7 channels=2 kernel=3 stride=2 padding=1
avg_pool2d_nhwc height=8 width=7 channels=2 kernel=3 stride=2 padding=1 count_include_pad=0
avg_pool2d_nhwc height=7 width=9 channels=1 kernel=2x3 ceil_mode=1
avg_pool2d_nhwc batch=2 height=1 width=1 channels=3 kernel=1
avg_pool2d_nhwc height=5 width=6 channels=2 kernel=3 stride=2 padding=1 ceil_mode=1

zero_pad2d_nchwc channels=8 height=3 width=5 in_block=4 padding=1
zero_pad2d_nchwc batch=2 channels=3 height=1 width=1 in_block=3 padding=2x0
zero_pad2d_nchwc channels=16 height=2 width=7 padding=1x2x3x0
zero_pad2d_nchwc channels=5 height=4 width=3 in_block=1 padding=0
zero_pad2d_nchwc channels=6 height=3 width=2 in_block=2 padding=0x5
zero_pad3d channels=3 depth=2 height=5 width=4 padding=1
zero_pad3d batch=2 channels=1 depth=1 height=1 width=1 padding=2x0x1
zero_pad3d channels=2 depth=4 height=3 width=7 padding=1x2x3x0x0x4
zero_pad3d channels=2 depth=2 height=3 width=2 padding=0
zero_pad3d channels=1 depth=5 height=2 width=3 padding=0x5x1
zero_expand1d channels=3 length=5 stride=2
zero_expand1d batch=2 channels=1 length=1 stride=7
zero_expand1d channels=2 length=4
zero_expand1d channels=1 length=3 stride=5
zero_expand1d batch=3 channels=2 length=11 stride=3
zero_expand2d channels=3 height=5 width=4 stride=2
zero_expand2d batch=2 channels=1 height=1 width=3 stride=3x1
zero_expand2d channels=2 height=4 width=2
zero_expand2d channels=1 height=2 width=7 stride=1x4
zero_expand2d batch=2 channels=2 height=3 width=3 stride=5x2
zero_expand3d channels=2 depth=3 height=2 width=4 stride=2
zero_expand3d batch=2 channels=1 depth=1 height=1 width=1 stride=3
zero_expand3d channels=2 depth=2 height=4 width=2
zero_expand3d channels=1 depth=2 height=3 width=5 stride=1x4x2
zero_expand3d channels=1 depth=4 height=2 width=2 stride=3x1x1

conv3d_ncdhw in_channels=3 depth=4 height=5 width=6 out_channels=4 kernel=3 padding=1
conv3d_ncdhw batch=2 in_channels=4 depth=1 height=1 width=1 out_channels=6 kernel=1 bias=1
conv3d_ncdhw in_channels=4 depth=5 height=7 width=6 out_channels=6 kernel=2x3x1 stride=1x2x3 \
 padding=1x0x2 groups=2 bias=1
conv3d_ncdhw in_channels=2 depth=7 height=6 width=8 out_channels=2 kernel=3 dilation=2x1x3 groups=2
conv3d_ncdhw batch=2 in_channels=1 depth=3 height=4 width=3 out_channels=2 kernel=3x1x2 \
 padding=0x1x2x0x0x1 stride=2
conv_transpose3d_ncdhw in_channels=3 depth=2 height=3 width=4 out_channels=2 kernel=3
conv_transpose3d_ncdhw batch=2 in_channels=4 depth=2 height=3 width=2 out_channels=6 kernel=4 \
 stride=2 padding=1 groups=2 bias=1
conv_transpose3d_ncdhw in_channels=2 depth=1 height=1 width=1 out_channels=3 kernel=2x1x3
conv_transpose3d_ncdhw in_channels=2 depth=3 height=2 width=2 out_channels=2 kernel=3x2x1 \
 stride=3x1x2 dilation=1x2x1 output_padding=2x1x1 groups=2
conv_transpose3d_ncdhw in_channels=1 depth=3 height=4 width=3 out_channels=2 kernel=3 \
 padding=1x0x0x2x1x1 stride=2 output_padding=1

pixelcnn height=7 width=5 in_channels=3 out_channels=4 kernel=3 mask_type=A padding=1
pixelcnn batch=2 height=6 width=9 in_channels=2 out_channels=3 kernel=5x3 mask_type=B padding=2x1 \
 bias=1
pixelcnn height=11 width=8 in_channels=1 out_channels=2 kernel=7 mask_type=A stride=2 padding=3
pixelcnn height=9 width=9 in_channels=2 out_channels=2 kernel=3 mask_type=B dilation=2 bias=1
pixelcnn height=3 width=4 in_channels=2 out_channels=3 kernel=1 mask_type=B
pixelcnn height=3 width=4 in_channels=2 out_channels=3 kernel=1 mask_type=A bias=1
pixelcnn height=5 width=6 in_channels=2 out_channels=2 kernel=2x4 mask_type=A
gatedpixelcnn height=5 width=6 channels=3 kernel=3
gatedpixelcnn batch=2 height=4 width=7 channels=2 kernel=5x3 class_vector=1
gatedpixelcnn height=1 width=1 channels=1 kernel=1
gatedpixelcnn height=6 width=5 channels=2 kernel=3 dilation=2 class_vector=1
gatedpixelcnn batch=3 height=3 width=4 channels=1 kernel=1x5 dilation=1x2
shiftconv2d_nhwc height=5 width=6 channels=11 kernel=3
shiftconv2d_nhwc batch=2 height=6 width=4 channels=7 kernel=3x5 dilation=2x1
shiftconv2d_nhwc height=7 width=5 channels=9 kernel=2 stride=2
shiftconv2d_nhwc height=1 width=1 channels=3 kernel=1
shiftconv2d_nhwc height=4 width=9 channels=5 kernel=1x4 stride=1x3 dilation=1x2
shiftconv2d_nhwc_argmax height=5 width=6 channels=11 kernel=3
shiftconv2d_nhwc_argmax batch=2 height=6 width=4 channels=7 kernel=3x5 dilation=2x1
shiftconv2d_nhwc_argmax height=7 width=5 channels=9 kernel=2 stride=2
shiftconv2d_nhwc_argmax height=1 width=1 channels=3 kernel=1
shiftconv2d_nhwc_argmax height=4 width=9 channels=5 kernel=1x4 stride=1x3 dilation=1x2

col2img_nchw channels=6 height=3 width=4
col2img_nchw batch=2 channels=6 height=3 width=5 groups=2
col2img_nchw channels=1 height=1 width=1
col2img_nchw batch=3 channels=5 height=2 width=1 groups=5
col2img_nchw batch=2 channels=12 height=1 width=7 groups=4
bilinear in1_features=4 in2_features=5 out_features=3
bilinear batch=7 in1_features=3 in2_features=11 out_features=2 bias=1
bilinear in1_features=1 in2_features=1 out_features=1 bias=1
bilinear batch=2 in1_features=13 in2_features=1 out_features=5
bilinear batch=5 in1_features=1 in2_features=6 out_features=17 bias=1
mttkrp3d m=5 k=7 l=3 n=4
mttkrp3d m=1 k=1 l=1 n=1
mttkrp3d m=2 k=13 l=1 n=5
mttkrp3d m=11 k=1 l=6 n=1
mttkrp3d m=1 k=4 l=17 n=3
lstmcell input_size=5 hidden_size=4
lstmcell batch=3 input_size=7 hidden_size=2 bias=1
lstmcell input_size=1 hidden_size=1 bias=1
lstmcell batch=2 input_size=1 hidden_size=11
lstmcell batch=5 input_size=13 hidden_size=3 bias=1
block_circulant_linear in_features=8 out_features=12 block=4
block_circulant_linear batch=3 in_features=6 out_features=3 block=3 bias=1
block_circulant_linear in_features=1 out_features=1 block=1
block_circulant_linear batch=2 in_features=5 out_features=10 block=5 bias=1
block_circulant_linear batch=4 in_features=14 out_features=6 block=2
block_circulant_matrix rows=8 columns=12 block=4
block_circulant_matrix rows=7 columns=11 block=3
block_circulant_matrix rows=1 columns=1 block=1
block_circulant_matrix rows=5 columns=5 block=5
block_circulant_matrix rows=16 columns=10 block=8

variance shape=5
variance shape=3x4x5 dim=1
variance shape=2x3x5x7 dim=2,3
variance shape=2x1 dim=-2
variance shape=2x3x2x3x2 dim=0,-1,2
batch_normalization2d batch=7 channels=5
batch_normalization2d batch=2 channels=1 epsilon=0.25
batch_normalization2d batch=31 channels=3 epsilon=1e-3
batch_normalization2d batch=3 channels=17
batch_normalization2d batch=64 channels=2 epsilon=2
pointwise_multiply shape=5
pointwise_multiply shape=3x4
pointwise_multiply shape=1x1x1
pointwise_multiply shape=2x3x5x7
pointwise_multiply shape=2x1x3x1x2x2

maxunpooling1d channels=2 length=5 kernel=2
maxunpooling1d batch=2 channels=3 length=7 kernel=3 stride=2 padding=1
maxunpooling1d channels=1 length=1 kernel=1
maxunpooling1d channels=2 length=6 kernel=5 stride=1 padding=2
maxunpooling1d channels=1 length=4 kernel=2 stride=5
maxunpooling2d channels=2 height=4 width=5 kernel=2
maxunpooling2d batch=2 channels=3 height=5 width=3 kernel=3 stride=2 padding=1
maxunpooling2d channels=1 height=1 width=1 kernel=1x2
maxunpooling2d channels=2 height=6 width=4 kernel=3x2 stride=1x2 padding=1x0
maxunpooling2d channels=1 height=3 width=2 kernel=2x3 stride=4x1
"""
LINES = [line for line in ROWS.replace("\\\n", "").splitlines() if line]
LIBRARY = {
    row["name"]: row
    for row in json.loads(
        subprocess.run([CANVAS, "operator", "--json"], capture_output=True, check=True).stdout
    )
}


# ---- tests --------------------------------------------------------------------------------------


def split(line: str) -> tuple[str, Values]:
    name, *words = line.split()
    return name, dict(word.split("=", 1) for word in words)


def sizes(program: str, kind: str, name: str = r"\w+") -> list[list[int]]:
    """Of the inputs ("in "), or of a stage, as the text declares them."""
    found = re.findall(rf"^{kind}{name} ?(?:\w+ )?\[(.*?)\]", program, re.M)
    return [[int(size) for size in re.findall(r":(\d+)", axes)] for axes in found]


def inputs_of(program: str, values: Values, seed: int) -> Tensors:
    torch.manual_seed(seed)
    inputs = [torch.randn(s, dtype=torch.float64) for s in sizes(program, "in ")]
    if "blocks" in values:
        inputs[2:4] = block_places(inputs, values)
    elif "in indices" in program:
        inputs = list(pooled(program, values))
    elif found := re.search(r"^in place i32 .*\.\.(\d+)$", program, re.M):
        inputs[1] = torch.randint(int(found[1]), inputs[1].shape).double()
    return inputs


def pooled(program: str, values: Values) -> Tensors:
    """The maxima of a random plane, and where they stood in it."""
    (shape,) = sizes(program, "", "Y")
    axes = len(shape) - 2
    pool = F.max_pool1d if axes == 1 else F.max_pool2d
    plane = torch.randn(shape, dtype=torch.float64)
    kernel = numbers(values["kernel"], axes)
    options = unpool_options(values, axes)
    return [x.double() for x in pool(plane, kernel, **options, return_indices=True)]


def all_results(name: str, inputs: Tensors, values: Values) -> Tensors:
    answer = TORCH[name](inputs, values)
    return answer if isinstance(answer, list) else [answer]


def evaluate(program: str, inputs: Tensors) -> torch.Tensor:
    data = _core.evaluate(program, [x.numpy().tobytes() for x in inputs])
    (shape,) = sizes(program, "", re.findall(r"^out (\w+)", program, re.M)[0])
    return torch.from_numpy(np.frombuffer(data).copy()).reshape(shape)


def block_places(inputs: Tensors, values: Values) -> Tensors:
    """ind and ptr of as many blocks, anywhere: rows without a block among them."""
    data, rows = inputs[1], len(inputs[3]) - 1
    columns = bsr_columns(values) // data.shape[2]
    places = torch.randperm(rows * columns)[: len(data)].sort().values
    starts = torch.searchsorted(places, torch.arange(rows + 1) * columns)
    return [(places % columns).double(), starts.double()]


@pytest.mark.parametrize("line", LINES)
def test_equals_torch(line: str) -> None:
    name, values = split(line)
    program = canvas.operator_program(name, **values)
    inputs = inputs_of(program, values, len(line))
    stages, *outputs = program.split("\nout ")
    for i, wanted in enumerate(all_results(name, inputs, values)):
        result = evaluate(f"{stages}\nout {outputs[i]}", inputs)
        assert result.shape == wanted.shape
        torch.testing.assert_close(result, wanted, rtol=1e-12, atol=1e-12)


def test_every_operator_has_five_shapes() -> None:
    counts = {name: sum(split(line)[0] == name for line in LINES) for name in LIBRARY}
    assert not {name: count for name, count in counts.items() if count < 5}
    assert TORCH.keys() == LIBRARY.keys()


@pytest.mark.parametrize("name", LIBRARY)
def test_data_types(name: str) -> None:
    """Data, weights and result have the type asked for; everything else at least as wide a one."""
    line = next(line for line in LINES if split(line)[0] == name)
    values = split(line)[1]
    assert " f64" not in canvas.operator_program(name, **values)
    program = canvas.operator_program(name, **values, dtype="f64")
    assert " f32" not in program
    stages = [line for line in program.splitlines() if " = " in line]
    assert all(re.match(r"\w+ f64 \[", line) for line in stages)
    program = canvas.operator_program(name, **values, dtype="bf16")
    floats = [line for line in program.splitlines() if re.match("in .* (f32|f64|bf16) ", line)]
    assert all(" bf16 [" in line for line in floats)
    assert re.search(r"^Y bf16 \[", program, re.M)


PUBLISHED = sorted((ROOT / "examples/operators").glob("*.txt"))


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and line[0] != "#"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_shapes_equal_torch(path: Path) -> None:
    """At 200 elements, the first and the last among them; layers of too many elements are left to
    their smaller likes.
    """
    for line in lines_of(path):
        name, values = split(line)
        program = canvas.operator_program(name, **values)
        if max(int(np.prod(s)) for s in sizes(program, r"(?:in )?")) > 1 << 23:
            continue
        inputs = inputs_of(program, values, 1)
        wanted = all_results(name, inputs, values)[0].flatten()
        at = torch.randint(len(wanted), (200,))
        at[0], at[1] = 0, len(wanted) - 1
        data = _core.evaluate(
            program, [x.numpy().tobytes() for x in inputs], at.numpy().astype(np.int64).tobytes()
        )
        result = torch.from_numpy(np.frombuffer(data).copy())
        torch.testing.assert_close(result, wanted[at], rtol=1e-10, atol=1e-10, msg=line)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_shapes_build(path: Path) -> None:
    lines = lines_of(path)
    assert len(lines) >= 5
    for line in lines:
        name, values = split(line)
        program = canvas.operator_program(name, **values)
        assert sizes(program, "", "Y"), line


def command(*words: str, given: str) -> str:
    done = subprocess.run(
        [CANVAS, *words], input=given, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def first_padded() -> list[str]:
    """Of each operator the first row whose program has a stage `pad`."""
    found: dict[str, str] = {}
    for line in LINES:
        name, values = split(line)
        if "\npad" in canvas.operator_program(name, **values):
            found.setdefault(name, line)
    return list(found.values())


@pytest.mark.parametrize("line", first_padded())
def test_padding_may_go_into_its_reader(line: str) -> None:
    name, values = split(line)
    program = canvas.operator_program(name, **values)
    inlined = command("edit", "-", "inline", "pad", given=program)
    assert "pad" not in inlined
    inputs = inputs_of(program, values, 0)
    assert torch.equal(evaluate(inlined, inputs), evaluate(program, inputs))


# A schedule of the notebook, the operator that it is for, and what it calls the stages.
NOTEBOOK = {
    "e3_values": (
        "gemm_conv2d_nhwc batch=2 height=6 width=8 in_channels=8 out_channels=32 kernel=3"
        " padding=1",
        {"Y": "cout"},
    ),
    "e4_values": (
        "bsr_conv2d_nhwc batch=2 height=6 width=8 in_channels=8 out_channels=64 kernel=3 padding=1"
        " blocks=40 block_columns=2",
        {"parts": "CC", "Y": "C"},
    ),
    "e5_values": ("bsr_gemm m=12 k=48 n=64 blocks=40", {"parts": "BM", "Y": "RS"}),
    "e6_values": (
        "conv2d_nhwc batch=2 height=9 width=10 in_channels=8 out_channels=32 kernel=3"
        " weights=hwio",
        {"Y": "C"},
    ),
}


@pytest.mark.parametrize("name", NOTEBOOK)
def test_schedules_of_the_notebook_fit(name: str) -> None:
    line, names = NOTEBOOK[name]
    operator, values = split(line)
    program = canvas.operator_program(operator, **values)
    if name.startswith("e3"):
        program = command("edit", "-", "cache", "Y", "as", "ccache", given=program)
    for ours, theirs in names.items():
        program = re.sub(rf"\b{ours}\b", theirs, program)
    schedule = f"examples/schedules/{name}.schedule"
    machine = ("--machine", "examples/machines/avx512.txt")  # the registers of its tiles
    assert command("schedule", "check", "-", schedule, *machine, given=program).startswith("ok")


def test_python_writes_arguments() -> None:
    spelled = canvas.operator_program(
        "conv2d_nchw",
        in_channels=4,
        height=5,
        width=5,
        out_channels=2,
        kernel=(3, 1),
        padding=[1, 0],
        bias=True,
        dtype="f64",
    )
    words = "in_channels=4 height=5 width=5 out_channels=2 kernel=3x1 padding=1x0 bias=1 dtype=f64"
    done = subprocess.run(
        [CANVAS, "operator", "conv2d_nchw", *words.split()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert spelled == done.stdout


def test_python_raises_messages() -> None:
    with pytest.raises(canvas.CanvasError, match="did you mean 'conv2d_nchw'"):
        canvas.operator_program("conv2d_nchv")
    with pytest.raises(canvas.CanvasError, match="needs m=NUMBER"):
        canvas.operator_program("gemm")
    with pytest.raises(canvas.CanvasError, match="no operator has such a name"):
        canvas.operator_program("ünbekannt" * 20)
