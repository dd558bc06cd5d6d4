/* Numbers in text, with a point: whatever locale the host program has set, for this thread alone and
 * only while it reads or writes. Everything that prints a number with a fraction, or reads one, goes through these.
 */
#ifndef CANVAS_BASE_NUMBER_H
#define CANVAS_BASE_NUMBER_H

#include <stdarg.h>
#include <stddef.h>

#include "base/status.h"

/* As snprintf and vsnprintf. */
int text_format(char *out, size_t size, const char *format, ...) PRINTF_LIKE(3, 4);
int text_vformat(char *out, size_t size, const char *format, va_list args);
/* "12 us", "1.2 ms": two or three digits, 0 below 0.05 ns. */
void text_seconds(char *out, size_t size, double seconds);
double number_parse(const char *text); /* as strtod, up to what is no number; sets errno */

#endif
