/* nfc.h - Unicode's normalization form C (UAX #15): decompose, order the marks, compose. */
#ifndef ML_TEXT_NFC_H
#define ML_TEXT_NFC_H

#include "text/buffer.h"
#include "text/unicode.h"

/* Whether a look at each character by itself already shows that the text is in NFC. Most texts are. */
bool ml_nfc_is_plain(const ml_unicode *unicode, const uint8_t *text, size_t size);

/* Writes the NFC of valid UTF-8 to the beginning of `out`, *out_size bytes. `scratch` is for the work. Time and
 * memory grow no faster than the text, whatever it holds. */
ml_status ml_nfc_normalize(const ml_unicode *unicode, const uint8_t *text, size_t size, ml_buffer *scratch,
                           ml_buffer *out, size_t *out_size, ml_error *error);

#endif
