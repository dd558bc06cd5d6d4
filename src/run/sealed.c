/* Seals, checks, copies and loads files. See sealed.h. */
#define _GNU_SOURCE /* O_CLOEXEC */
#include "run/sealed.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the hash: four lanes of eight bytes ----------------------------------------------------- */

enum { STRIPE = 32, CHUNK = 1 << 14 /* a multiple of it */ };
#define ODD_1 UINT64_C(0x9E3779B185EBCA87)
#define ODD_2 UINT64_C(0xC2B2AE3D27D4EB4F)

struct hash {
  uint64_t lane[4], length;
};

static uint64_t rotated(uint64_t x, int bits) {
  return x << bits | x >> (64 - bits);
}

/* Injective in the word, so that a changed bit changes the lane. */
static uint64_t mixed(uint64_t lane, uint64_t word) {
  return rotated(lane + word * ODD_2, 31) * ODD_1;
}

static void hash_open(struct hash *h) {
  *h = (struct hash){{ODD_1, ODD_2, 0, ~ODD_1}, 0};
}

/* Adds bytes; all calls but the last add a multiple of STRIPE. */
static void hash_add(struct hash *h, const unsigned char *bytes, size_t length) {
  uint64_t words[4];
  h->length += length;
  for (; length >= STRIPE; bytes += STRIPE, length -= STRIPE) {
    memcpy(words, bytes, STRIPE);
    for (int i = 0; i < 4; i++) h->lane[i] = mixed(h->lane[i], words[i]);
  }
  if (!length) return;
  memset(words, 0, STRIPE);
  memcpy(words, bytes, length);
  for (int i = 0; i < 4; i++) h->lane[i] = mixed(h->lane[i], words[i]);
}

static uint64_t hash_end(const struct hash *h) {
  uint64_t all = h->length;
  for (int i = 0; i < 4; i++) all = mixed(all ^ rotated(h->lane[i], 8 * i + 1), h->lane[i]);
  return (all ^ all >> 32) * ODD_2;
}

uint64_t sealed_hash(const void *bytes, size_t length) {
  struct hash h;
  hash_open(&h);
  hash_add(&h, bytes, length);
  return hash_end(&h);
}

/* ---- the seal -------------------------------------------------------------------------------- */

#define MARK UINT64_C(0x314C4145532D4E43) /* "CN-SEAL1" */

struct seal {
  uint64_t mark, length, name, hash;
};

static struct seal seal_of(const struct hash *bytes, uint64_t name) {
  struct seal seal = {.mark = MARK, .length = bytes->length, .name = name, .hash = hash_end(bytes)};
  seal.hash = sealed_hash(&seal, sizeof seal);
  return seal;
}

/* Reads at offset `at`; fewer bytes than `size` only at the end of the file; -1: failed. */
static ssize_t read_at(int file, void *bytes, size_t size, int64_t at) {
  size_t had = 0;
  while (had < size) {
    ssize_t more = pread(file, (char *)bytes + had, size - had, (off_t)at + (off_t)had);
    if (more < 0 && errno != EINTR) return -1;
    if (more == 0) break;
    if (more > 0) had += (size_t)more;
  }
  return (ssize_t)had;
}

static bool write_all(int file, const void *bytes, size_t size) {
  for (size_t had = 0; had < size;) {
    ssize_t more = write(file, (const char *)bytes + had, size - had);
    if (more < 0 && errno != EINTR) return false;
    if (more > 0) had += (size_t)more;
  }
  return true;
}

/* Hashes the first `length` bytes and copies them to `to`; -1: no copy. */
static bool hash_file(int file, int64_t length, int to, struct hash *out) {
  unsigned char chunk[CHUNK];
  hash_open(out);
  for (int64_t at = 0; at < length;) {
    size_t size = length - at < CHUNK ? (size_t)(length - at) : CHUNK;
    if (read_at(file, chunk, size, at) != (ssize_t)size) return false;
    if (to >= 0 && !write_all(to, chunk, size)) return false;
    hash_add(out, chunk, size);
    at += (int64_t)size;
  }
  return true;
}

bool sealed_put(const char *path, uint64_t name) {
  struct stat s;
  struct hash bytes;
  int file = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  bool good =
      !fstat(file, &s) && !fchmod(file, s.st_mode & 0755) && hash_file(file, s.st_size, -1, &bytes);
  if (good) {
    const struct seal seal = seal_of(&bytes, name);
    good = write_all(file, &seal, sizeof seal) && !fsync(file);
  }
  int why = errno;
  if (close(file) && good) return false;
  errno = why;
  return good;
}

static bool check(int file, int to, struct seal *seal) {
  struct stat s;
  struct hash bytes;
  if (fstat(file, &s) || s.st_size < (off_t)sizeof *seal) return false;
  int64_t length = s.st_size - (int64_t)sizeof *seal;
  if (read_at(file, seal, sizeof *seal, length) != sizeof *seal) return false;
  if (seal->mark != MARK || seal->length != (uint64_t)length) return false;
  if (!hash_file(file, length, to, &bytes)) return false;
  return seal_of(&bytes, seal->name).hash == seal->hash;
}

bool sealed_check(int file, uint64_t *name) {
  struct seal seal;
  if (!check(file, -1, &seal)) return false;
  *name = seal.name;
  return true;
}

bool sealed_copy(int file, const char *to) {
  struct seal seal;
  int copy = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (copy < 0) return false;
  bool good = check(file, copy, &seal);
  return !close(copy) && good;
}

bool sealed_read(int file, size_t most, struct buf *out) {
  unsigned char chunk[CHUNK];
  struct stat s;
  if (fstat(file, &s) || s.st_size < (off_t)sizeof(struct seal)) return false;
  size_t length = (size_t)s.st_size - sizeof(struct seal), at = 0;
  if (length > most) return false;
  while (at < length) {
    size_t size = length - at < CHUNK ? length - at : CHUNK;
    if (read_at(file, chunk, size, (int64_t)at) != (ssize_t)size) return false;
    buf_bytes(out, (const char *)chunk, size);
    at += size;
  }
  return true;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* A path of the descriptor that no other call uses, since the loader recognises objects by path.
 * "//" and "/." are binary digits of a number. */
static void descriptor_name(int file, struct buf *out) {
  static _Atomic uint64_t names;
  buf_puts(out, "/proc/self/fd");
  for (uint64_t number = ++names; number; number >>= 1) buf_puts(out, number & 1 ? "/." : "//");
  buf_printf(out, "/%d", file);
}

static bool is_file(const char *name, int file) {
  struct stat by_name, opened;
  return !stat(name, &by_name) && !fstat(file, &opened) && by_name.st_dev == opened.st_dev &&
         by_name.st_ino == opened.st_ino;
}

void *sealed_load(canvas_context *ctx, int file, const char *path) {
  struct buf name = {0};
  descriptor_name(file, &name);
  if (!is_file(name.text, file)) {
    buf_free(&name);
    buf_puts(&name, path);
  }
  bool same = is_file(name.text, file);
  void *object = same ? dlopen(name.text, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!object) {
    const char *why = same ? dlerror() : NULL;
    size_t length = strlen(name.text);
    if (why && !strncmp(why, name.text, length)) why += length + strspn(why + length, ": ");
    if (!why) why = "it is another file now";
    fail(ctx, CANVAS_IO, "'%.400s': %.500s", path, why);
  }
  buf_free(&name);
  return object;
}
