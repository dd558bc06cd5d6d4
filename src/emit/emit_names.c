/* Free names. A program's names are letters, digits and _, and may be words of C, macros of
 * included headers, or names that the text defines itself. Such a name gets a _ at its end. See
 * print_c.h.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit/print_c.h"

/* Words and macros, blanks around each. A trailing * stands for any further letters. */
static const char reserved[] =
    " alignas alignof asm auto bool break case char complex const constexpr continue default "
    "do double else enum extern false float for goto if imaginary inline int long nullptr "
    "register restrict return short signed sizeof static static_assert struct switch "
    "thread_local true typedef typeof typeof_unqual union unsigned void volatile while "
    /* of C++, so that a header can be read by both */
    "and and_eq bitand bitor catch char16_t char32_t char8_t class co_await co_return co_yield "
    "compl concept consteval constinit const_cast decltype delete dynamic_cast explicit export "
    "friend mutable namespace new noexcept not not_eq operator or or_eq private protected "
    "public reinterpret_cast requires static_cast template this throw try typeid typename "
    "using virtual wchar_t xor xor_eq "
    /* macros */
    "linux unix i386 NULL NAN INFINITY HUGE* M_* FP_* MATH_* INT* UINT* SIZE_* PTRDIFF_* SIG_* "
    "WCHAR_* WINT_* EXIT_* RAND_* MB_* WNOHANG WUNTRACED WSTOPPED WEXITED WCONTINUED WNOWAIT "
    "isfinite isinf isnan isnormal signbit fpclassify math_errhandling DOMAIN SING OVERFLOW "
    "UNDERFLOW PLOSS TLOSS X_TLOSS MAXFLOAT "
    /* functions and types that the text uses, beside those of c_operations */
    "aligned_alloc free int32_t int64_t uint16_t uint32_t "
    /* the text's own */
    "v2 v4 v8 v16 v32 v64 d2 d4 d8 d16 d32 d64 m2 m4 m8 m16 m32 m64 n2 n4 n8 n16 n32 n64 "
    "v2_anywhere v4_anywhere v8_anywhere v16_anywhere v32_anywhere v64_anywhere d2_anywhere "
    "d4_anywhere d8_anywhere d16_anywhere d32_anywhere d64_anywhere V2 V4 V8 V16 V32 V64 D2 D4 "
    "D8 D16 D32 D64 ALL_* BF16_* PICK_* LOAD_* SOME_* STORE_* STREAM_* STREAMED PERMUTE_* ZIP_* "
    "QUARTERS_* REDUCE_* SUM_OF_* PRODUCT_OF_* MAX_OF_* MIN_OF_* TURNED_* FAR_ANGLE far_angle_ "
    "LEAST_OF MOST_OF GREATER_* LESSER_* CLAMP_F32 PRAGMA SCALAR SCALAR_ALONE LANES SUMS_END TUNED "
    "x_ y_ u_ "
    "i_ j_ most_ "
    "least_ "
    "mask_ nan_ take_ to_ from_ n_ part_ rest_ bits_ half4_ half8_ half16_ half32_ half64_ pair_ "
    "lane "
    "lanes* points status done failed ";

/* Further names that a function must not have: those of included headers of the C library. */
static const char library[] =
    " abort abs acos* acosh* alloca arc4random* asin* asinh* at_quick_exit atan* atexit atof "
    "atoi atol* bsearch calloc canonicalize* cbrt* ceil* cfree clearenv copysign* cos* cosh* "
    "div drand48* drem* ecvt* erand48* erf* exit exp* fabs* fcvt* fdim* finite* floor* fma* "
    "fmax* fmin* fmod* free frexp* fromfp* gamma* gcvt* getenv getloadavg getpayload* "
    "getsubopt getpt grantpt hypot* ilogb* initstate* iseqsig j0* j1* jn* jrand48* l64a a64l "
    "labs lcong48* ldexp* ldiv lgamma* llabs lldiv llogb* llrint* llround* log* lrand48* "
    "lrint* lround* main malloc mblen mbstowcs mbtowc mkdtemp mkostemp* mkstemp* mktemp modf* "
    "mrand48* nan* nearbyint* nextafter* nextdown* nexttoward* nextup* nrand48* on_exit "
    "posix_memalign posix_openpt pow* ptsname* putenv qecvt* qfcvt* qgcvt* qsort* quick_exit "
    "rand* random* realloc* realpath remainder* remquo* rint* round* roundeven* rpmatch scalb* "
    "secure_getenv seed48* select pselect setenv setpayload* setstate* significand* signgam "
    "sin* sincos* sinh* sqrt* srand* srandom* strfrom* strtod* strtof* strtol* strtoq strtoul* "
    "strtouq system tan* tanh* tgamma* totalorder* trunc* ufromfp* unlockpt unsetenv valloc "
    "wcstombs wctomb y0* y1* yn* "
    /* what compilers know without a header, and the namespace of C++ */
    "printf* fprintf* sprintf* snprintf* vprintf* vfprintf* vsprintf* vsnprintf* scanf* "
    "fscanf* sscanf* vscanf* vfscanf* vsscanf* putc* puts* fputc* fputs* fwrite* isalnum "
    "isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper "
    "isxdigit toascii tolower toupper iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph "
    "iswlower iswprint iswpunct iswspace iswupper iswxdigit towlower towupper execl execle "
    "execlp execv execve execvp fork gettext dgettext dcgettext strfmon stpcpy stpncpy imaxabs "
    "cabs* cacos* carg* casin* catan* ccos* cexp* cimag* clog* conj* cpow* cproj* creal* csin* "
    "csqrt* ctan* std memmove memset memcmp memchr mem* str* index rindex bcmp bcopy bzero "
    "ffs* explicit_bzero swab basename htobe* major minor makedev u_char u_short u_int u_long "
    "quad_t size_t ssize_t time_t "
    "div_t ldiv_t float_t double_t fd_set register_t dev_t ino_t id_t key_t clock_t timer_t ";

static bool listed(const char *list, const char *name) {
  size_t length = strlen(name);
  const char start[] = {' ', name[0], '\0'};
  for (const char *word = list; (word = strstr(word, start));) {
    size_t letters = strcspn(++word, " ");
    if (word[letters - 1] == '*' ? strncmp(word, name, letters - 1) == 0
                                 : letters == length && memcmp(word, name, length) == 0)
      return true;
  }
  return false;
}

/* `of` is `name` followed by _1, _2_3, ...: a variable of a buffer that is held in names. */
static bool numbered(const char *name, const char *of) {
  size_t length = strlen(name);
  if (strncmp(name, of, length) != 0) return false;
  const char *rest = of + length;
  while (*rest == '_' && isdigit((unsigned char)rest[1])) {
    rest++;
    while (isdigit((unsigned char)*rest)) rest++;
  }
  return !*rest;
}

static bool taken(const struct names *names, const char *name) {
  for (int i = 0; i < names->count; i++)
    if (numbered(name, names->data[i]) || numbered(names->data[i], name)) return true;
  return false;
}

/* expf, exp, EXP_V16 */
static bool is_operation(const char *name) {
  for (int op = 0; op < PX_OPS; op++) {
    size_t letters = strlen(scalar_ops[op].name);
    if (scalar_ops[op].binding != BIND_CALL || scalar_ops[op].sorts == SORTS_REAL) continue;
    if (strcmp(name, c_operations[op][0]) == 0 || strcmp(name, c_operations[op][1]) == 0 ||
        (strncmp(name, scalar_ops[op].name, letters) == 0 && name[letters] == '_'))
      return true;
  }
  return false;
}

static bool not_local(const char *name) {
  return listed(reserved, name) || is_operation(name);
}

static bool not_global(const char *name) {
  return not_local(name) || listed(library, name);
}

/* A word with a * rejects a name however it goes on; no word ends with two _. */
static bool rejects_longer(const char *hint, bool (*rejects)(const char *)) {
  struct buf longer = {0};
  buf_printf(&longer, "%s__", hint);
  bool answer = rejects(longer.text);
  buf_free(&longer);
  return answer;
}

/* Of a program's name, which may hold - and the like. */
static char *identifier(const char *program_name) {
  char *name = mem_strdup(program_name);
  for (char *c = name; *c; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return name;
}

const char *names_choose(struct names *names, const char *preferred, bool global) {
  bool (*rejects)(const char *) = global ? not_global : not_local;
  struct buf name = {0};
  char *hint = identifier(preferred);
  if (hint[0] == '_' || !hint[0] || isdigit((unsigned char)hint[0])) buf_puts(&name, "x");
  if (rejects_longer(hint, rejects)) buf_puts(&name, "x_");
  buf_puts(&name, hint);
  while (rejects(name.text) || taken(names, name.text)) buf_puts(&name, "_");
  const char *kept = arena_strndup(&names->arena, name.text, name.length);
  buf_free(&name);
  mem_free(hint);
  VEC_PUSH(names, kept);
  return kept;
}

void names_add(struct names *names, const char *name, const char *suffix) {
  struct buf text = {0};
  buf_printf(&text, "%s%s", name, suffix);
  VEC_PUSH(names, arena_strndup(&names->arena, text.text, text.length));
  buf_free(&text);
}

void names_free(struct names *names) {
  mem_free(names->data);
  arena_free(&names->arena);
}

char *emit_c_function(const char *hint) {
  struct names alone = {0};
  char *name = mem_strdup(names_choose(&alone, hint, true));
  names_free(&alone);
  return name;
}
