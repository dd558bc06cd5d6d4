// JSON: what is written can be read, what is read is one flat object and nothing else.
#include "check.h"

#include "base/json.h"
#include "base/memory.h"

static canvas_context ctx;

#define BAD "\xef\xbf\xbd"  // U+FFFD

// ---- written ------------------------------------------------------------------------------------

static void strings_are_valid_wherever_they_come_from(void **state) {
  static const struct {
    const char *text, *written;
  } rows[] = {
      {"", "\"\""},
      {"plain", "\"plain\""},
      {"a \"b\" \\", "\"a \\\"b\\\" \\\\\""},
      {"1\n2\t3\r\x01\x7f", "\"1\\n2\\u00093\\u000d\\u0001\\u007f\""},
      {"\xc3\xa9\xe2\x80\x98\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x80\x98\xf0\x9f\x98\x80\""},
      {"\xc3", "\"" BAD "\""},                          // ends within a character
      {"\x80z", "\"" BAD "z\""},                        // begins within one
      {"\xc0\xaf", "\"" BAD BAD "\""},                  // two bytes for what fits one
      {"\xe0\x9f\xbf", "\"" BAD BAD BAD "\""},          // three for what fits two
      {"\xed\xa0\x80", "\"" BAD BAD BAD "\""},          // a surrogate
      {"\xf4\x90\x80\x80", "\"" BAD BAD BAD BAD "\""},  // beyond U+10FFFF
      {"\xf0\x8f\xbf\xbf", "\"" BAD BAD BAD BAD "\""},
      {"\xf5\x80\x80\x80", "\"" BAD BAD BAD BAD "\""},
      {"\xe2\x80", "\"" BAD BAD "\""},
      {"\xf0\x9f\x98x", "\"" BAD BAD BAD "x\""},
  };
  CHECK_ROWS (rows, row) {
    struct buf out = {0};
    json_string(&out, row->text);
    CHECK_TEXT(out.text, row->written, row->text);
    buf_free(&out);
  }
}

static void numbers_are_short_and_exact(void **state) {
  static const struct {
    double value;
    const char *written;
  } rows[] = {
      {0, "0"},
      {0.1, "0.1"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.0 / 3, "0.3333333333333333"},
      {0.0014, "0.0014"},
      {5e-324, "4.94065645841247e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {-2.5e-7, "-2.5e-07"},
      {INFINITY, "null"},
      {NAN, "null"},
  };
  CHECK_ROWS (rows, row) {
    struct buf out = {0};
    json_number(&out, row->value);
    CHECK_TEXT(out.text, row->written, row->written);
    if (isfinite(row->value)) CHECK(strtod(out.text, NULL) == row->value, row->written);
    buf_free(&out);
  }
}

// ---- read ---------------------------------------------------------------------------------------

// The members as lines "key kind text", or the error message.
static char *read_all(const char *text, size_t length) {
  static const char *const kinds[] = {"null", "false", "true", "number", "string"};
  struct json_reader r;
  struct buf out = {0};
  bool found = true;
  canvas_status status = CANVAS_OK;
  json_open(&r, &ctx, text, length);
  buf_puts(&out, "");
  while (found && status == CANVAS_OK) {
    status = json_next(&r, &found);
    if (status != CANVAS_OK || !found) break;
    bool valued = r.kind == JSON_NUMBER || r.kind == JSON_STRING;
    buf_printf(&out, "%s %s %s\n", r.key.text, kinds[r.kind], valued ? r.text.text : "");
  }
  json_close(&r);
  if (status != CANVAS_OK) {
    out.length = 0;
    buf_puts(&out, ctx.message);
  }
  return buf_take(&out);
}

static void reads_one_flat_object(void **state) {
  static const struct {
    const char *text, *result;
  } rows[] = {
      {"{}", ""},
      {" { } \r\n", ""},
      {"{\"a\":1}", "a number 1\n"},
      {"{ \"a\" : -0.5e+10 , \"b\":null,\"c\":true,\t\"d\":false}",
       "a number -0.5e+10\nb null \nc true \nd false \n"},
      {"{\"a\":\"\"}", "a string \n"},
      {"{\"\":\"x\"}", " string x\n"},
      {"{\"a\":\"q\\\"\\\\\\/\\t|\\u0041\\u00e9\\u2018\\ud83d\\ude00\"}",
       "a string q\"\\/\t|A\xc3\xa9\xe2\x80\x98\xf0\x9f\x98\x80\n"},
      {"{\"a\":\"\\b\\f\\n\\r\"}", "a string \b\f\n\r\n"},
      {"{\"a\":\"\\uFFFF\\u07ff\\u0800\"}", "a string \xef\xbf\xbf\xdf\xbf\xe0\xa0\x80\n"},
      {"{\"a\":1,\"a\":2}", "a number 1\na number 2\n"},
      // what is none
      {"", "column 1: expected '{'"},
      {"[]", "column 1: expected '{'"},
      {"{", "column 2: expected a key in quotes"},
      {"{a:1}", "column 2: expected a key in quotes"},
      {"{\"a\" 1}", "column 6: expected ':'"},
      {"{\"a\":}", "column 6: expected a string, a number, true, false or null"},
      {"{\"a\":[1]}", "column 6: expected a string, a number, true, false or null"},
      {"{\"a\":{}}", "column 6: expected a string, a number, true, false or null"},
      {"{\"a\":nul}", "column 6: expected a string, a number, true, false or null"},
      {"{\"a\":NaN}", "column 6: expected a string, a number, true, false or null"},
      {"{\"a\":+1}", "column 6: expected a string, a number, true, false or null"},
      {"{\"a\":01}", "column 7: expected ',' or '}'"},
      {"{\"a\":-}", "column 7: expected a digit"},
      {"{\"a\":1.}", "column 8: expected a digit"},
      {"{\"a\":1e}", "column 8: expected a digit"},
      {"{\"a\":1 \"b\":2}", "column 8: expected ',' or '}'"},
      {"{\"a\":1,}", "column 8: expected a key in quotes"},
      {"{,}", "column 2: expected a key in quotes"},
      {"{\"a\":1", "column 7: expected ',' or '}'"},
      {"{\"a\":1}x", "column 8: expected the end after '}'"},
      {"{\"a\":1}{}", "column 8: expected the end after '}'"},
      {"{\"a\":\"x", "column 8: the string does not end"},
      {"{\"a", "column 4: the string does not end"},
      {"{\"a\":\"x\\", "column 9: no such escape"},
      {"{\"a\":\"\\x41\"}", "column 8: no such escape"},
      {"{\"a\":\"\n\"}", "column 7: a control character in a string"},
      {"{\"a\":\"\\u00g0\"}", "column 11: expected four hexadecimal digits after '\\u'"},
      {"{\"a\":\"\\u12", "column 11: expected four hexadecimal digits after '\\u'"},
      {"{\"a\":\"\\u0000\"}", "column 13: a string may not hold the character 0"},
      {"{\"a\":\"\\udc00\"}", "column 13: the second half of a pair without its first"},
      {"{\"a\":\"\\ud800\"}", "column 13: the first half of a pair without its second"},
      {"{\"a\":\"\\ud800\\n\"}", "column 14: the first half of a pair without its second"},
      {"{\"a\":\"\\ud800\\ud800\"}", "column 19: the first half of a pair without its second"},
  };
  CHECK_ROWS (rows, row) {
    char *result = read_all(row->text, strlen(row->text));
    CHECK_TEXT(result, row->result, row->text);
    free(result);
  }
}

// Bytes beyond the given length are not looked at, and a NUL is no end.
static void length_is_what_counts(void **state) {
  char *result = read_all("{\"a\":12}", 7);
  CHECK_TEXT(result, "column 8: expected ',' or '}'", "cut");
  free(result);
  result = read_all("{\"a\":1\0}", 8);
  CHECK_TEXT(result, "column 7: expected ',' or '}'", "a NUL between");
  free(result);
  result = read_all("{\"a\":\"\0\"}", 9);
  CHECK_TEXT(result, "column 7: a control character in a string", "a NUL in a string");
  free(result);
  result = read_all("{\"a\":\"\\\0\"}", 10);
  CHECK_TEXT(result, "column 8: no such escape", "an escaped NUL");
  free(result);
}

// Every text that can be a string of ours comes back.
static void strings_come_back(void **state) {
  for (int first = 1; first < 256; first++)
    for (int second = 1; second < 128; second += first < 128 ? 1 : 126) {
      const char text[] = {(char)first, (char)second, '"', 0};
      struct buf line = {0};
      buf_puts(&line, "{\"a\":");
      json_string(&line, text);
      buf_puts(&line, "}");
      char *result = read_all(line.text, line.length);
      struct buf wanted = {0};
      buf_printf(&wanted, "a string %s%c\"\n", first < 128 ? (char[]){text[0], 0} : "\xef\xbf\xbd",
                 second);
      CHECK_TEXT(result, wanted.text, line.text);
      buf_free(&wanted);
      buf_free(&line);
      free(result);
    }
}

CHECK_MAIN(cmocka_unit_test(strings_are_valid_wherever_they_come_from),
           cmocka_unit_test(numbers_are_short_and_exact), cmocka_unit_test(reads_one_flat_object),
           cmocka_unit_test(length_is_what_counts), cmocka_unit_test(strings_come_back))
