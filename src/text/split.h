/* split.h - the pre-tokenizers of byte-level tokenizers: text to pieces that are merged each by itself.
 *
 * The regular expressions, tried from left to right at each position as a backtracking engine would:
 *
 *   Llama 3      (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 *                |\s*[\r\n]+|\s+(?!\S)|\s+
 *   one digit    \p{N} for \p{N}{1,3} (Qwen2, Qwen3)
 *   marks        [\p{L}\p{M}]+ for \p{L}+, and \p{M} excluded where \p{L} is but for the optional first
 *                character (Qwen3.5)
 *   GPT-2        's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   split digits every number character is a text of its own before the expression sees it
 *
 * They are written out by hand here: no position needs to look further than the run of its own class and the character
 * after it, so a text takes time by its length, and no stack. Every character belongs to a piece. */
#ifndef ML_TEXT_SPLIT_H
#define ML_TEXT_SPLIT_H

#include "text/unicode.h"

typedef struct ml_splitter {
  const ml_unicode *unicode;
  uint32_t flags; /* of the .mlt file */
  const uint8_t *at, *end;
  const uint8_t *part_end; /* what the expression takes for the end of the text */
} ml_splitter;

/* Valid UTF-8, which must stay while it is being split. */
ml_splitter ml_split_begin(const ml_unicode *unicode, uint32_t flags, const uint8_t *text, size_t size);

/* The next piece, never empty; false at the end. */
bool ml_split_next(ml_splitter *splitter, const uint8_t **piece, size_t *size);

#endif
