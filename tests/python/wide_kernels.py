"""Kernels of the wide space, for the tests of test_torch_equals_interpreter.py: rows of nodes, and
what well-known operators are in PyTorch's own words, with the kernel's weights."""

import torch
from torch import nn
from torch.nn import functional as F

# Sizes of the examples that have free ones.
SIZES = {
    "axial_shift": "G=4",
    "dynamic_convolution": "x0=3",
    "mixer": "x0=5,x1=7",
    "multi_head_attention": "G=2",
    "self_attention": "x0=3,x1=5",
    "shuffle": "G=2",
}

# name: sizes, then the nodes after `a = input`
ROWS = {
    "channel_windows": "- | u = unfold a over=C k=5; m = fold u max over=KC; d = fc u to=C;"
    " s = sub m d; out s",
    "channel_windows_dilated": "G=2 | u = unfold a over=C k=3 dilation=2; g = group u by=G;"
    " v = unfold g over=H,W k=3; d = fc v to=C; out d",
    "windows_of_all": "- | u = unfold a over=H,W,C k=3; m = fold u mean over=KC; d = fc m to=C;"
    " e = fc u to=C; s = add d e; out s",
    "wide_windows": "- | u = unfold a over=H k=31; g = group u each; d = fc g to=C; out d",
    "mix_rows": "- | b = fc a to=H over=H; c = fc b to=W over=W; out c",
    "mix_through_fewer": "x0=3 | b = fc a to=x0 over=H; c = relu b; d = fc c to=H over=H; out d",
    "mix_groups": "G=4 | g = group a by=G; b = fc g to=G over=G; c = fc b to=C/G over=C; out c",
    "mix_channels_and_rows": "x0=3 | b = fc a to=x0 over=C,H; d = fc b to=C over=C;"
    " e = mul d a; out e",
    "mix_windows": "- | u = unfold a over=H,W k=K; b = fc u to=1 over=KH,KW; c = sigmoid b;"
    " d = mul c a; e = fc u to=2 over=KH; f = fold e max over=KH; g = fold f mean over=KW;"
    " h = add d g; out h",
    "mix_keeps_windows": "x0=6 | u = unfold a over=H k=3; b = fc u to=x0 over=C; c = fc b to=C;"
    " out c",
    "mix_is_inner": "x0=6 | b = fc a to=x0 over=C; c = relu b; d = fc c to=C; out d",
    "scales": "G=2 | b = scale a over=C; c = scale b over=H,W; g = group c by=G;"
    " d = scale g over=G,C,H,W; e = bias d over=G; f = bias e over=W; h = scale f over=C,W; out h",
    "scale_windows": "- | u = unfold a over=H,W k=3; b = scale u over=KH,KW; c = bias b over=C,KW;"
    " d = fold c mean over=KH,KW; out d",
    "gram": "- | b = matmul a a over=H,W; d = matmul b a scaled over=C2 with=C; out d",
    "gram_transposed": "x0=3 | b = fc a to=x0; c = matmul b a over=H,W; d = fc c to=C;"
    " e = softmax d over=C2; f = matmul e a over=C2 with=C; out f",
    "rows_attend": "- | s = matmul a a scaled over=C each=W; t = softmax s over=H2;"
    " o = matmul t a over=H2 with=H each=W; out o",
    "columns_attend_in_groups": "G=2 | g = group a by=G; s = matmul g g over=C each=G,H;"
    " t = softmax s over=W2; o = matmul g t over=W with=W2 each=G,H; out o",
    "pixels_meet_channels": "- | s = matmul a a over=H,W; m = fold s max over=C2;"
    " n = fold s mean over=C2; p = fc n to=C; q = add m p; r = mul q a; out r",
    "second_axes": "- | s = matmul a a scaled over=C; b = bias s over=H2,W2;"
    " n = norm b over=H2,W2; m = fold n mean over=H2,W2; o = mul m a;"
    " p = fold s max over=H2; q = fold p mean over=W2;"
    " r = add q o; out r",
    "windows_meet": "- | u = unfold a over=W k=3; v = unfold a over=H k=3; t = tanh v;"
    " s = matmul u t over=KW with=KH each=C,H,W; out s",
    "swapped": "G=2 | g = group a by=G; s = swap g; t = tanh s; u = swap t; v = sub u g;"
    " w = group s none; x = add w a; y = add v x; out y",
    "swapped_groups": "G=2 | g = group a by=C/G; s = swap g; d = fc s to=C; out d",
    "ungrouped": "G=2 | g = group a by=G; s = softmax g over=C; u = group s none;"
    " h = group u each; v = unfold h over=W k=3; i = group v none; d = fc i to=C; out d",
    "parts": "- | b = pick a at=1 of=4; c = pick a at=0 of=2; d = pick c at=1 of=2; e = sub b d;"
    " f = fc e to=C; g = pick a at=1 of=2; h = pick a at=0 of=2; i = stack g h; j = group i none;"
    " k = add f j; out k",
    "parts_of_groups": "G=2 | g = group a by=G; b = pick g at=1 of=2; c = tanh b; d = fc c to=C;"
    " out d",
    "stacked": "- | u = unfold a over=H k=3; t = tanh u; s = stack u t; d = fc s to=C; out d",
    "pooled": "- | b = pool a by=2; c = repeat b by=4; d = pool c by=2; e = sub a d; out e",
    "pooled_rows": "- | r = fold a mean over=W; p = pool r by=4; q = repeat p by=4; m = mul q a;"
    " out m",
    "norms": "G=2 | b = norm a over=C,H,W; c = norm b rms over=H; g = group c by=G;"
    " d = norm g over=C; e = norm d rms over=G,W; out e",
    "coordinates": "- | x = coords a over=H; y = coords a over=W; s = mul x y; d = fc s to=C;"
    " e = add d a; out e",
    "coordinates_pooled": "- | p = pool a by=2; x = coords p over=W; d = fc x to=C; e = add d p;"
    " f = repeat e by=2; out f",
    "channel_shifts": "G=2 | b = shift a over=C by=1; c = shift b over=C by=-3 fill=zero;"
    " g = group c by=G; d = shift g over=C,W by=2; e = shift d over=C,H by=1 fill=zero; out e",
    "window_shifts": "- | u = unfold a over=H,W,C k=3; b = shift u over=KH by=1;"
    " c = shift b over=KW by=-1 fill=zero; d = shift c over=KC by=1; e = fc d to=C; out e",
    "shifts_apart": "G=4 | g = group a by=G; b = shift g each over=H;"
    " c = shift b each over=W fill=zero; d = shift g each over=H,W;"
    " e = shift d each over=C fill=zero; f = add c e; out f",
}

# Those whose images must be multiples of four; every image of the others is odd somewhere.
EVEN = {"octave", "spatial_bottleneck", "pooled", "pooled_rows", "coordinates_pooled"}

# Those that cannot take the stride in a window.
BOUND_TO_SIZE = {
    *EVEN, "channel_attention", "columns_attend_in_groups", "coord_conv", "coordinates",
    "dynamic_convolution", "gram", "gram_transposed", "mix_rows", "mix_through_fewer", "mixer",
    "multi_head_attention", "pixels_meet_channels", "published", "rows_attend", "second_axes",
    "self_attention", "window_shifts", "windows_meet", "windows_of_all",
}  # fmt: skip


def same(x, w, **options):
    """A convolution that keeps the size of the image."""
    dilation = options.get("dilation", 1)
    pad = (w.shape[-2] // 2 * dilation, w.shape[-1] // 2 * dilation)
    return F.conv2d(x, w, padding=pad, **options)


def point(x, w, **options):
    return F.conv2d(x, w.flatten(1)[:, :, None, None], **options)


def depthwise(x, w, **options):
    return same(x, w[:, None], groups=len(w), **options)


def tokens(x):
    return x.flatten(2).transpose(1, 2)


def self_attention(x, w):
    q, k, v = (tokens(point(x, weight)) for weight in w[:3])
    o = F.scaled_dot_product_attention(q, k, v)
    return point(o.transpose(1, 2).unflatten(2, x.shape[2:]), w[3])


def multi_head_attention(x, w):
    attention = nn.MultiheadAttention(8, 2, bias=False, batch_first=True).double()
    attention.load_state_dict({"in_proj_weight": torch.cat(w[:3]), "out_proj.weight": w[3]})
    o = attention(tokens(x), tokens(x), tokens(x), need_weights=False)[0]
    return o.transpose(1, 2).unflatten(2, x.shape[2:])


def channel_attention(x, w):
    rows = x.flatten(2)
    o = F.scaled_dot_product_attention(rows, rows, rows).unflatten(2, x.shape[2:])
    return x + point(o, w[0])


def ghost(x, w):
    primary = point(x, w[0])
    return torch.cat([primary, depthwise(primary, w[1])], 1)


def shuffle(x, w):
    y = nn.ChannelShuffle(2)(F.relu(point(x, w[0], groups=2)))
    return x + point(depthwise(y, w[1]), w[2], groups=2)


def eca(x, w):
    conv = nn.Conv1d(1, 1, 3, padding=1, bias=False).double()
    conv.weight.data = w[0][None]
    gate = conv(F.adaptive_avg_pool2d(x, 1).flatten(2).transpose(1, 2)).transpose(1, 2)
    return x * torch.sigmoid(gate)[..., None]


def large_kernel_attention(x, w):
    return x * point(depthwise(depthwise(x, w[0]), w[1], dilation=3), w[2])


def coord_conv(x, w):
    n, _, height, width = x.shape
    rows = torch.linspace(-1, 1, height, dtype=x.dtype)[:, None].expand(n, 1, height, width)
    columns = torch.linspace(-1, 1, width, dtype=x.dtype).expand(n, 1, height, width)
    return same(torch.cat([x, rows, columns], 1), torch.cat(w, 1))


def octave(x, w):
    high, low = x[:, :4], F.avg_pool2d(x[:, 4:], 2)
    up = F.interpolate(same(low, w[2]), scale_factor=2, mode="nearest")
    down = same(F.avg_pool2d(high, 2), w[3])
    low = same(low, w[1]) + down
    return torch.cat([same(high, w[0]) + up, F.interpolate(low, scale_factor=2)], 1)


def channel_norm(x):
    return F.layer_norm(x.movedim(1, -1), x.shape[1:2]).movedim(-1, 1)


def mixer(x, w):
    pixels = channel_norm(x).flatten(2)
    pixels = F.linear(F.gelu(F.linear(pixels, w[0].flatten(1))), w[1])
    x = x + pixels.unflatten(2, x.shape[2:])
    return x + point(F.gelu(point(channel_norm(x), w[2])), w[3])


def spatial_bottleneck(x, w):
    return F.interpolate(same(F.avg_pool2d(x, 2), w[0]), scale_factor=2)


def convnext(x, w):
    y = F.layer_norm(depthwise(x, w[0]).movedim(1, -1), (8,), w[1], w[2])
    y = F.linear(F.gelu(F.linear(y, w[3])), w[4]) * w[5]
    return x + y.movedim(-1, 1)


def moved_groups(x, dim):
    """The published AS-MLP: chunks of channels, each rolled in a padded image, then cut out."""
    pad = F.pad(x, (2, 2, 2, 2))
    parts = [part.roll(i - 2, dim) for i, part in enumerate(pad.chunk(4, 1))]
    return torch.cat(parts, 1)[:, :, 2:-2, 2:-2]


def axial_shift(x, w):
    x = point(x, w[0])
    return point(point(moved_groups(x, 2), w[1]) + point(moved_groups(x, 3), w[2]), w[3])


def dynamic_convolution(x, w):
    shares = torch.softmax(F.linear(F.relu(F.linear(x.mean((2, 3)), w[1])), w[2]), 1)
    experts = w[0].unflatten(0, (4, 8))
    images = [
        same(x[i : i + 1], (s[:, None, None, None, None] * experts).sum(0))
        for i, s in enumerate(shares)
    ]
    return torch.cat(images)


def published(x, w):
    """The code of the published kernel: unfold, bmm / sqrt(k), scale."""
    n, c, height, width = x.shape
    u = F.unfold(x, (1, 5), dilation=(1, 2), padding=(0, 4)).reshape(n, c * 5, height * width)
    a = torch.bmm(u, x.flatten(2).transpose(1, 2)) / (height * width) ** 0.5
    a = a.reshape(n, c, 5, c) * w[0]
    g = F.gelu(F.unfold(F.relu(x), (5, 1), padding=(2, 0)).reshape(n, c, 5, height * width))
    a = a.transpose(2, 3).reshape(n, c, c * 5)
    return (torch.bmm(a, g.reshape(n, c * 5, -1)) / (c * 5) ** 0.5).reshape(x.shape)


def pooled(x, w):
    return x - F.interpolate(F.avg_pool2d(x, 2), scale_factor=2)


REFERENCES = {
    "self_attention": self_attention,
    "multi_head_attention": multi_head_attention,
    "channel_attention": channel_attention,
    "ghost": ghost,
    "shuffle": shuffle,
    "eca": eca,
    "large_kernel_attention": large_kernel_attention,
    "coord_conv": coord_conv,
    "octave": octave,
    "mixer": mixer,
    "spatial_bottleneck": spatial_bottleneck,
    "convnext": convnext,
    "axial_shift": axial_shift,
    "dynamic_convolution": dynamic_convolution,
    "published": published,
    "pooled": pooled,
    "mix_rows": lambda x, w: torch.einsum("nchw,th,uw->nctu", x, w[0], w[1]),
    "norms": lambda x, w: rms(
        F.layer_norm(
            rms(F.layer_norm(x, x.shape[1:]), 2).unflatten(1, (2, 4)).movedim(2, -1), (4,)
        ).movedim(-1, 2),
        (1, 4),
    ).flatten(1, 2),
}


def rms(x, dims):
    return x / (x.square().mean(dims, keepdim=True) + 1e-5).sqrt()
