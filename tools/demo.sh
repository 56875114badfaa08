#!/usr/bin/env bash
# The last step of `make demo`: gets a model and serves the page that is built by then.
#
#   tools/demo.sh            SmolLM2 135M Instruct, fetched (93 MB) and converted the first time; the bundled model beside it
#   tools/demo.sh bundled    the bundled model alone: nothing is fetched
#
# PORT and HOST choose the address. Where SmolLM2 cannot be had the page has the bundled model, and this says so.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-smollm2}" in
  smollm2) wanted=smollm2 ;;
  bundled | stories) wanted=stories ;;
  *) echo "usage: make demo [MODEL=bundled]" >&2 && exit 2 ;;
esac

smollm2=build/models/smollm2-135m-q4
stories=examples/models/stories
options=()

get_smollm2() { tools/setup-python.sh && build/venv/bin/python tools/fetch_models.py smollm2-135m --variants q4; }

if [ "$wanted" = smollm2 ]; then
  if get_smollm2; then
    options+=(--model "smollm2=$smollm2" --open smollm2)
  else
    echo "SmolLM2 cannot be had now (the reason is above). The page has the bundled model, which tells stories, instead."
  fi
fi
if [ -e "$stories/model.json" ]; then
  options+=(--model "stories=$stories")
  [ "${#options[@]}" -gt 2 ] || options+=(--open stories)
fi
[ -z "${PORT:-}" ] || options+=(--port "$PORT")
[ -z "${HOST:-}" ] || options+=(--host "$HOST")
exec node web/serve.mjs "${options[@]}"
