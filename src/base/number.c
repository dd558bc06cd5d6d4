/* See number.h. */
#include "base/number.h"

#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The locale "C", made once; (locale_t)0, which leaves things as they are, if there is no memory. */
static locale_t plain_locale(void) {
  static _Atomic(locale_t) made;
  locale_t known = atomic_load(&made), none = (locale_t)0;
  if (known != none) return known;
  locale_t mine = newlocale(LC_ALL_MASK, "C", none);
  if (atomic_compare_exchange_strong(&made, &none, mine)) return mine;
  freelocale(mine); /* another thread was first */
  return none;
}

int text_vformat(char *out, size_t size, const char *format, va_list args) {
  locale_t before = uselocale(plain_locale());
  int length = vsnprintf(out, size, format, args);
  uselocale(before);
  return length;
}

int text_format(char *out, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = text_vformat(out, size, format, args);
  va_end(args);
  return length;
}

double number_parse(const char *text) {
  locale_t before = uselocale(plain_locale());
  double value = strtod(text, NULL);
  uselocale(before);
  return value;
}

void text_seconds(char *out, size_t size, double seconds) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  double amount = seconds * 1e9;
  int unit = 0;
  while (amount >= 999.5 && unit < 3) amount /= 1000, unit++;
  if (amount < 0.05)
    text_format(out, size, "0");
  else if (amount < 9.95)
    text_format(out, size, "%.1f %s", amount, units[unit]);
  else
    text_format(out, size, "%.0f %s", amount, units[unit]);
}
