/* files.h - whole files in, and whole files out or nothing. */
#ifndef ML_CLI_FILES_H
#define ML_CLI_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---------------------------------------------------------------- in */

/* A regular file in memory, page-aligned and read-only. It must not be cut short while it is mapped. */
typedef struct mapped_file {
  const void *bytes; /* never NULL, even for an empty file */
  size_t size;
  void *mapping; /* to unmap; NULL for an empty file */
} mapped_file;

int file_map(mapped_file *out, const char *path);
void file_unmap(mapped_file *file); /* a zeroed struct is allowed */

/* A file to be read from front to back; "-" is standard input. */
typedef struct input_file {
  int descriptor;
  uint64_t size; /* 0 when unknown, as for a pipe */
} input_file;

int input_open(input_file *out, const char *path);
/* As many bytes as are there, up to `capacity`; *got = 0 at the end. */
int input_read(const input_file *file, const char *path, void *buffer, size_t capacity, size_t *got);
void input_close(input_file *file);

/* Everything in a block from malloc, which the caller frees, with a zero byte after it. */
int file_read_all(const char *path, char **text, size_t *size);

/* ---------------------------------------------------------------- out */

/* A file that appears under its name when it is complete, and not at all otherwise: it is written beside that
 * name and renamed. What is not a regular file (a device, a pipe) is written directly. */
typedef struct output_file {
  FILE *stream;
  const char *path;     /* as the user wrote it; stays the caller's */
  char *final_path;     /* where a symbolic link leads */
  char *temporary_path; /* NULL when written directly */
} output_file;

int output_open(output_file *out, const char *path);
int output_write(output_file *file, const void *bytes, size_t size);
int output_commit(output_file *file);   /* ends the file's life, also when it fails */
void output_discard(output_file *file); /* after a commit, or for a zeroed struct: nothing */

#endif
