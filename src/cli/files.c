#define _XOPEN_SOURCE 700    /* POSIX 2008 with realpath */
#define _FILE_OFFSET_BITS 64 /* models above 2 GB on 32-bit systems */
#include "cli/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report.h"

/* ---------------------------------------------------------------- in */

/* Opens for reading and asks what it is; a folder is refused here, where the reason can still be named. */
static int open_to_read(const char *path, int *descriptor, struct stat *facts) {
  bool standard_input = strcmp(path, "-") == 0;
  int opened = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (opened < 0) return fail_io("open", path);
  if (fstat(opened, facts) != 0) {
    int code = fail_io("examine", path);
    close(opened);
    return code;
  }
  if (S_ISDIR(facts->st_mode)) {
    close(opened);
    return fail(ML_E_IO, "Name a file inside it.", "cannot read %s: it is a folder", path);
  }
  *descriptor = opened;
  return DONE;
}

static int map_descriptor(mapped_file *out, int descriptor, const struct stat *facts, const char *path) {
  static const char nothing[64]; /* stands for an empty file, which cannot be mapped */
  if (!S_ISREG(facts->st_mode))
    return fail(ML_E_IO, "Copy it to a file first, or leave out --mmap.", "cannot map %s: not a regular file",
                path);
  if ((uint64_t)facts->st_size > SIZE_MAX)
    return fail(ML_E_NOMEM, "Use a 64-bit build.", "%s is larger than this build can address", path);
  *out = (mapped_file){nothing, (size_t)facts->st_size, NULL};
  if (out->size == 0) return DONE;
  void *mapping = mmap(NULL, out->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (mapping == MAP_FAILED) return fail_io("map", path);
  out->bytes = out->mapping = mapping;
  return DONE;
}

int file_map(mapped_file *out, const char *path) {
  int descriptor = -1;
  struct stat facts;
  TRY(open_to_read(path, &descriptor, &facts));
  int code = map_descriptor(out, descriptor, &facts, path);
  close(descriptor); /* a mapping keeps its file */
  return code;
}

void file_unmap(mapped_file *file) {
  if (file->mapping) munmap(file->mapping, file->size);
  memset(file, 0, sizeof *file);
}

int input_open(input_file *out, const char *path) {
  struct stat facts;
  TRY(open_to_read(path, &out->descriptor, &facts));
  out->size = S_ISREG(facts.st_mode) ? (uint64_t)facts.st_size : 0;
  return DONE;
}

int input_read(const input_file *file, const char *path, void *buffer, size_t capacity, size_t *got) {
  ssize_t n;
  do n = read(file->descriptor, buffer, capacity);
  while (n < 0 && errno == EINTR);
  if (n < 0) return fail_io("read", path);
  *got = (size_t)n;
  return DONE;
}

void input_close(input_file *file) { close(file->descriptor); }

/* Makes room for at least one more byte and the terminator. */
static int grow(char **text, size_t *capacity) {
  size_t larger = *capacity ? *capacity * 2 : 4096;
  char *moved = larger > *capacity ? realloc(*text, larger) : NULL;
  if (!moved) return fail(ML_E_NOMEM, NULL, "no memory for %zu bytes of input", larger);
  *text = moved;
  *capacity = larger;
  return DONE;
}

static int read_to_end(const input_file *file, const char *path, char **text, size_t *size) {
  size_t capacity = 0, got = 0;
  *size = 0;
  do {
    *size += got;
    if (*size + 1 >= capacity) TRY(grow(text, &capacity));
    TRY(input_read(file, path, *text + *size, capacity - *size - 1, &got));
  } while (got);
  (*text)[*size] = 0;
  return DONE;
}

int file_read_all(const char *path, char **text, size_t *size) {
  input_file file = {-1, 0};
  TRY(input_open(&file, path));
  *text = NULL;
  int code = read_to_end(&file, path, text, size);
  input_close(&file);
  if (code == DONE) return DONE;
  free(*text);
  *text = NULL;
  return code;
}

/* ---------------------------------------------------------------- out */

static bool is_existing_device(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode);
}

/* The path that a rename must hit, so that a symbolic link stays one; `path` itself if nothing is there. */
static char *resolve(const char *path) {
  char *resolved = realpath(path, NULL);
  return resolved ? resolved : strdup(path);
}

static char *temporary_beside(const char *path) {
  size_t size = strlen(path) + 32;
  char *text = malloc(size);
  if (text) snprintf(text, size, "%s.tmp-%ld", path, (long)getpid());
  return text;
}

static int open_temporary(output_file *file) {
  file->final_path = resolve(file->path);
  file->temporary_path = file->final_path ? temporary_beside(file->final_path) : NULL;
  if (!file->temporary_path) return fail(ML_E_NOMEM, NULL, "no memory for a file name");
  struct stat facts;
  if (stat(file->final_path, &facts) == 0 && S_ISDIR(facts.st_mode))
    return fail(ML_E_IO, "Name a file inside it.", "cannot write %s: it is a folder", file->path);
  file->stream = fopen(file->temporary_path, "wb");
  if (file->stream) return DONE;
  int code = fail_io("write", file->path);
  free(file->temporary_path); /* nothing to remove */
  file->temporary_path = NULL;
  return code;
}

int output_open(output_file *out, const char *path) {
  memset(out, 0, sizeof *out);
  out->path = path;
  int code = DONE;
  if (is_existing_device(path)) {
    out->stream = fopen(path, "wb");
    if (!out->stream) code = fail_io("write", path);
  } else {
    code = open_temporary(out);
  }
  if (code != DONE) output_discard(out);
  return code;
}

int output_write(output_file *file, const void *bytes, size_t size) {
  if (fwrite(bytes, 1, size, file->stream) == size) return DONE;
  return fail_io("write", file->path);
}

/* Flushed, on the disk, closed: only then is it safe to take the old file's name. */
static bool close_safely(output_file *file) {
  bool direct = file->temporary_path == NULL; /* devices and pipes cannot be synchronised */
  bool written = fflush(file->stream) == 0 && (direct || fsync(fileno(file->stream)) == 0);
  int reason = errno;
  bool closed = fclose(file->stream) == 0;
  file->stream = NULL;
  if (!written) errno = reason;
  return written && closed;
}

int output_commit(output_file *file) {
  int code = DONE;
  if (!close_safely(file)) {
    code = fail_io("write", file->path);
  } else if (file->temporary_path) {
    if (rename(file->temporary_path, file->final_path) != 0) {
      code = fail_io("rename to", file->path);
    } else {
      free(file->temporary_path); /* gone: nothing to remove */
      file->temporary_path = NULL;
    }
  }
  output_discard(file);
  return code;
}

void output_discard(output_file *file) {
  if (file->stream) fclose(file->stream);
  if (file->temporary_path) unlink(file->temporary_path);
  free(file->temporary_path);
  free(file->final_path);
  memset(file, 0, sizeof *file);
}
