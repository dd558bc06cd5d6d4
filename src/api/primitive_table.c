/* The primitive table as text, JSON and Markdown: every form is a walk over the rows. */
#include <string.h>

#include "api/api_call.h"
#include "base/json.h"
#include "kernel/attributes.h"

static const struct {
  unsigned bit;
  const char *name;
} facts[] = {
    {FACT_LINEAR, "linear"},     {FACT_WEIGHTS, "owns weights"},   {FACT_MOVES, "moves data only"},
    {FACT_COMMUTES, "commutes"}, {FACT_SEES, "brings neighbours"}, {FACT_ACTIVATION, "activation"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void print_name(const struct row *r, struct buf *out) {
  buf_puts(out, r->word);
  if (*r->mode) buf_printf(out, " %s", r->mode);
}

/* As a kernel's text has it, with inputs a and b: "fold a mean over=AXES". */
static void print_form(const struct row *r, struct buf *out) {
  buf_puts(out, r->word);
  for (int i = 0; i < r->arity; i++) buf_puts(out, i ? " b" : " a");
  if (*r->mode) buf_printf(out, " %s", r->mode);
  for (int i = 0; i < ATTRIBUTE_COUNT; i++)
    if (r->attributes >> i & 1) buf_printf(out, " %s", attributes[i].form);
}

static void print_facts(const struct row *r, struct buf *out) {
  const char *comma = "";
  for (size_t i = 0; i < COUNT(facts); i++)
    if (r->facts & facts[i].bit) buf_printf(out, "%s%s", comma, facts[i].name), comma = ", ";
}

static void print_columns(struct buf *out) {
  enum { FAMILY = 15, MEANING = 43 };
  for (int i = 0; i < PRIMITIVE_COUNT; i++) {
    const struct row *r = &primitive_rows[i];
    size_t line = out->length;
    buf_puts(out, r->family->name);
    buf_pad(out, line, FAMILY);
    buf_puts(out, " ");
    print_form(r, out);
    buf_pad(out, line, MEANING);
    buf_printf(out, " %s\n", r->meaning);
  }
}

static void print_attribute_names(const struct row *r, struct buf *out) {
  const char *comma = "";
  for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
    if (!(r->attributes >> i & 1)) continue;
    buf_puts(out, comma);
    json_string(out, attributes[i].key);
    comma = ", ";
  }
}

static void print_fact_names(const struct row *r, struct buf *out) {
  const char *comma = "";
  for (size_t i = 0; i < COUNT(facts); i++) {
    if (!(r->facts & facts[i].bit)) continue;
    buf_puts(out, comma);
    json_string(out, facts[i].name);
    comma = ", ";
  }
}

static void print_json_row(const struct row *r, struct buf *out) {
  struct buf name = {0};
  print_name(r, &name);
  buf_puts(out, "{\"name\": ");
  json_string(out, name.text);
  buf_free(&name);
  buf_puts(out, ", \"family\": ");
  json_string(out, r->family->name);
  buf_printf(out, ", \"inputs\": %d, \"attributes\": [", r->arity);
  print_attribute_names(r, out);
  buf_puts(out, "], \"facts\": [");
  print_fact_names(r, out);
  buf_puts(out, "], \"meaning\": ");
  json_string(out, r->meaning);
  buf_puts(out, "}");
}

static void print_json(struct buf *out) {
  buf_puts(out, "[");
  for (int i = 0; i < PRIMITIVE_COUNT; i++) {
    buf_puts(out, i ? ",\n " : "");
    print_json_row(&primitive_rows[i], out);
  }
  buf_puts(out, "]\n");
}

/* A bar inside a table's cell would end it. */
static void print_cell(const char *text, struct buf *out) {
  for (const char *p = text; *p; p++) {
    if (*p == '|') buf_puts(out, "\\");
    buf_bytes(out, p, 1);
  }
}

static void print_markdown(struct buf *out) {
  buf_puts(out, "| family | written | meaning | facts |\n|---|---|---|---|\n");
  for (int i = 0; i < PRIMITIVE_COUNT; i++) {
    const struct row *r = &primitive_rows[i];
    buf_printf(out, "| %s | `", r->family->name);
    print_form(r, out);
    buf_puts(out, "` | ");
    print_cell(r->meaning, out);
    buf_puts(out, " | ");
    print_facts(r, out);
    buf_puts(out, " |\n");
  }
}

API_VALUE(char *, canvas_primitives_print, (canvas_format format), (format), NULL) {
  struct buf out = {0};
  switch (format) {
    case CANVAS_JSON: print_json(&out); break;
    case CANVAS_MARKDOWN: print_markdown(&out); break;
    case CANVAS_TEXT: print_columns(&out); break;
    default: return NULL;
  }
  return buf_take(&out);
}
