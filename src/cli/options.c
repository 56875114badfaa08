#define _POSIX_C_SOURCE 200809L
#include "cli/options.h"

#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

/* ---------------------------------------------------------------- the table */

#define IN(mode) (1u << (mode))
#define GENERATING IN(MODE_GENERATE)
#define EVALUATING \
  (GENERATING | IN(MODE_LOGITS) | IN(MODE_PERPLEXITY) | IN(MODE_IMATRIX) | IN(MODE_TRACE) | IN(MODE_BENCH))
#define WITH_MODEL (EVALUATING | IN(MODE_INFO) | IN(MODE_VERIFY))
#define WITH_TOKENIZER (IN(MODE_TOKENIZE) | IN(MODE_DETOKENIZE))
#define ANYWHERE ~0u

#define MAX_TOKENS 16777216 /* 2^24, the format's limit of a context */

typedef enum kind {
  HEADING,   /* of a group in --help; not an option */
  FLAG,      /* bool */
  TEXT,      /* const char * */
  COUNT,     /* uint32_t from low to high */
  REAL,      /* float from low to high */
  SEED,      /* uint64_t */
  KV,        /* ml_kv_type */
  MODE,      /* chooses `mode` */
  MODE_FILE, /* the same, with a file name */
} kind;

typedef struct option_row {
  kind kind;
  char letter;          /* 0: none */
  const char *name;     /* of the long option */
  const char *argument; /* NULL: none */
  size_t field;         /* offset in cli_options of the value */
  size_t given;         /* offset of a bool that is set too; 0: none (the field at 0 is `mode`) */
  double low, high;
  mode mode;      /* of MODE and MODE_FILE */
  unsigned modes; /* where the option has a meaning: IN(...) bits */
  const char *help;
} option_row;

#define FIELD(name) .field = offsetof(cli_options, name)
#define GIVEN(name) .given = offsetof(cli_options, name)
#define RANGE(from, to) .low = (from), .high = (to)

static const option_row table[] = {
    {HEADING, .help = "Input"},
    {TEXT, 'm', "model", "PATH", FIELD(model), .modes = WITH_MODEL | WITH_TOKENIZER,
     .help = "the model: a .mlb or .tinyloop file, or the folder of a model\n"
             "package, which brings its tokenizer; -m may be left out"},
    {TEXT, 'p', "prompt", "TEXT", FIELD(prompt), .modes = EVALUATING,
     .help = "text to begin with; what is generated is printed as text"},
    {TEXT, 0, "prompt-file", "FILE", FIELD(prompt_file), .modes = EVALUATING,
     .help = "the same from a file, or - for standard input"},
    {TEXT, 0, "ids", "LIST|FILE", FIELD(ids), .modes = EVALUATING | IN(MODE_VERIFY),
     .help = "token ids: a list like 1,15043,29892, a file that holds one,\n"
             "or - for standard input; blanks, commas and lines separate"},
    {TEXT, 0, "tokenizer", "FILE", FIELD(tokenizer), .modes = EVALUATING | WITH_TOKENIZER,
     .help = "the tokenizer, a .mlt file; default: the package's"},
    {FLAG, 0, "special", NULL, FIELD(special), .modes = EVALUATING | WITH_TOKENIZER,
     .help = "added tokens like <|im_end|> count: spelled in the text they\n"
             "become their ids, and ids of theirs are shown"},
    {FLAG, 0, "mmap", NULL, FIELD(mmap), .modes = WITH_MODEL | IN(MODE_CHECK),
     .help = "use the model where it lies in the file: less memory, a\n"
             "slower run; by default it is read and packed for speed"},

    {HEADING, .help = "What to do with it (without any of these: generate)"},
    {MODE_FILE, 0, "logits", "FILE.npy", .mode = MODE_LOGITS, .modes = ANYWHERE,
     .help = "write the logits after every id: float32, or float64 with\n--exact"},
    {MODE, 0, "perplexity", "[FILE]", .mode = MODE_PERPLEXITY, .modes = ANYWHERE,
     .help = "exp of the mean negative log-likelihood of a text, or of the\n"
             "ids, in windows of --ctx"},
    {MODE_FILE, 0, "imatrix", "FILE", .mode = MODE_IMATRIX, .modes = ANYWHERE,
     .help = "run the ids in windows of --ctx and write the importance\n"
             "matrix (MLI1): which inputs matter to quantization"},
    {MODE, 0, "trace", NULL, .mode = MODE_TRACE, .modes = ANYWHERE,
     .help = "hash every stage: lines of position, layer (-1: outside),\n"
             "stage, number of floats, FNV-1a-64 of their bytes"},
    {MODE, 0, "bench", NULL, .mode = MODE_BENCH, .modes = ANYWHERE,
     .help = "tokens per second of prompt (--ids, or 128 made-up ones)\nand generation (-n, or 64)"},
    {MODE, 0, "info", NULL, .mode = MODE_INFO, .modes = ANYWHERE,
     .help = "what the model is, and the memory that it and a session\nwith these options need"},
    {MODE, 0, "verify", NULL, .mode = MODE_VERIFY, .modes = ANYWHERE,
     .help = "compare the logits after every id (--ids, or 32 made-up ones)\nwith those of --exact"},
    {MODE_FILE, 0, "check", "FILE", .mode = MODE_CHECK, .modes = ANYWHERE,
     .help = "load a file of any kind that this program knows, no more"},
    {MODE_FILE, 0, "tokenize", "FILE", .mode = MODE_TOKENIZE, .modes = ANYWHERE,
     .help = "print the ids of a text (-: standard input), the tokenizer's\nBOS included"},
    {MODE_FILE, 0, "detokenize", "LIST|FILE", .mode = MODE_DETOKENIZE, .modes = ANYWHERE,
     .help = "print the text of ids"},
    {MODE, 'h', "help", NULL, .mode = MODE_HELP, .modes = ANYWHERE, .help = "this text"},

    {HEADING, .help = "Generating"},
    {COUNT, 'n', "predict", "N", FIELD(n_predict), GIVEN(n_predict_given), RANGE(0, MAX_TOKENS),
     .modes = GENERATING | IN(MODE_BENCH), .help = "ids to generate at most; default 128"},
    {TEXT, 0, "stop-ids", "LIST|FILE", FIELD(stop_ids), .modes = GENERATING,
     .help = "end before printing one of these; a tokenizer's EOS always"},
    {REAL, 0, "temp", "T", FIELD(sampler.temperature), RANGE(0, FLT_MAX), .modes = GENERATING,
     .help = "temperature; default 0: always the likeliest id"},
    {COUNT, 0, "top-k", "K", FIELD(sampler.top_k), RANGE(0, MAX_TOKENS), .modes = GENERATING,
     .help = "choose among the K likeliest; 0: all"},
    {REAL, 0, "top-p", "P", FIELD(sampler.top_p), RANGE(0, 1), .modes = GENERATING,
     .help = "among the likeliest that together reach P; 0: all"},
    {REAL, 0, "min-p", "P", FIELD(sampler.min_p), RANGE(0, 1), .modes = GENERATING,
     .help = "among those with at least P of the likeliest's probability"},
    {REAL, 0, "repetition-penalty", "X", FIELD(sampler.repetition_penalty), RANGE(0, FLT_MAX),
     .modes = GENERATING, .help = "divides positive logits of seen ids, multiplies negative"},
    {REAL, 0, "presence-penalty", "X", FIELD(sampler.presence_penalty), RANGE(-FLT_MAX, FLT_MAX),
     .modes = GENERATING, .help = "subtracted once from the logit of a seen id"},
    {REAL, 0, "frequency-penalty", "X", FIELD(sampler.frequency_penalty), RANGE(-FLT_MAX, FLT_MAX),
     .modes = GENERATING, .help = "subtracted for each time that an id was seen"},
    {SEED, 0, "seed", "N", FIELD(sampler.seed), GIVEN(seed_given), .modes = GENERATING,
     .help = "0 to 2^64-1, the same seed gives the same ids; default: a\nnew one each time, shown with the "
             "timings"},

    {HEADING, .help = "Running (threads, batch and kernels never change a result)"},
    {COUNT, 'c', "ctx", "N", FIELD(n_ctx), RANGE(1, MAX_TOKENS), .modes = WITH_MODEL,
     .help = "positions to keep room for; default: the model's longest\ncontext, at most 4096"},
    {COUNT, 'b', "batch", "N", FIELD(n_batch), RANGE(1, MAX_TOKENS), .modes = WITH_MODEL,
     .help = "ids of a prompt that are evaluated at a time; default 64"},
    {COUNT, 't', "threads", "N", FIELD(n_threads), RANGE(0, 64), .modes = WITH_MODEL,
     .help = "default 1; 0: one for each processor"},
    {KV, 0, "kv", "f32|q8", FIELD(kv), .modes = WITH_MODEL,
     .help = "how keys and values of earlier ids are kept; default f32;\nq8: in a quarter of the memory, a "
             "little less exact"},
    {TEXT, 0, "isa", "NAME|list", FIELD(isa), .modes = ANYWHERE,
     .help = "kernels to use; default: the first of --isa list"},
    {COUNT, 0, "loops", "N", FIELD(n_loops), RANGE(1, ML_MAX_LOOPS), .modes = WITH_MODEL,
     .help = "of a TinyLoop model: how often its shared block is run;\ndefault: as the file says"},
    {FLAG, 0, "f16-body", NULL, FIELD(f16_body), .modes = WITH_MODEL,
     .help = "keep the matrices of all layers as half-precision floats:\nmore memory, and inputs that are "
             "not quantized"},
    {FLAG, 0, "exact", NULL, FIELD(exact), .modes = WITH_MODEL,
     .help = "double precision throughout and no quantized activations:\nslow, to compare with"},

    {HEADING, .help = "Measuring and printing"},
    {COUNT, 0, "stride", "N", FIELD(stride), RANGE(1, MAX_TOKENS), .modes = IN(MODE_PERPLEXITY),
     .help = "ids from one window to the next, at most --ctx (default);\nsmaller: more context for each id"},
    {COUNT, 0, "repeat", "N", FIELD(repeat), RANGE(1, 1000), .modes = IN(MODE_BENCH),
     .help = "measurements, of which the median counts; default 5"},
    {FLAG, 0, "json", NULL, FIELD(json),
     .modes = IN(MODE_INFO) | IN(MODE_BENCH) | IN(MODE_PERPLEXITY) | IN(MODE_VERIFY),
     .help = "print a JSON object"},
    {FLAG, 'q', "quiet", NULL, FIELD(quiet), .modes = ANYWHERE,
     .help = "no progress, notes or timings on standard error"},
};

enum { N_ROWS = sizeof table / sizeof *table };

/* ---------------------------------------------------------------- values */

static int parse_count(const option_row *row, const char *text, uint32_t *out) {
  errno = 0;
  unsigned long long value = strtoull(text, NULL, 10);
  bool digits_only = *text && strspn(text, "0123456789") == strlen(text);
  if (!digits_only || errno || (double)value < row->low || (double)value > row->high)
    return fail_usage("--%s %s: must be a whole number from %.0f to %.0f", row->name, text, row->low,
                      row->high);
  *out = (uint32_t)value;
  return DONE;
}

static int parse_real(const option_row *row, const char *text, float *out) {
  char *end;
  double value = strtod(text, &end);
  if (end != text && !*end && value >= row->low && value <= row->high) {
    *out = (float)value;
    return DONE;
  }
  if (row->low < 0) return fail_usage("--%s %s: must be a finite number", row->name, text);
  if (row->high > 1) return fail_usage("--%s %s: must be a finite number, 0 or more", row->name, text);
  return fail_usage("--%s %s: must be a number from 0 to 1", row->name, text);
}

static int parse_seed(const option_row *row, const char *text, uint64_t *out) {
  errno = 0;
  unsigned long long value = strtoull(text, NULL, 10);
  if (!*text || strspn(text, "0123456789") != strlen(text) || errno)
    return fail_usage("--%s %s: must be a whole number from 0 to 18446744073709551615", row->name, text);
  *out = value;
  return DONE;
}

static int parse_kv(const option_row *row, const char *text, ml_kv_type *out) {
  bool is_q8 = strcmp(text, "q8") == 0;
  if (!is_q8 && strcmp(text, "f32") != 0) return fail_usage("--%s %s: must be f32 or q8", row->name, text);
  *out = is_q8 ? ML_KV_Q8 : ML_KV_F32;
  return DONE;
}

static int choose_mode(const option_row *row, const char *file, cli_options *out) {
  if (out->mode == MODE_HELP || (out->mode == row->mode && row->kind == MODE)) return DONE;
  if (out->mode != MODE_GENERATE && row->mode != MODE_HELP) {
    const char *earlier = "";
    for (int i = 0; i < N_ROWS; i++)
      if (table[i].name && table[i].mode == out->mode) earlier = table[i].name;
    return fail_usage("--%s and --%s do not go together: one thing at a time", earlier, row->name);
  }
  out->mode = row->mode;
  out->mode_file = file;
  return DONE;
}

static int apply(const option_row *row, const char *text, cli_options *out) {
  void *field = (char *)out + row->field;
  if (row->given) *(bool *)(void *)((char *)out + row->given) = true;
  switch (row->kind) {
    case HEADING: return DONE;
    case FLAG: *(bool *)field = true; return DONE;
    case TEXT: *(const char **)field = text; return DONE;
    case COUNT: return parse_count(row, text, field);
    case REAL: return parse_real(row, text, field);
    case SEED: return parse_seed(row, text, field);
    case KV: return parse_kv(row, text, field);
    case MODE:
    case MODE_FILE: return choose_mode(row, text, out);
  }
  return DONE;
}

/* ---------------------------------------------------------------- mistakes */

/* Insertions, deletions and replacements that turn one word into the other (Levenshtein, row by row). */
static size_t distance(const char *a, const char *b) {
  enum { LIMIT = 32 };
  size_t costs[LIMIT + 1], length = strlen(b);
  if (length > LIMIT || strlen(a) > LIMIT) return LIMIT;
  for (size_t j = 0; j <= length; j++) costs[j] = j;
  for (size_t i = 1; a[i - 1]; i++) {
    size_t diagonal = costs[0];
    costs[0] = i;
    for (size_t j = 1; j <= length; j++) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      size_t shorter = (costs[j] < costs[j - 1] ? costs[j] : costs[j - 1]) + 1;
      diagonal = costs[j];
      costs[j] = replaced < shorter ? replaced : shorter;
    }
  }
  return costs[length];
}

static int fail_unknown(const char *word) {
  char name[33] = {0};
  const char *start = word + strspn(word, "-");
  size_t length = strcspn(start, "=");
  memcpy(name, start, length < 32 ? length : 32);
  const char *nearest = NULL;
  size_t best = 2 + strlen(name) / 4; /* farther than that is a different word */
  for (int i = 0; i < N_ROWS; i++) {
    if (!table[i].name) continue;
    bool begins = length > 1 && strncmp(table[i].name, name, length) == 0; /* several do: name the first */
    size_t d = begins ? 0 : distance(name, table[i].name);
    if (d >= best) continue;
    best = d;
    nearest = table[i].name;
  }
  if (nearest) return fail_usage("unknown option %s: did you mean --%s?", word, nearest);
  return fail_usage("unknown option %s", word);
}

/* getopt_long found something wrong (`code` is ':' or '?') with the argument `word`. */
static int fail_getopt(int code, int option, const char *word) {
  for (int i = 0; i < N_ROWS; i++) {
    if (!table[i].name || (option != 256 + i && (option == 0 || option != table[i].letter))) continue;
    if (code == ':') return fail_usage("%s needs a value: %s", word, table[i].argument);
    return fail_usage("--%s takes no value", table[i].name);
  }
  if (option > 0 && option < 256) {
    const char letter[] = {'-', (char)option, 0};
    return fail_unknown(strncmp(word, "--", 2) == 0 ? word : letter);
  }
  return fail_unknown(word);
}

/* An option that the chosen mode would ignore is a misunderstanding, and better said. */
static int check_modes(const cli_options *out, const bool *given) {
  if (out->mode == MODE_HELP || out->mode == MODE_LIST_ISAS) return DONE;
  const char *activity = "generating";
  for (int i = 0; i < N_ROWS; i++)
    if (table[i].name && out->mode != MODE_GENERATE && table[i].mode == out->mode) activity = table[i].name;
  for (int i = 0; i < N_ROWS; i++)
    if (given[i] && !(table[i].modes & IN(out->mode)))
      return fail_usage("--%s has no meaning with %s%s: leave it out", table[i].name,
                        out->mode == MODE_GENERATE ? "" : "--", activity);
  return DONE;
}

/* ---------------------------------------------------------------- parsing */

/* [FILE] of --perplexity is a word of its own, which getopt_long leaves over. */
static bool takes_value(const option_row *row) { return row->argument && row->argument[0] != '['; }

/* The table in the form that getopt_long takes; a row's code is its letter, or 256 + its index. */
static void make_getopt_tables(struct option *longs, char *letters) {
  *letters++ = ':'; /* tell a missing value from an unknown option */
  for (int i = 0; i < N_ROWS; i++) {
    if (!table[i].name) continue;
    int has_argument = takes_value(&table[i]) ? required_argument : no_argument;
    *longs++ = (struct option){table[i].name, has_argument, NULL, 256 + i};
    if (!table[i].letter) continue;
    *letters++ = table[i].letter;
    if (takes_value(&table[i])) *letters++ = ':';
  }
  *longs = (struct option){0};
  *letters = 0;
}

static int row_of_code(int code) {
  if (code >= 256) return code - 256;
  for (int i = 0; i < N_ROWS; i++)
    if (table[i].letter == code) return i;
  return -1;
}

int options_parse(cli_options *out, int argc, char **argv) {
  struct option longs[N_ROWS + 1];
  char letters[2 * N_ROWS + 2];
  bool given[N_ROWS] = {0};
  make_getopt_tables(longs, letters);
  *out = (cli_options){.n_predict = 128, .n_threads = 1, .repeat = 5};
  opterr = 0; /* the messages are ours */
  for (;;) {
    int code = getopt_long(argc, argv, letters, longs, NULL);
    if (code == -1) break;
    int index = code == ':' || code == '?' ? -1 : row_of_code(code);
    if (index < 0) return fail_getopt(code, optopt, argv[optind - 1]);
    given[index] = true;
    TRY(apply(&table[index], optarg, out));
  }
  bool needs_model = !out->model && (IN(out->mode) & WITH_MODEL);
  if (optind < argc && needs_model) out->model = argv[optind++];
  if (optind + 1 == argc && out->mode == MODE_PERPLEXITY && !out->prompt_file)
    out->prompt_file = argv[optind++];
  if (optind < argc)
    return fail_usage("unexpected argument %s: every value follows its option, as in -m FILE", argv[optind]);
  if (out->isa && strcmp(out->isa, "list") == 0 && out->mode == MODE_GENERATE) out->mode = MODE_LIST_ISAS;
  return check_modes(out, given);
}

/* ---------------------------------------------------------------- help */

#define HELP_COLUMN 32

static void print_row(FILE *stream, const option_row *row) {
  if (row->kind == HEADING) {
    fprintf(stream, "\n%s\n", row->help);
    return;
  }
  int width = row->letter ? fprintf(stream, "  -%c, --%s", row->letter, row->name)
                          : fprintf(stream, "      --%s", row->name);
  if (row->argument) width += fprintf(stream, " %s", row->argument);
  for (const char *line = row->help; line;) {
    size_t length = strcspn(line, "\n");
    fprintf(stream, "%*s%.*s\n", width < HELP_COLUMN ? HELP_COLUMN - width : 1, "", (int)length, line);
    line = line[length] ? line + length + 1 : NULL;
    width = 0;
  }
}

void options_print_usage(FILE *stream) {
  fputs(
      "usage: ml_run -m PACKAGE --prompt TEXT [-n N] [--temp T] [option]...\n"
      "       ml_run -m MODEL.mlb --ids LIST [-n N] [--temp T] [option]...\n"
      "       ml_run MODEL.mlb | MODEL.tinyloop [--loops N] --info | --bench | --verify [option]...\n"
      "       ml_run -m PACKAGE --perplexity FILE [option]...\n"
      "       ml_run -m MODEL.mlb --ids LIST --logits FILE.npy | --perplexity | --imatrix FILE | --trace\n"
      "       ml_run -m PACKAGE | --tokenizer FILE.mlt --tokenize FILE | --detokenize LIST [--special]\n"
      "       ml_run --check FILE | --isa list | --help\n",
      stream);
}

void options_print_help(FILE *stream) {
  fputs("ml_run runs language models in the .mlb and .tinyloop formats on the processor.\n\n", stream);
  options_print_usage(stream);
  for (int i = 0; i < N_ROWS; i++) print_row(stream, &table[i]);
  fputs(
      "\nResults go to standard output, everything else to standard error. Results depend on the model, the "
      "ids\n"
      "and the options alone, not on machine, threads or batch. Ctrl-C ends after the current id; twice: at "
      "once.\n"
      "\nExit codes: 0 done, 1 bad input or file (ML_E_...), 2 wrong usage, 130 interrupted before the "
      "result.\n"
      "\nexamples\n"
      "  ml_run -m smollm2 --prompt 'Once upon a time' -n 100 --threads 0\n"
      "  ml_run -m model.mlb --ids 1,15043,29892 -n 20\n"
      "  ml_run -m model.mlb --ids prompt.txt -n 200 --temp 0.8 --top-p 0.95 --seed 7\n"
      "  ml_run -m model.mlb --ids text.ids --perplexity --ctx 512 --stride 256 --threads 0\n",
      stream);
}
