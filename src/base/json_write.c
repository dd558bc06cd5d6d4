/* JSON that is written. See json.h. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"

/* Bytes of the UTF-8 character at `p`, 0 if there is none. */
static int character_length(const unsigned char *p) {
  static const struct {
    unsigned char mask, head; /* of the first byte */
    int length;
    unsigned char low,
        high; /* the second: neither overlong, nor a surrogate, nor beyond U+10FFFF */
  } rows[] = {
      {0xff, 0xe0, 3, 0xa0, 0xbf}, {0xff, 0xed, 3, 0x80, 0x9f}, {0xff, 0xf0, 4, 0x90, 0xbf},
      {0xff, 0xf4, 4, 0x80, 0x8f}, {0xfe, 0xc0, 0, 0, 0},       {0xe0, 0xc0, 2, 0x80, 0xbf},
      {0xf0, 0xe0, 3, 0x80, 0xbf}, {0xfc, 0xf0, 4, 0x80, 0xbf},
  };
  if (*p < 0x80) return 1;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if ((*p & rows[i].mask) != rows[i].head) continue;
    if (p[1] < rows[i].low || p[1] > rows[i].high) return 0;
    for (int k = 2; k < rows[i].length; k++)
      if ((p[k] & 0xc0) != 0x80) return 0;
    return rows[i].length;
  }
  return 0;
}

void json_string(struct buf *out, const char *text) {
  buf_puts(out, "\"");
  for (const char *p = text; *p;) {
    unsigned char c = (unsigned char)*p;
    int length = character_length((const unsigned char *)p);
    if (c == '"' || c == '\\')
      buf_printf(out, "\\%c", c);
    else if (c == '\n')
      buf_puts(out, "\\n");
    else if (c < 0x20 || c == 0x7f)
      buf_printf(out, "\\u%04x", c);
    else if (!length)
      buf_puts(out, "\xef\xbf\xbd");
    else
      buf_bytes(out, p, (size_t)length);
    p += length ? length : 1;
  }
  buf_puts(out, "\"");
}

/* With as few digits as it takes: 15, 16 or 17. */
void json_number(struct buf *out, double value) {
  char text[40];
  if (!isfinite(value)) {
    buf_puts(out, "null");
    return;
  }
  for (int digits = 15; digits <= 17; digits++) {
    text_format(text, sizeof text, "%.*g", digits, value);
    if (number_parse(text) == value) break;
  }
  buf_puts(out, text);
}
