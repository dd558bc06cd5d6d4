/* The frame of a function whose buffers are too large for the stack. They are in one piece of
 * memory, its workspace, which the caller may provide.
 *
 *     static int NAME_body(.., float *restrict P)      the code of the schedule
 *     int NAME_with_workspace(.., void *workspace)     allocates no memory
 *     void NAME_free_workspace(void)                   also called when a shared object is unloaded
 *     int NAME(..)                                     finds the workspace itself
 *
 * The system fills fresh pages with zeros, which may take longer than the function itself. So NAME
 * leaves its workspace in NAME_kept for the next call. A call that runs at the same time finds none
 * there and allocates its own; when both return theirs, the first one is freed.
 *
 * Buffers are parameters of NAME_body: compilers trust `restrict` of two parameters, and not of two
 * pointers that are computed from one.
 */
#include <inttypes.h>

#include "emit/print_c.h"

const char *const workspace_suffixes[] = {"_body", "_kept", "_with_workspace", "_free_workspace",
                                          NULL};

/* From the code, where a buffer may have a few more elements than its stage. */
int64_t workspace_bytes(const struct code *c) {
  int64_t bytes = 0;
  for (int i = 0; i < c->statements.count; i++) {
    const struct code_statement *s = &c->statements.data[i];
    if (s->kind != CODE_ALLOCATE || s->parent != 0) continue;
    for (int j = 0; j < s->count; j++)
      bytes += print_bytes_of(&c->variables.data[c->lists.data[s->first_list + j]]);
  }
  return bytes;
}

static const struct code_variable *buffer(const struct printer *p, int i) {
  return &p->code->variables.data[p->code->lists.data[p->first_buffer + i]];
}

void workspace_print_buffers(struct printer *p, struct buf *out) {
  for (int i = 0; i < p->buffers; i++) {
    char type[16];
    int variable = p->code->lists.data[p->first_buffer + i];
    buf_printf(out, ", %s *restrict %s", print_type(p, buffer(p, i)->type, type),
               p->name[variable]);
  }
}

/* int NAME_with_workspace(.., void *workspace) {
 *   return NAME_body(X, Y, workspace, (char *)workspace + 64);
 * }; returns the bytes of the workspace */
static int64_t put_with_workspace(struct printer *p, const char *parameters, const char *arguments,
                                  const char *workspace, enum workspace from, const char *linkage,
                                  struct buf *out) {
  struct buf text = {0};
  int64_t at = 0;
  buf_printf(&text, "%sint %s%s(%s, void *%s) {", from == WORKSPACE_ONCE ? "static " : linkage,
             p->function, from == WORKSPACE_GIVEN ? "" : "_with_workspace", parameters, workspace);
  print_wrapped(text.text, text.length, 0, out);
  buf_free(&text);
  buf_printf(&text, "return %s_body(%s", p->function, arguments);
  for (int i = 0; i < p->buffers; i++) {
    char type[16];
    if (at)
      buf_printf(&text, ", (%s *)((char *)%s + %" PRId64 ")",
                 print_type(p, buffer(p, i)->type, type), workspace, at);
    else
      buf_printf(&text, ", %s", workspace);
    at += print_bytes_of(buffer(p, i));
  }
  buf_puts(&text, ");");
  buf_puts(out, "\n");
  print_wrapped(text.text, text.length, 1, out);
  buf_puts(out, "\n}\n");
  buf_free(&text);
  return at;
}

/* The workspace between calls, and the function that frees it. */
static void put_kept(const struct printer *p, struct buf *out) {
  buf_printf(out,
             "\nstatic void *%s_kept; /* the workspace of the last call, for the next one */\n\n"
             "__attribute__((destructor)) void %s_free_workspace(void) {\n"
             "  free(__atomic_exchange_n(&%s_kept, NULL, __ATOMIC_ACQ_REL));\n}\n",
             p->function, p->function, p->function);
}

void workspace_print(struct printer *p, const char *parameters, const char *arguments,
                     enum workspace from, const char *linkage, struct buf *out) {
  const char *workspace = names_choose(&p->names, "workspace", false), *f = p->function;
  bool once = from == WORKSPACE_ONCE;
  struct buf text = {0};
  buf_puts(out, "\n");
  int64_t bytes = put_with_workspace(p, parameters, arguments, workspace, from, linkage, out);
  if (from == WORKSPACE_GIVEN) return;
  if (!once) put_kept(p, out);
  buf_printf(&text, "%sint %s(%s) {", linkage, f, parameters);
  buf_puts(out, "\n");
  print_wrapped(text.text, text.length, 0, out);
  buf_puts(out, "\n");
  if (once)
    buf_printf(out, "  void *%s = aligned_alloc(64, %" PRId64 ");\n", workspace, bytes);
  else
    buf_printf(out,
               "  void *%s = __atomic_exchange_n(&%s_kept, NULL, __ATOMIC_ACQ_REL);\n"
               "  if (!%s) %s = aligned_alloc(64, %" PRId64 ");\n",
               workspace, f, workspace, workspace, bytes);
  buf_printf(out, "  if (!%s) return 1;\n", workspace);
  buf_free(&text);
  buf_printf(&text, "int status = %s_with_workspace(%s, %s);", f, arguments, workspace);
  print_wrapped(text.text, text.length, 1, out);
  if (once)
    buf_printf(out, "\n  free(%s);\n", workspace);
  else
    buf_printf(out, "\n  free(__atomic_exchange_n(&%s_kept, %s, __ATOMIC_ACQ_REL));\n", f,
               workspace);
  buf_puts(out, "  return status;\n}\n");
  buf_free(&text);
}
