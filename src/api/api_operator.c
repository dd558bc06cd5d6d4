/* The operator library: its rows as text, JSON and Markdown, an operator's arguments, its program. */
#include <string.h>

#include "base/json.h"
#include "api/api_call.h"
#include "api/handle.h"
#include "operator/operator.h"

API_STATUS(canvas_operator_program,
           (canvas_context * ctx, const char *name, const char *arguments, size_t length,
            canvas_program **out),
           (ctx, name, arguments, length, out)) {
  NEED(name);
  NEED(out);
  struct program *p;
  TRY(operator_program(ctx, name, arguments, length, &p));
  *out = (canvas_program *)p;
  return CANVAS_OK;
}

/* "conv1d batch=1 in_channels length ...": what has no default stands bare. */
static void print_arguments(const struct operator_row *r, struct buf *out) {
  buf_printf(out, "%s %s", r->name, r->arguments);
}

static void print_columns(struct buf *out) {
  enum { MEANING = 24 };
  for (int i = 0; i < operator_count; i++) {
    size_t line = out->length;
    buf_puts(out, operator_rows[i].name);
    buf_pad(out, line, MEANING);
    buf_printf(out, " %s\n", operator_rows[i].meaning);
  }
}

static void print_json(struct buf *out) {
  buf_puts(out, "[");
  for (int i = 0; i < operator_count; i++) {
    const struct operator_row *r = &operator_rows[i];
    struct row_argument a;
    buf_printf(out, "%s{\"name\": \"%s\", \"arguments\": {", i ? ",\n " : "", r->name);
    for (int k = 0; operator_argument_at(r, k, &a); k++) {
      buf_printf(out, "%s\"%s\": ", k ? ", " : "", argument_rows[a.argument].name);
      if (a.otherwise)
        buf_printf(out, "\"%.*s\"", a.length, a.otherwise);
      else
        buf_puts(out, "null");
    }
    buf_puts(out, "}, \"meaning\": ");
    json_string(out, r->meaning);
    buf_puts(out, "}");
  }
  buf_puts(out, "]\n");
}

static void print_markdown(struct buf *out) {
  buf_puts(out, "| operator and arguments | meaning |\n|---|---|\n");
  for (int i = 0; i < operator_count; i++) {
    buf_puts(out, "| `");
    print_arguments(&operator_rows[i], out);
    buf_printf(out, "` | %s |\n", operator_rows[i].meaning);
  }
}

API_VALUE(char *, canvas_operators_print, (canvas_format format), (format), NULL) {
  struct buf out = {0};
  switch (format) {
    case CANVAS_JSON: print_json(&out); break;
    case CANVAS_MARKDOWN: print_markdown(&out); break;
    case CANVAS_TEXT: print_columns(&out); break;
    default: return NULL;
  }
  return buf_take(&out);
}

API_STATUS(canvas_operator_describe, (canvas_context * ctx, const char *name, char **out),
           (ctx, name, out)) {
  NEED(name);
  NEED(out);
  enum { MEANING = 24 };
  const struct operator_row *r;
  struct row_argument a;
  struct buf b = {0};
  TRY(operator_named(ctx, name, &r));
  buf_printf(&b, "%s: %s\n\n", r->name, r->meaning);
  for (int i = 0; operator_argument_at(r, i, &a); i++) {
    const struct argument_row *row = &argument_rows[a.argument];
    size_t line = b.length;
    buf_printf(&b, "  %s=%.*s", row->name, a.length, a.otherwise ? a.otherwise : "");
    buf_pad(&b, line, MEANING);
    buf_printf(&b, " %s: %s\n", row->meaning, operator_value_form(r, a.argument));
  }
  *out = buf_take(&b);
  return CANVAS_OK;
}
