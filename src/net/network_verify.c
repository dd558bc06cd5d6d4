/* Verifies the rules of a network. See network.h.
 *
 * Names are sorted once to find duplicates; everything else is one pass over the calls.
 */
#include <stdlib.h>
#include <string.h>

#include "net/network.h"

static const char *const words[] = {"canvas", "network", "program", "in",    "weight",
                                    "from",   "out",     "end",     "rising"};

static bool is_word(const char *name) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(words[i], name)) return true;
  return false;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(const char *name) {
  if (!is_letter(*name) || strlen(name) > PROGRAM_NAME) return false;
  for (; *name; name++)
    if (!is_letter(*name) && !(*name >= '0' && *name <= '9')) return false;
  return true;
}

static canvas_status check_name(canvas_context *ctx, const char *what, const char *name) {
  if (!is_name(name))
    return fail(ctx, CANVAS_BAD_INPUT,
                "'%.40s' cannot name a %s, take letters, digits and _, at most %d", name, what,
                PROGRAM_NAME);
  if (is_word(name))
    return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is a word of the language, rename the %s", name,
                what);
  return CANVAS_OK;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Takes ownership of `names`. */
static canvas_status check_names(canvas_context *ctx, const char *what, const char **names,
                                 int count) {
  canvas_status status = CANVAS_OK;
  qsort(names, (size_t)count, sizeof *names, by_text);
  for (int i = 0; i < count && status == CANVAS_OK; i++) {
    status = check_name(ctx, what, names[i]);
    if (status == CANVAS_OK && i && !strcmp(names[i - 1], names[i]))
      status =
          fail(ctx, CANVAS_BAD_INPUT, "two %ss have the name '%.40s', rename one", what, names[i]);
  }
  mem_free(names);
  return status;
}

static canvas_status check_all_names(canvas_context *ctx, const struct network *n) {
  int tensors = n->tensors.count, programs = n->programs.count;
  const char **names = mem_alloc((size_t)(tensors + 1) * sizeof *names);
  for (int i = 0; i < tensors; i++) names[i] = n->tensors.data[i].name;
  TRY(check_names(ctx, "tensor", names, tensors));
  names = mem_alloc((size_t)(programs + 1) * sizeof *names);
  for (int i = 0; i < programs; i++) names[i] = n->programs.data[i]->name;
  return check_names(ctx, "program", names, programs);
}

static canvas_status check_tensor(canvas_context *ctx, const struct net_tensor *t) {
  int64_t elements = 1;
  for (int i = 0; i < t->rank; i++) {
    if (t->sizes[i] < 1 || t->sizes[i] > PROGRAM_ELEMENTS / elements)
      return fail(ctx, CANVAS_BAD_INPUT,
                  "tensor '%.40s' has the size %lld, sizes are positive and their product is at "
                  "most 2^40",
                  t->name, (long long)t->sizes[i]);
    elements *= t->sizes[i];
  }
  if (t->kind == NET_VALUE && t->dtype == PROGRAM_I32)
    return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is of i32, which only inputs and weights may be",
                t->name);
  return CANVAS_OK;
}

/* "f32 [1, 8, 6, 6]" */
static void put_type(char out[120], enum program_dtype dtype, int rank, const int64_t *sizes) {
  struct buf text = {0};
  buf_printf(&text, "%s [", program_dtype_name(dtype));
  for (int i = 0; i < rank; i++) buf_printf(&text, "%s%lld", i ? ", " : "", (long long)sizes[i]);
  buf_puts(&text, "]");
  size_t length = text.length < 119 ? text.length : 119;
  memcpy(out, text.text, length);
  out[length] = '\0';
  buf_free(&text);
}

static void axis_sizes(const struct program_tensor *t, int64_t *sizes) {
  for (int i = 0; i < t->rank; i++) sizes[i] = t->axes[i].size;
}

static bool same_type(const struct net_tensor *a, const struct program_tensor *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->sizes[i] != b->axes[i].size) return false;
  return true;
}

static canvas_status check_type(canvas_context *ctx, const struct program *p,
                                const struct net_tensor *a, const struct program_tensor *b) {
  char has[120], wanted[120];
  int64_t sizes[PROGRAM_AXES];
  if (same_type(a, b)) return CANVAS_OK;
  axis_sizes(b, sizes);
  put_type(has, a->dtype, a->rank, a->sizes);
  put_type(wanted, b->dtype, b->rank, sizes);
  return fail(ctx, CANVAS_BAD_INPUT, "tensor '%.40s' is %s, but '%.40s' of program '%.40s' is %s",
              a->name, has, b->name, p->name, wanted);
}

static canvas_status check_argument(canvas_context *ctx, const struct network *n,
                                    const struct program *p, int argument,
                                    const struct program_tensor *b) {
  const struct net_tensor *a = &n->tensors.data[argument];
  TRY(check_type(ctx, p, a, b));
  if (b->constant && !network_constant(n, argument))
    return fail(ctx, CANVAS_BAD_INPUT,
                "'%.40s' of program '%.40s' is constant, '%.40s' has to be a weight or computed of "
                "weights alone",
                b->name, p->name, a->name);
  if (a->dtype == PROGRAM_I32 && (a->least < b->least || a->most > b->most))
    return fail(
        ctx, CANVAS_BAD_INPUT,
        "tensor '%.40s' ranges over %lld..%lld, '%.40s' of program '%.40s' takes %lld..%lld",
        a->name, (long long)a->least, (long long)a->most + 1, b->name, p->name, (long long)b->least,
        (long long)b->most + 1);
  if (b->rising && (!a->rising || a->least != b->least || a->most != b->most))
    return fail(ctx, CANVAS_BAD_INPUT,
                "'%.40s' of program '%.40s' rises from %lld to %lld, so has '%.40s' to", b->name,
                p->name, (long long)b->least, (long long)b->most, a->name);
  return CANVAS_OK;
}

static canvas_status check_count(canvas_context *ctx, const struct program *p, const char *what,
                                 int has, int wanted) {
  if (has == wanted) return CANVAS_OK;
  return fail(ctx, CANVAS_BAD_INPUT, "program '%.40s' has %d %s%s, this call has %d", p->name,
              wanted, what, wanted == 1 ? "" : "s", has);
}

canvas_status network_verify_call(canvas_context *ctx, const struct network *n, int call) {
  const struct net_call *c = &n->calls.data[call];
  const struct program *p = n->programs.data[c->program];
  TRY(check_count(ctx, p, "input", c->arguments.count, p->inputs.count));
  TRY(check_count(ctx, p, "output", c->results.count, p->outputs.count));
  for (int i = 0; i < c->arguments.count; i++) {
    const struct net_tensor *t = &n->tensors.data[c->arguments.data[i]];
    if (t->kind == NET_VALUE && (t->call < 0 || t->call >= call))
      return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is read before it is computed", t->name);
    TRY(check_argument(ctx, n, p, c->arguments.data[i], &p->tensors.data[p->inputs.data[i]]));
  }
  for (int i = 0; i < c->results.count; i++) {
    const struct net_tensor *t = &n->tensors.data[c->results.data[i]];
    if (t->kind != NET_VALUE || t->call != call)
      return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is computed twice, each call gives new values",
                  t->name);
    TRY(check_type(ctx, p, t, &p->tensors.data[p->outputs.data[i]]));
  }
  return CANVAS_OK;
}

static canvas_status check_outputs(canvas_context *ctx, const struct network *n) {
  if (!n->outputs.count)
    return fail(ctx, CANVAS_BAD_INPUT, "network '%.40s' has no output, say 'out' and a value",
                n->name);
  for (int i = 0; i < n->outputs.count; i++) {
    const struct net_tensor *t = &n->tensors.data[n->outputs.data[i]];
    if (t->kind != NET_VALUE || t->call < 0)
      return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is not computed, an output is what a call gives",
                  t->name);
    for (int k = 0; k < i; k++)
      if (n->outputs.data[k] == n->outputs.data[i])
        return fail(ctx, CANVAS_BAD_INPUT, "'%.40s' is an output twice", t->name);
  }
  return CANVAS_OK;
}

static canvas_status check_limits(canvas_context *ctx, const struct network *n) {
  if (n->programs.count > NETWORK_PROGRAMS || n->tensors.count > NETWORK_TENSORS ||
      n->calls.count > NETWORK_CALLS)
    return fail(ctx, CANVAS_BAD_INPUT,
                "network '%.40s' is too large, at most %d programs, %d tensors and %d calls",
                n->name, NETWORK_PROGRAMS, NETWORK_TENSORS, NETWORK_CALLS);
  return CANVAS_OK;
}

canvas_status network_verify(canvas_context *ctx, const struct network *n) {
  TRY(check_limits(ctx, n));
  TRY(check_name(ctx, "network", n->name));
  TRY(check_all_names(ctx, n));
  for (int i = 0; i < n->programs.count; i++) TRY(program_verify(ctx, n->programs.data[i]));
  for (int i = 0; i < n->tensors.count; i++) TRY(check_tensor(ctx, &n->tensors.data[i]));
  for (int i = 0; i < n->calls.count; i++) TRY(network_verify_call(ctx, n, i));
  return check_outputs(ctx, n);
}
