// Clocks and oneDNN (C API, version 2) for contenders.py, which builds and loads this library.
//
// A contender is a function of an array of pointers, as compiled schedules are; `native_time` calls
// it repeatedly and returns seconds of this thread's processor time. A oneDNN contender is a chain
// of primitives whose layouts oneDNN chooses (format_tag::any): inputs and weights are reordered
// before the clock runs, the output after it.
#define _DEFAULT_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef int function(void *const *);

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double native_time(function *call, void *const *pointers, int calls) {
  double start = seconds();
  for (int i = 0; i < calls; i++)
    if (call(pointers)) return -1;
  return seconds() - start;
}

// Cycles per second of the core, now: products that wait for each other take three each, on every
// x86 since 2008 (sums with a constant may take none: some cores add them up before they run). 0:
// unknown.
double native_clock(void) {
#ifdef __x86_64__
  enum { ROUNDS = 100000, PRODUCTS = 8, CYCLES = 3 };
  uint64_t x = 3;
  double start = seconds();
  for (int i = 0; i < ROUNDS; i++)
    __asm__ volatile(
        "imul %0,%0\n imul %0,%0\n imul %0,%0\n imul %0,%0\n"
        "imul %0,%0\n imul %0,%0\n imul %0,%0\n imul %0,%0\n"
        : "+r"(x));
  return (double)ROUNDS * PRODUCTS * CYCLES / (seconds() - start);
#else
  return 0;
#endif
}

#ifdef WITH_ONEDNN
#include <dnnl.h>

enum { STEPS = 8, ARGUMENTS = 4, RANK = 5, TENSORS = 32 };

struct step {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[ARGUMENTS];
  int count;
};

// Primitives in order, and the tensors that they read and write. The first call that fails sets
// `error`.
struct chain {
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  struct step steps[STEPS];
  int count;
  dnnl_memory_t tensors[TENSORS];
  int tensor_count;
  int made[TENSORS];      // a step writes it: it is moved by a step, too
  void *memory[TENSORS];  // NULL: the caller's
  const char *error;
  char implementation[256];  // of the primitive that was made last
};

static void must(struct chain *c, dnnl_status_t status, const char *what) {
  if (status != dnnl_success && !c->error) c->error = what;
}

const char *onednn_version(void) {
  static char text[64];
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
  return text;
}

struct chain *onednn_new(void) {
  struct chain *c = calloc(1, sizeof *c);
  must(c, dnnl_engine_create(&c->engine, dnnl_cpu, 0), "engine");
  must(c, dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags), "stream");
  return c;
}

const char *onednn_error(const struct chain *c) {
  return c->error ? c->error : "";
}
const char *onednn_implementation(const struct chain *c) {
  return c->implementation;
}

int onednn_run(struct chain *const *pointer) {
  const struct chain *c = *pointer;
  for (int i = 0; i < c->count; i++)
    if (dnnl_primitive_execute(c->steps[i].primitive, c->stream, c->steps[i].count,
                               c->steps[i].arguments))
      return 1;
  return dnnl_stream_wait(c->stream);
}

void onednn_free(struct chain *c) {
  for (int i = 0; i < c->count; i++) dnnl_primitive_destroy(c->steps[i].primitive);
  for (int i = 0; i < c->tensor_count; i++) {
    dnnl_memory_destroy(c->tensors[i]);
    free(c->memory[i]);
  }
  dnnl_stream_destroy(c->stream);
  dnnl_engine_destroy(c->engine);
  free(c);
}

// ---- tensors ------------------------------------------------------------------------------------

static dnnl_memory_desc_t any_layout(struct chain *c, int rank, const int64_t *sizes) {
  dnnl_memory_desc_t d;
  memset(&d, 0, sizeof d);
  must(c, dnnl_memory_desc_init_by_tag(&d, rank, sizes, dnnl_f32, dnnl_format_tag_any), "layout");
  return d;
}

// Row-major, or with the given strides.
static dnnl_memory_desc_t plain_layout(struct chain *c, int rank, const int64_t *sizes,
                                       const int64_t *strides) {
  dnnl_memory_desc_t d;
  int64_t each[RANK], all = 1;
  memset(&d, 0, sizeof d);
  for (int i = rank - 1; i >= 0; all *= sizes[i--]) each[i] = all;
  must(c, dnnl_memory_desc_init_by_strides(&d, rank, sizes, dnnl_f32, strides ? strides : each),
       "strides");
  return d;
}

// As numpy has it and our side: a multiple of 64, large pages from 4 MiB on.
static void *room(size_t bytes) {
  const size_t page = 4096, large = (size_t)4 << 20;
  void *memory;
  if (posix_memalign(&memory, 64, bytes)) return NULL;
  if (bytes >= large) {
    size_t skipped = page - (uintptr_t)memory % page;
    madvise((char *)memory + skipped, bytes - skipped, MADV_HUGEPAGE);
  }
  memset(memory, 0, bytes);
  return memory;
}

static int new_tensor(struct chain *c, const dnnl_memory_desc_t *d, void *data) {
  int number = c->tensor_count++;
  if (data == DNNL_MEMORY_ALLOCATE) data = c->memory[number] = room(dnnl_memory_desc_get_size(d));
  must(c, dnnl_memory_create(&c->tensors[number], d, c->engine, data), "memory");
  return number;
}

static const dnnl_memory_desc_t *layout_of(const struct chain *c, int tensor) {
  const dnnl_memory_desc_t *d = NULL;
  dnnl_memory_get_memory_desc(c->tensors[tensor], &d);
  return d;
}

// Of the caller's data once, now; of what a step writes in a step of its own.
static void move(struct chain *c, int from, int to, int now) {
  dnnl_primitive_desc_t pd;
  struct step s = {.arguments = {{DNNL_ARG_FROM, c->tensors[from]}, {DNNL_ARG_TO, c->tensors[to]}},
                   .count = 2};
  must(c,
       dnnl_reorder_primitive_desc_create(&pd, layout_of(c, from), c->engine, layout_of(c, to),
                                          c->engine, NULL),
       "reorder");
  if (c->error) return;
  must(c, dnnl_primitive_create(&s.primitive, pd), "reorder");
  dnnl_primitive_desc_destroy(pd);
  if (!now) {
    c->steps[c->count++] = s;
    return;
  }
  must(c, dnnl_primitive_execute(s.primitive, c->stream, s.count, s.arguments), "reorder");
  dnnl_stream_wait(c->stream);
  dnnl_primitive_destroy(s.primitive);
}

// A tensor of the caller's.
int onednn_tensor(struct chain *c, int rank, const int64_t *sizes, const int64_t *strides,
                  void *data) {
  dnnl_memory_desc_t d = plain_layout(c, rank, sizes, strides);
  return c->error ? 0 : new_tensor(c, &d, data);
}

// What the tensor holds now, as the other has it: for the caller to read.
void onednn_read(struct chain *c, int tensor, int rank, const int64_t *sizes,
                 const int64_t *strides, void *data) {
  move(c, tensor, onednn_tensor(c, rank, sizes, strides, data), 1);
}

// ---- steps --------------------------------------------------------------------------------------

// The tensor in the layout that the primitive asks for; another one unless it has it.
static int as_asked(struct chain *c, int tensor, const dnnl_memory_desc_t *asked) {
  if (dnnl_memory_desc_equal(layout_of(c, tensor), asked)) return tensor;
  int moved = new_tensor(c, asked, DNNL_MEMORY_ALLOCATE);
  move(c, tensor, moved, !c->made[tensor]);
  c->made[moved] = c->made[tensor];
  return moved;
}

// The tensor in the layout of another.
int onednn_like(struct chain *c, int tensor, int other) {
  return as_asked(c, tensor, layout_of(c, other));
}

static void keep_implementation(struct chain *c, dnnl_primitive_desc_t pd) {
  const char *text = "";
  dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text);
  snprintf(c->implementation, sizeof c->implementation, "%s", text);
}

// Adds a primitive and returns the tensor that it writes. Operands: argument, tensor, and the query
// for the layout that the primitive expects.
static int add_step(struct chain *c, const_dnnl_op_desc_t description, const int (*operands)[3],
                    int count) {
  dnnl_primitive_desc_t pd;
  if (c->error) return 0;
  must(c, dnnl_primitive_desc_create(&pd, description, NULL, c->engine, NULL),
       "primitive description");
  if (c->error) return 0;
  struct step s = {.count = 0};
  keep_implementation(c, pd);
  must(c, dnnl_primitive_create(&s.primitive, pd), "primitive");
  for (int i = 0; i < count; i++) {
    int second = operands[i][0] == DNNL_ARG_SRC_1;
    const dnnl_memory_desc_t *asked =
        dnnl_primitive_desc_query_md(pd, (dnnl_query_t)operands[i][2], second);
    int tensor = as_asked(c, operands[i][1], asked);
    s.arguments[s.count++] = (dnnl_exec_arg_t){operands[i][0], c->tensors[tensor]};
  }
  const dnnl_memory_desc_t *made = dnnl_primitive_desc_query_md(pd, dnnl_query_dst_md, 0);
  int out = new_tensor(c, made, DNNL_MEMORY_ALLOCATE);
  c->made[out] = 1;
  s.arguments[s.count++] = (dnnl_exec_arg_t){DNNL_ARG_DST, c->tensors[out]};
  c->steps[c->count++] = s;
  dnnl_primitive_desc_destroy(pd);
  return out;
}

static int add_weighted(struct chain *c, const_dnnl_op_desc_t description, int x, int w) {
  const int operands[][3] = {{DNNL_ARG_SRC, x, dnnl_query_src_md},
                             {DNNL_ARG_WEIGHTS, w, dnnl_query_weights_md}};
  return add_step(c, description, operands, 2);
}

// Each function returns the tensor that it writes. Sizes are of oneDNN's logical axes: images n c h
// w, weights (g) o i h w.
int onednn_convolution(struct chain *c, int x, int w, int rank_w, const int64_t *sizes_x,
                       const int64_t *sizes_w, const int64_t *sizes_y, const int64_t *strides,
                       const int64_t *before, const int64_t *after, int transposed, int winograd) {
  dnnl_alg_kind_t kind = winograd ? dnnl_convolution_winograd : dnnl_convolution_direct;
  dnnl_memory_desc_t src = any_layout(c, 4, sizes_x);
  dnnl_memory_desc_t weights = any_layout(c, rank_w, sizes_w), dst = any_layout(c, 4, sizes_y);
  dnnl_convolution_desc_t conv;
  dnnl_deconvolution_desc_t deconv;
  if (transposed) {
    must(c,
         dnnl_deconvolution_forward_desc_init(&deconv, dnnl_forward_inference,
                                              dnnl_deconvolution_direct, &src, &weights, NULL, &dst,
                                              strides, before, after),
         "transposed convolution");
    return add_weighted(c, &deconv, x, w);
  }
  must(c,
       dnnl_convolution_forward_desc_init(&conv, dnnl_forward_inference, kind, &src, &weights, NULL,
                                          &dst, strides, before, after),
       "convolution");
  return add_weighted(c, &conv, x, w);
}

int onednn_product(struct chain *c, int x, int w, int rank, const int64_t *sizes_x,
                   const int64_t *sizes_w, const int64_t *sizes_y) {
  dnnl_memory_desc_t a = any_layout(c, rank, sizes_x), b = any_layout(c, rank, sizes_w);
  dnnl_memory_desc_t y = any_layout(c, rank, sizes_y);
  dnnl_matmul_desc_t product;
  must(c, dnnl_matmul_desc_init(&product, &a, &b, NULL, &y), "product");
  return add_weighted(c, &product, x, w);
}

int onednn_sum(struct chain *c, int a, int b) {
  dnnl_binary_desc_t sum;
  const int operands[][3] = {{DNNL_ARG_SRC_0, a, dnnl_query_src_md},
                             {DNNL_ARG_SRC_1, b, dnnl_query_src_md}};
  must(c,
       dnnl_binary_desc_init(&sum, dnnl_binary_add, layout_of(c, a), layout_of(c, b),
                             layout_of(c, a)),
       "sum");
  return add_step(c, &sum, operands, 2);
}

// An image moved by one along its width, round the border: two reorders of a part of it.
int onednn_shift(struct chain *c, int x, const int64_t *sizes) {
  const dnnl_memory_desc_t *whole = layout_of(c, x);
  int out = new_tensor(c, whole, DNNL_MEMORY_ALLOCATE);
  c->made[out] = 1;
  for (int i = 0; i < 2 && !c->error; i++) {
    dnnl_dims_t part = {sizes[0], sizes[1], sizes[2], i ? 1 : sizes[3] - 1};
    dnnl_dims_t from = {0, 0, 0, i ? sizes[3] - 1 : 0}, to = {0, 0, 0, i ? 0 : 1};
    dnnl_memory_desc_t source, target;
    dnnl_primitive_desc_t pd;
    void *data;
    must(c, dnnl_memory_desc_init_submemory(&source, whole, part, from), "part");
    must(c, dnnl_memory_desc_init_submemory(&target, whole, part, to), "part");
    must(c, dnnl_reorder_primitive_desc_create(&pd, &source, c->engine, &target, c->engine, NULL),
         "shift");
    if (c->error) return 0;
    struct step *s = &c->steps[c->count++];
    must(c, dnnl_primitive_create(&s->primitive, pd), "shift");
    dnnl_memory_get_data_handle(c->tensors[x], &data);
    s->arguments[0] = (dnnl_exec_arg_t){DNNL_ARG_FROM, c->tensors[new_tensor(c, &source, data)]};
    dnnl_memory_get_data_handle(c->tensors[out], &data);
    s->arguments[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, c->tensors[new_tensor(c, &target, data)]};
    s->count = 2;
    dnnl_primitive_desc_destroy(pd);
  }
  return out;
}
#endif
