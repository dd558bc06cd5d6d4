// SANITIZED: 1 under the address sanitizer, whose malloc ends a process that is out of memory.
#ifndef CANVAS_TESTS_SANITIZED_H
#define CANVAS_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
