/* The interpreter. See interpret.h.
 *
 * Each stage's expression is compiled to code for a stack machine; select, && and || become jumps.
 * A load of a stage pushes a frame on the interpreter's own stack, so neither deep expressions nor
 * chains of thousands of stages use C's stack. Stages have no cycles, so a stage has at most one
 * frame at a time, and all memory except the element cache is allocated beforehand.
 *
 * Reduction axes are loops around the body. An axis with a fixed size needs no code. An axis with
 * data-dependent bounds has the code `low, high, enter` before its inside, and the axis around it
 * continues there. An axis that is finished or empty advances the next one outside.
 *
 * Index arithmetic cannot overflow: the verifier bounds every part of it by 2^62.
 */
#include "program/interpret.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum code {
  CODE_INT,
  CODE_NUMBER,
  CODE_AXIS,
  CODE_LOAD_INPUT,
  CODE_LOAD_ROUND, /* an input of bf16 */
  CODE_LOAD_INDEX, /* an input of i32 */
  CODE_LOAD_STAGE,
  CODE_ENTER, /* enters axis `to`, with its two bounds on the stack */
  CODE_JUMP,
  CODE_JUMP_FALSE, /* jumps to `to` if the condition, which it pops, is false */
  CODE_END,        /* ends one point of the reduction: its value is on top */
/* operations on indices or conditions, and on values, in the order of enum px_op */
#define X(op, ...) CODE_##op##_I, CODE_##op,
  SCALAR_OPS(X)
#undef X
};

struct instruction {
  enum code code;
  int to; /* instruction, axis or tensor */
  union {
    int64_t integer;
    double number;
  };
};

union cell {
  int64_t i;
  double d;
};

/* The cached elements of a stage: an array with a bit per element, or a hash table. */
struct memo {
  double *values;
  uint64_t *known;  /* dense: a bit per element */
  int64_t *keys;    /* sparse: flat index + 1; 0: free */
  int64_t capacity; /* sparse: a power of two */
  int64_t count;
};

enum { ASK = 1 << 24 }; /* steps between two calls of `stop` */

struct stage {
  struct {
    VEC(struct instruction);
  } code;
  int height;               /* stack cells that it needs */
  int inside[PROGRAM_AXES]; /* of a reduction axis: the first instruction inside it */
  int64_t elements;
  const double *input;
  struct memo memo;
};

struct frame {
  int tensor;
  const struct instruction *pc;
  int64_t at[PROGRAM_AXES];  /* values of the axes */
  int64_t end[PROGRAM_AXES]; /* exclusive upper bounds of the reduction axes */
  int64_t flat;
  int64_t points; /* reduction points done */
  double sum;     /* the accumulator, of any reducer */
};

struct interpreter {
  canvas_context *ctx;
  const struct program *p;
  struct stage *stages; /* by tensor */
  struct frame *frames; /* at most one per tensor, and one to return to */
  union cell *stack;
  size_t bytes, bytes_limit;
  uint64_t steps, steps_limit, steps_asked; /* steps_asked: at the last call of `stop` */
  bool (*stop)(void *data);
  void *data;
};

/* Compilation of expressions */

struct writer {
  const struct program *p;
  struct stage *s;
  int height;
};

/* Adds an instruction that changes the stack's height by `change`. */
static int write(struct writer *w, struct instruction instruction, int change) {
  w->height += change;
  if (w->height > w->s->height) w->s->height = w->height;
  VEC_PUSH(&w->s->code, instruction);
  return w->s->code.count - 1;
}

static void jump_here(struct writer *w, int from) {
  w->s->code.data[from].to = w->s->code.count;
}

static void write_expr(struct writer *w, int expr);

static enum code load_code(const struct program_tensor *t) {
  if (!t->is_input) return CODE_LOAD_STAGE;
  if (t->dtype == PROGRAM_I32) return CODE_LOAD_INDEX;
  return t->dtype == PROGRAM_BF16 ? CODE_LOAD_ROUND : CODE_LOAD_INPUT;
}

static void write_load(struct writer *w, const struct px_node *n) {
  const struct program_tensor *t = &w->p->tensors.data[n->tensor];
  for (int i = 0; i < t->rank; i++) write_expr(w, w->p->indices.data[n->first + i]);
  write(w, (struct instruction){.code = load_code(t), .to = n->tensor}, 1 - t->rank);
}

/* if a then b else c; a && b is if a then b else 0; a || b is if a then 1 else b */
static void write_choice(struct writer *w, const struct px_node *n) {
  struct instruction constant = {.code = CODE_INT, .integer = n->op == PX_OR};
  write_expr(w, n->arg[0]);
  int otherwise = write(w, (struct instruction){.code = CODE_JUMP_FALSE}, -1);
  if (n->op == PX_OR)
    write(w, constant, 1);
  else
    write_expr(w, n->arg[1]);
  int end = write(w, (struct instruction){.code = CODE_JUMP}, -1);
  jump_here(w, otherwise);
  if (n->op == PX_AND)
    write(w, constant, 1);
  else
    write_expr(w, n->arg[n->op == PX_OR ? 1 : 2]);
  jump_here(w, end);
}

static enum code operator_code(const struct program *p, const struct px_node *n) {
  bool value = p->nodes.data[n->arg[0]].sort == PX_VALUE;
  return (enum code)(CODE_ADD_I + 2 * (n->op - PX_ADD) + value);
}

static void write_expr(struct writer *w, int expr) {
  const struct px_node *n = &w->p->nodes.data[expr];
  struct instruction leaf = {.code = CODE_INT, .integer = n->integer};
  switch (n->op) {
    case PX_INT:
    case PX_BOOL: write(w, leaf, 1); return;
    case PX_NUMBER:
      write(w, (struct instruction){.code = CODE_NUMBER, .number = n->number}, 1);
      return;
    case PX_AXIS:
      write(w, (struct instruction){.code = CODE_AXIS, .to = (int)n->integer}, 1);
      return;
    case PX_LOAD: write_load(w, n); return;
    case PX_SELECT:
    case PX_AND:
    case PX_OR: write_choice(w, n); return;
    default: break;
  }
  write_expr(w, n->arg[0]);
  if (n->arg[1] >= 0) write_expr(w, n->arg[1]);
  struct instruction operation = {.code = operator_code(w->p, n)};
  write(w, operation, n->arg[1] >= 0 ? -1 : 0);
}

static void write_stage(const struct program *p, int tensor, struct stage *s) {
  const struct program_tensor *t = &p->tensors.data[tensor];
  struct writer w = {p, s, 0};
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    if (t->axes[i].low >= 0) {
      write_expr(&w, t->axes[i].low);
      write_expr(&w, t->axes[i].high);
      write(&w, (struct instruction){.code = CODE_ENTER, .to = i}, -2);
    }
    s->inside[i] = s->code.count;
  }
  write_expr(&w, t->body);
  write(&w, (struct instruction){.code = CODE_END}, -1);
}

/* The element cache */

static bool take_bytes(struct interpreter *in, int64_t bytes) {
  if ((uint64_t)bytes > in->bytes_limit - in->bytes) return false;
  in->bytes += (size_t)bytes;
  return true;
}

/* Uses an array if it is small: at most a quarter of the memory limit. */
static bool open_dense(struct interpreter *in, struct stage *s) {
  struct memo *m = &s->memo;
  int64_t words = (s->elements + 63) / 64, bytes = 8 * s->elements + 8 * words;
  if ((uint64_t)bytes > in->bytes_limit / 4 || !take_bytes(in, bytes)) return false;
  m->values = mem_try((size_t)s->elements, sizeof *m->values);
  m->known = mem_try((size_t)words, sizeof *m->known);
  if (m->values && m->known) return true;
  mem_free(m->values);
  mem_free(m->known);
  m->values = NULL;
  m->known = NULL;
  in->bytes -= (size_t)bytes;
  return false;
}

/* The slot of this element, or the free slot for it. */
static int64_t find_key(const struct memo *m, int64_t flat) {
  uint64_t hash = (uint64_t)flat * 0x9E3779B97F4A7C15u;
  int64_t slot = (int64_t)((hash ^ hash >> 32) & (uint64_t)(m->capacity - 1));
  while (m->keys[slot] && m->keys[slot] != flat + 1) slot = (slot + 1) & (m->capacity - 1);
  return slot;
}

static canvas_status memory_full(struct interpreter *in, int tensor) {
  return fail(in->ctx, CANVAS_IO,
              "evaluating stage '%.40s' takes more than %zu bytes of memory, ask for fewer "
              "elements",
              in->p->tensors.data[tensor].name, in->bytes_limit);
}

static canvas_status grow_sparse(struct interpreter *in, int tensor) {
  struct memo *m = &in->stages[tensor].memo, fresh = {.count = m->count};
  fresh.capacity = m->capacity ? 2 * m->capacity : 64;
  if (!take_bytes(in, 16 * fresh.capacity)) return memory_full(in, tensor);
  fresh.values = mem_try((size_t)fresh.capacity, sizeof *fresh.values);
  fresh.keys = mem_try((size_t)fresh.capacity, sizeof *fresh.keys);
  if (!fresh.values || !fresh.keys) {
    mem_free(fresh.values);
    mem_free(fresh.keys);
    in->bytes -= (size_t)(16 * fresh.capacity);
    return fail(in->ctx, CANVAS_IO, "no memory for the values of stage '%.40s'",
                in->p->tensors.data[tensor].name);
  }
  for (int64_t i = 0; i < m->capacity; i++)
    if (m->keys[i]) {
      int64_t slot = find_key(&fresh, m->keys[i] - 1);
      fresh.keys[slot] = m->keys[i];
      fresh.values[slot] = m->values[i];
    }
  in->bytes -= (size_t)(16 * m->capacity);
  mem_free(m->values);
  mem_free(m->keys);
  *m = fresh;
  return CANVAS_OK;
}

static bool recall(const struct stage *s, int64_t flat, double *value) {
  const struct memo *m = &s->memo;
  if (m->known) {
    if (!(m->known[flat / 64] >> (flat % 64) & 1)) return false;
    *value = m->values[flat];
    return true;
  }
  if (!m->keys) return false;
  int64_t slot = find_key(m, flat);
  if (!m->keys[slot]) return false;
  *value = m->values[slot];
  return true;
}

static canvas_status remember(struct interpreter *in, int tensor, int64_t flat, double value) {
  struct stage *s = &in->stages[tensor];
  struct memo *m = &s->memo;
  if (!m->known && !m->keys) open_dense(in, s);
  if (m->known) {
    m->values[flat] = value;
    m->known[flat / 64] |= (uint64_t)1 << (flat % 64);
    return CANVAS_OK;
  }
  if (2 * m->count >= m->capacity) TRY(grow_sparse(in, tensor));
  int64_t slot = find_key(m, flat);
  m->keys[slot] = flat + 1;
  m->values[slot] = value;
  m->count++;
  return CANVAS_OK;
}

/* Evaluation */

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r < 0 ? r + b : r;
}

static double least(double a, double b) {
  return b < a || b != b ? b : a;
}

static double most(double a, double b) {
  return b > a || b != b ? b : a;
}

static double start_value(enum program_reducer reducer) {
  switch (reducer) {
    case REDUCE_MAX: return -HUGE_VAL;
    case REDUCE_MIN: return HUGE_VAL;
    case REDUCE_PROD: return 1;
    default: return 0;
  }
}

static double combine(enum program_reducer reducer, double sum, double value) {
  switch (reducer) {
    case REDUCE_SUM:
    case REDUCE_MEAN: return sum + value;
    case REDUCE_MAX: return most(sum, value);
    case REDUCE_MIN: return least(sum, value);
    case REDUCE_PROD: return sum * value;
    default: return value;
  }
}

static void print_index(struct buf *buf, const char *name, const int64_t *index, int rank) {
  buf_printf(buf, "%.40s[", name);
  for (int i = 0; i < rank; i++) buf_printf(buf, "%s%lld", i ? ", " : "", (long long)index[i]);
  buf_puts(buf, "]");
}

static canvas_status out_of_range(struct interpreter *in, const struct frame *f, int tensor,
                                  const int64_t *index) {
  const struct program_tensor *to = &in->p->tensors.data[tensor];
  struct buf text = {0};
  int i = 0;
  while (index[i] >= 0 && index[i] < to->axes[i].size) i++;
  print_index(&text, to->name, index, to->rank);
  if (f) {
    const struct program_tensor *from = &in->p->tensors.data[f->tensor];
    buf_puts(&text, "' for '");
    print_index(&text, from->name, f->at, from->rank);
    for (int r = from->rank; r < from->rank + from->reductions; r++)
      buf_printf(&text, "%s%.40s=%lld", r > from->rank ? ", " : "' at '", from->axes[r].name,
                 (long long)f->at[r]);
  }
  canvas_status status =
      fail(in->ctx, CANVAS_BAD_INPUT, "%s '%s' is out of range: axis '%.40s' has size %lld",
           f ? "load of" : "element", text.text, to->axes[i].name, (long long)to->axes[i].size);
  buf_free(&text);
  return status;
}

/* The row-major position; -1 if an index is out of range. */
static int64_t flatten(const struct program_tensor *t, const int64_t *index) {
  int64_t flat = 0;
  for (int i = 0; i < t->rank; i++) {
    if (index[i] < 0 || index[i] >= t->axes[i].size) return -1;
    flat = flat * t->axes[i].size + index[i];
  }
  return flat;
}

static void open_frame(struct interpreter *in, struct frame *f, int tensor, const int64_t *index,
                       int64_t flat) {
  const struct program_tensor *t = &in->p->tensors.data[tensor];
  f->tensor = tensor;
  f->pc = in->stages[tensor].code.data;
  f->flat = flat;
  f->points = 0;
  f->sum = start_value(t->reducer);
  for (int i = 0; i < t->rank; i++) f->at[i] = index[i]; /* index may be NULL for a scalar */
  for (int i = t->rank; i < t->rank + t->reductions; i++) {
    f->at[i] = 0;
    f->end[i] = t->axes[i].size;
  }
}

/* Axis `i` is finished: advances an axis outside it to the next point of the reduction, in
 * row-major order. `*done`: there is none, and f->sum is the element. */
static canvas_status move_on(struct interpreter *in, struct frame *f, int i, bool *done) {
  const struct program_tensor *t = &in->p->tensors.data[f->tensor];
  const struct stage *s = &in->stages[f->tensor];
  in->steps += (uint64_t)s->code.count;
  if (in->steps > in->steps_limit)
    return fail(in->ctx, CANVAS_IO,
                "evaluating stage '%.40s' takes more than %llu steps, ask for fewer elements",
                t->name, (unsigned long long)in->steps_limit);
  if (in->steps - in->steps_asked > ASK && in->stop) {
    in->steps_asked = in->steps;
    if (in->stop(in->data))
      return fail(
          in->ctx, CANVAS_IO,
          "evaluating one element of stage '%.40s' takes too long: its reduction is too large",
          t->name);
  }
  for (i--; i >= t->rank; i--) {
    f->pc = s->code.data + s->inside[i];
    if (++f->at[i] < f->end[i]) return CANVAS_OK;
    f->at[i] = 0;
  }
  *done = true;
  if (t->reducer == REDUCE_MEAN) f->sum /= (double)f->points;
  f->sum = program_stored(t->dtype, f->sum);
  return remember(in, f->tensor, f->flat, f->sum);
}

/* Reduces one value of the body. */
static canvas_status end_point(struct interpreter *in, struct frame *f, double value, bool *done) {
  const struct program_tensor *t = &in->p->tensors.data[f->tensor];
  f->sum = combine(t->reducer, f->sum, value);
  f->points++;
  return move_on(in, f, t->rank + t->reductions, done);
}

/* Stores a result in the member of its type: integers and conditions in i, doubles in d. */
static inline void put_index(union cell *cell, int64_t value) {
  cell->i = value;
}

static inline void put_value(union cell *cell, double value) {
  cell->d = value;
}

#define PUT(cell, value) _Generic((value), double: put_value, default: put_index)(cell, value)

/* Replaces the operands a and b by the result; a unary operation has b = a. */
#define OPERATE(from, type, arity, result)                \
  {                                                       \
    sp -= (arity) - 1;                                    \
    const type a = sp[-1].from, b = sp[(arity) - 2].from; \
    (void)a, (void)b;                                     \
    PUT(&sp[-1], result);                                 \
    break;                                                \
  }
#define NEVER 0 /* impossible: the sorts of a program forbid it */

/* Runs the first frame, and the frames that it needs, until its element is computed. */
static canvas_status run_frames(struct interpreter *in, double *out) {
  struct frame *f = in->frames;
  union cell *sp = in->stack; /* the next free cell */
  int64_t index[PROGRAM_AXES];
  for (bool done = false;;) {
    const struct instruction *now = f->pc++;
    switch (now->code) {
      case CODE_INT: (sp++)->i = now->integer; break;
      case CODE_NUMBER: (sp++)->d = now->number; break;
      case CODE_AXIS: (sp++)->i = f->at[now->to]; break;
      case CODE_JUMP: f->pc = in->stages[f->tensor].code.data + now->to; break;
      case CODE_JUMP_FALSE:
        if (!(--sp)->i) f->pc = in->stages[f->tensor].code.data + now->to;
        break;
      case CODE_LOAD_INPUT:
      case CODE_LOAD_ROUND:
      case CODE_LOAD_INDEX:
      case CODE_LOAD_STAGE: {
        const struct program_tensor *t = &in->p->tensors.data[now->to];
        sp -= t->rank;
        for (int i = 0; i < t->rank; i++) index[i] = sp[i].i;
        int64_t flat = flatten(t, index);
        if (flat < 0) return out_of_range(in, f, now->to, index);
        const struct stage *s = &in->stages[now->to];
        if (now->code == CODE_LOAD_INPUT)
          (sp++)->d = s->input[flat];
        else if (now->code == CODE_LOAD_ROUND)
          (sp++)->d = program_stored(t->dtype, s->input[flat]);
        else if (now->code == CODE_LOAD_INDEX)
          (sp++)->i = (int64_t)s->input[flat];
        else if (recall(s, flat, &sp->d))
          sp++;
        else
          open_frame(in, ++f, now->to, index, flat);
        break;
      }
      case CODE_ENTER:
        sp -= 2;
        f->at[now->to] = sp[0].i;
        f->end[now->to] = sp[1].i;
        if (sp[0].i < sp[1].i) break;
        TRY(move_on(in, f, now->to, &done));
        break;
      case CODE_END: TRY(end_point(in, f, (--sp)->d, &done)); break;
#define X(op, text, binding, arity, sorts, counted, index, value, ...) \
  case CODE_##op##_I: OPERATE(i, int64_t, arity, index)                \
  case CODE_##op: OPERATE(d, double, arity, value)
        SCALAR_OPS(X)
#undef X
    }
    if (!done) continue;
    if (f == in->frames) {
      *out = f->sum;
      return CANVAS_OK;
    }
    (sp++)->d = f->sum;
    f--;
    done = false;
  }
}

canvas_status interpreter_element(struct interpreter *in, int tensor, const int64_t *index,
                                  double *out) {
  if (tensor < 0 || tensor >= in->p->tensors.count)
    return fail(in->ctx, CANVAS_BAD_INPUT, "tensor %d does not exist", tensor);
  const struct program_tensor *t = &in->p->tensors.data[tensor];
  int64_t flat = flatten(t, index);
  if (flat < 0) return out_of_range(in, NULL, tensor, index);
  if (t->is_input) {
    *out = program_stored(t->dtype, in->stages[tensor].input[flat]);
    return CANVAS_OK;
  }
  if (recall(&in->stages[tensor], flat, out)) return CANVAS_OK;
  open_frame(in, in->frames, tensor, index, flat);
  return run_frames(in, out);
}

canvas_status interpreter_elements(struct interpreter *in, int tensor, int64_t count,
                                   const int64_t *flat, double *out) {
  if (tensor < 0 || tensor >= in->p->tensors.count)
    return fail(in->ctx, CANVAS_BAD_INPUT, "tensor %d does not exist", tensor);
  const struct program_tensor *t = &in->p->tensors.data[tensor];
  int64_t elements = program_elements(in->p, tensor), index[PROGRAM_AXES];
  for (int64_t i = 0; i < count; i++) {
    int64_t at = flat ? flat[i] : count - 1;
    if (at < 0 || at >= elements)
      return fail(in->ctx, CANVAS_BAD_INPUT, "element %lld does not exist, '%.40s' has %lld",
                  (long long)at, t->name, (long long)elements);
    if (!flat) break;
  }
  for (int64_t i = 0; i < count; i++) {
    int64_t left = flat ? flat[i] : i;
    for (int a = t->rank - 1; a >= 0; a--) {
      index[a] = left % t->axes[a].size;
      left /= t->axes[a].size;
    }
    TRY(interpreter_element(in, tensor, index, &out[i]));
  }
  return CANVAS_OK;
}

canvas_status interpreter_new(canvas_context *ctx, const struct program *p,
                              const double *const *inputs, const struct interpreter_limits *limits,
                              struct interpreter **out) {
  *out = NULL;
  TRY(program_verify(ctx, p));
  for (int i = 0; i < p->inputs.count; i++) TRY(program_check_input(ctx, p, i, inputs[i]));
  struct interpreter *in = mem_alloc(sizeof *in);
  in->ctx = ctx;
  in->p = p;
  in->bytes_limit = limits && limits->bytes ? limits->bytes : (size_t)1 << 30;
  in->steps_limit = limits && limits->steps ? limits->steps : (uint64_t)1 << 36;
  if (limits) {
    in->stop = limits->stop;
    in->data = limits->data;
  }
  in->stages = mem_alloc((size_t)p->tensors.count * sizeof *in->stages);
  in->frames = mem_alloc((size_t)p->tensors.count * sizeof *in->frames);
  size_t height = 0;
  for (int i = 0; i < p->tensors.count; i++) {
    in->stages[i].elements = program_elements(p, i);
    if (!p->tensors.data[i].is_input) write_stage(p, i, &in->stages[i]);
    height += (size_t)in->stages[i].height;
  }
  for (int i = 0; i < p->inputs.count; i++) in->stages[p->inputs.data[i]].input = inputs[i];
  in->stack = mem_alloc(height * sizeof *in->stack);
  *out = in;
  return CANVAS_OK;
}

void interpreter_free(struct interpreter *in) {
  if (!in) return;
  for (int i = 0; i < in->p->tensors.count; i++) {
    struct stage *s = &in->stages[i];
    mem_free(s->code.data);
    mem_free(s->memo.values);
    mem_free(s->memo.known);
    mem_free(s->memo.keys);
  }
  mem_free(in->stages);
  mem_free(in->frames);
  mem_free(in->stack);
  mem_free(in);
}
