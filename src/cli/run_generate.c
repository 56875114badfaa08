/* run_generate.c - continues the ids, one id at a time, as far as -n, the context or a stop id allows. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "cli/summary.h"

typedef struct generation {
  cli_job *job;
  ml_sampler *sampler;
  ml_decoder *decoder; /* NULL: ids are printed */
  id_list stop_ids;
  uint32_t generated;
  double prompt_seconds, generation_seconds;
  const char *reason; /* why it ended */
} generation;

/* ---------------------------------------------------------------- preparation */

/* Differs from run to run; whoever wants the same ids again reads it off the timings. */
static uint64_t fresh_seed(void) {
  uint64_t seed = (uint64_t)time(NULL) * UINT64_C(1000003);
  FILE *random = fopen("/dev/urandom", "rb");
  if (random && fread(&seed, sizeof seed, 1, random) != 1) seed += (uint64_t)(now_seconds() * 1e9);
  if (random) fclose(random);
  return seed;
}

static void note_useless_options(const ml_sampler_options *options, bool seed_given) {
  if (options->temperature > 0) return;
  if (options->top_k || options->top_p > 0 || options->min_p > 0 || seed_given)
    note("note: --top-k, --top-p, --min-p and --seed have no effect at temperature 0; add --temp T");
}

static int open_sampler(generation *run) {
  cli_job *job = run->job;
  const cli_options *asked = job->options;
  ml_sampler_options chosen = asked->sampler;
  note_useless_options(&chosen, asked->seed_given);
  if (!asked->seed_given) chosen.seed = fresh_seed();
  if (!asked->seed_given && chosen.temperature > 0) note("seed       %" PRIu64, chosen.seed);
  ml_error error;
  if (ml_sampler_new(&run->sampler, ml_model_get_info(job->model)->vocab, &chosen, NULL, &error) != ML_OK)
    return fail_error(&error, NULL);
  for (size_t i = 0; i < job->ids.n; i++)
    if (ml_sampler_accept(run->sampler, job->ids.ids[i], &error) != ML_OK) return fail_error(&error, NULL);
  return DONE;
}

/* A text goes on as text. */
static int open_decoder(generation *run) {
  ml_error error;
  if (!run->job->tokenizer || ml_decoder_new(&run->decoder, run->job->tokenizer, NULL, &error) == ML_OK)
    return DONE;
  return fail_error(&error, NULL);
}

static int open_all(generation *run) {
  cli_job *job = run->job;
  if (job->options->stop_ids) TRY(ids_read(&run->stop_ids, "--stop-ids", job->options->stop_ids));
  TRY(job_open_ids_and_model(job));
  TRY(ids_check_vocab(&run->stop_ids, "--stop-ids", ml_model_get_info(job->model)->vocab));
  TRY(job_check_fits(job, job->ids.n));
  const ml_session_options session_options = job_session_options(job);
  TRY(job_open_session(job, &session_options));
  TRY(open_decoder(run));
  return open_sampler(run);
}

/* ---------------------------------------------------------------- running */

/* In pieces of some batches, so that Ctrl-C and progress have a place between them. */
static int evaluate_prompt(generation *run) {
  cli_job *job = run->job;
  size_t piece = 8 * (size_t)(job->options->n_batch ? job->options->n_batch : 64);
  double start = now_seconds();
  for (size_t done = 0; done < job->ids.n && !interrupt_requested();) {
    size_t n = job->ids.n - done < piece ? job->ids.n - done : piece;
    ml_error error;
    if (ml_session_eval(job->session, job->ids.ids + done, n, &error) != ML_OK)
      return fail_error(&error, NULL);
    done += n;
    progress("prompt", done, job->ids.n);
  }
  progress_end();
  run->prompt_seconds = now_seconds() - start;
  return DONE;
}

static bool is_stop_id(const generation *run, int32_t id) {
  for (size_t i = 0; i < run->stop_ids.n; i++)
    if (run->stop_ids.ids[i] == id) return true;
  const ml_tokenizer *tokenizer = run->job->tokenizer;
  return tokenizer && id == ml_tokenizer_get_info(tokenizer)->eos;
}

/* Whether the id after those so far may be produced; otherwise says why not. */
static bool may_go_on(generation *run) {
  const cli_job *job = run->job;
  if (interrupt_requested())
    run->reason = "stopped (Ctrl-C)";
  else if (job->ids.n + run->generated >= ml_session_n_ctx(job->session))
    run->reason = "length (the context is full)";
  else if (run->generated >= job->options->n_predict)
    run->reason = "length (-n reached)";
  return run->reason == NULL;
}

static int print_id(generation *run, int32_t id) {
  const char *text;
  size_t size;
  ml_error error;
  if (!run->decoder)
    printf("%s%" PRId32, run->generated ? " " : "", id);
  else if (ml_decoder_push(run->decoder, id, run->job->options->special, &text, &size, &error) != ML_OK)
    return fail_error(&error, NULL);
  else
    fwrite(text, 1, size, stdout);
  run->generated++;
  return finish_output(); /* who reads along sees it now, and a closed pipe ends the work */
}

/* The logits of the last id are there; each turn samples one more, and evaluates it if it is not the last. */
static int generate(generation *run) {
  ml_session *session = run->job->session;
  ml_error error;
  while (may_go_on(run)) {
    int32_t id;
    if (ml_sampler_sample(run->sampler, ml_session_logits(session), &id, &error) != ML_OK)
      return fail_error(&error, NULL);
    if (is_stop_id(run, id)) {
      run->reason = "stop (a stop id came up)";
      return DONE;
    }
    TRY(print_id(run, id));
    if (!may_go_on(run)) return DONE;
    if (ml_sampler_accept(run->sampler, id, &error) != ML_OK) return fail_error(&error, NULL);
    if (ml_session_eval(session, &id, 1, &error) != ML_OK) return fail_error(&error, NULL);
  }
  return DONE;
}

/* ---------------------------------------------------------------- report */

static double rate(double n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static void print_timings(const generation *run) {
  const cli_job *job = run->job;
  note("load       %.3f s", job->load_seconds);
  note("prompt     %zu ids in %.3f s, %.1f per second", job->ids.n, run->prompt_seconds,
       rate((double)job->ids.n, run->prompt_seconds));
  note("generated  %" PRIu32 " ids in %.3f s, %.1f per second", run->generated, run->generation_seconds,
       rate(run->generated, run->generation_seconds));
  note("kernels    %s, threads %" PRIu32, ml_session_isa(job->session), ml_session_n_threads(job->session));
  note("finish     %s", run->reason);
}

/* Half a character that waited for its other half. */
static void print_rest(ml_decoder *decoder) {
  const char *text;
  size_t size;
  ml_decoder_finish(decoder, &text, &size);
  fwrite(text, 1, size, stdout);
}

static int run_opened(generation *run) {
  TRY(evaluate_prompt(run));
  double start = now_seconds();
  int code = generate(run);
  run->generation_seconds = now_seconds() - start;
  if (run->decoder) print_rest(run->decoder);
  putchar('\n'); /* also after a failure: what came before it is a whole line */
  if (code == DONE) print_timings(run);
  return code;
}

int run_generate(cli_job *job) {
  generation run = {.job = job};
  int code = open_all(&run);
  if (code == DONE) code = run_opened(&run);
  ml_sampler_free(run.sampler);
  ml_decoder_free(run.decoder);
  ids_free(&run.stop_ids);
  return code;
}
