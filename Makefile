# krafla-web. `make` lists the targets; on a fresh Debian machine `make demo` and `make test` install what they need.
#
#   build/<configuration>/   one folder for each set of compiler flags, so that objects of different flags never mix
#       native    what users run
#       asan      address and undefined-behaviour sanitizers, asserts on
#       m32       32-bit pointers and sizes, as in wasm32; asserts on
#       arm64     AArch64 by a cross compiler, to be run by qemu; asserts on
#       fuzz      clang with libFuzzer and the sanitizers, asserts on
#       simd128, simd128-threads, relaxed, relaxed-threads
#                 wasm for browsers and Node, by Emscripten; the modules are gathered in build/wasm
#   build/venv, build/venv-hf, build/log   Python environments; what the last run of each test suite printed
#
# Settings: CC and CLANG choose compilers, CFLAGS adds flags, WERROR= lets warnings pass, V=1 shows the commands,
# -j works. A change of compiler or flags rebuilds what it touches: each folder records its own (flags.txt).

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

Q   := $(if $(V),,@)
say := @printf '  %-5s %s\n'
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/pycache

# ---------------------------------------------------------------- sources

# Programs and the wasm exports link against the library; everything else below src/ is the library.
x86_kernels  := $(wildcard $(addprefix src/kernels/,avx2.c avxvnni.c avx512vnni.c))
arm_kernels  := $(wildcard $(addprefix src/kernels/,neon.c neondot.c))
wasm_kernels := $(wildcard $(addprefix src/kernels/,simd128.c relaxed.c))
isa_kernels  := $(x86_kernels) $(arm_kernels) $(wasm_kernels)
threads      := src/base/thread_posix.c src/base/thread_wasm.c
lib_sources  := $(filter-out src/cli/% src/wasm/% $(isa_kernels) $(threads),$(wildcard src/*.c src/*/*.c))
run_sources  := $(wildcard src/cli/*.c)
unit_sources := $(wildcard tests/unit/*.c)
checkasm_sources := $(wildcard tests/checkasm/*.c)
fuzz_sources := $(wildcard tests/fuzz/fuzz_*.c)
driver_sources := $(wildcard tests/*/*_driver.c)
c_files      := $(wildcard src/*.[ch] src/*/*.[ch] tests/*/*.[ch] examples/*.c)

# ---------------------------------------------------------------- flags

CFLAGS ?=
WERROR ?= -Werror
CLANG  ?= $(firstword $(shell command -v clang-19) $(shell command -v clang) clang)

warnings      := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
src_warnings  := $(warnings) -Wconversion
sanitizers    := address,undefined -fno-sanitize-recover=all

# The same bits everywhere (docs/NUMERICS.md): a product and a sum are rounded one after the other, never fused.
# Comes after CFLAGS, which could otherwise undo it; flags that cannot be undone are refused.
same_bits := -ffp-contract=off
refused   := $(filter %fast-math -Ofast -mfma -funsafe% -fassociative% -freciprocal% -ffinite%,$(CC) $(CFLAGS))
$(if $(refused),$(error $(refused) would change results between builds (docs/NUMERICS.md)))

# Kernels of an instruction set: those of the machine's family, chosen at run time (src/kernels/table.c).
host         := $(shell $(CC) -dumpmachine)
host_kernels := $(if $(filter x86_64-%,$(host)),$(x86_kernels))$(if $(filter aarch64-% arm64-%,$(host)),$(arm_kernels))
native_kernels := $(host_kernels)
asan_kernels   := $(host_kernels)
m32_kernels    :=
arm64_kernels  := $(arm_kernels)
fuzz_kernels   := $(host_kernels)

natives := native asan m32 arm64 fuzz
wasms   := simd128 simd128-threads relaxed relaxed-threads

EMCC     ?= build/emscripten/emcc
WASM_OPT ?= build/emscripten/wasm-opt

$(foreach name,$(natives),$(eval $(name)_platform := $(wildcard src/base/thread_posix.c)))
$(foreach name,$(wasms),$(eval $(name)_platform := src/base/thread_wasm.c))
$(foreach name,$(wasms),$(eval $(name)_kernels := $(if $(findstring relaxed,$(name)),$(wasm_kernels),src/kernels/simd128.c)))

native_cc := $(CC)
asan_cc   := $(CC)
m32_cc    := $(CC)
arm64_cc  := aarch64-linux-gnu-gcc
arm64_ar  := aarch64-linux-gnu-ar
fuzz_cc    = $(CLANG)
$(foreach name,$(wasms),$(eval $(name)_cc := $(EMCC)))

# -DNDEBUG: the library never ends the process that it is part of; its asserts run in the other configurations.
native_flags := -O3 -DNDEBUG
asan_flags   := -O1 -g -fno-omit-frame-pointer -fsanitize=$(sanitizers)
m32_flags    := -O2 -g -m32 -msse2 -mfpmath=sse -idirafter /usr/include/$(host)
arm64_flags  := -O3 -g -static
fuzz_flags   := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,$(sanitizers)
$(foreach name,$(natives),$(eval $(name)_flags += -pthread))

# What every browser with SIMD has. Nothing here links pthreads: JavaScript lends the threads (src/base/thread_wasm.c).
# Small, but for the kernels, which get -O2 below, or -Os where two tables share a module; -O3 was larger and no faster.
# Functions are inlined and dropped across files (-flto), which saves a page another kilobyte.
wasm_flags            := -Oz -flto -DNDEBUG -msimd128 -mbulk-memory -mnontrapping-fptoint -msign-ext -mmutable-globals
simd128_flags         := $(wasm_flags)
relaxed_flags         := $(wasm_flags) -DML_RELAXED
simd128-threads_flags := $(simd128_flags) -sWASM_WORKERS
relaxed-threads_flags := $(relaxed_flags) -sWASM_WORKERS

# Files that need an instruction set get its flag here, and no other file does, so that a machine without it never
# meets one of its instructions.
isa_flags :=
all_isa_flags := $(shell sed -n 's/^build.*isa_flags := //p' Makefile) # for flags.txt
build/%/src/kernels/avx2.o:       isa_flags := -mavx2 -mf16c
build/%/src/kernels/avxvnni.o:    isa_flags := -mavx2 -mf16c -mavxvnni
build/%/src/kernels/avx512vnni.o: isa_flags := -mavx512f -mavx512vnni -mf16c
# gcc's first scheduling pass moves all loads of a NEON tile to its front, more than there are registers for.
in_order := -fno-schedule-insns -Wno-ignored-optimization-argument
build/%/src/kernels/neon.o:       isa_flags := $(in_order)
build/%/src/kernels/neondot.o:    isa_flags := $(in_order) -march=armv8.2-a+dotprod
build/%/src/kernels/simd128.o:    isa_flags := -O2
build/%/src/kernels/relaxed.o:    isa_flags := -Os -mrelaxed-simd
# Eight lanes as an array, inlined everywhere and then checked at every access, take a compiler minutes.
build/asan/src/kernels/scalar.o build/fuzz/src/kernels/scalar.o: isa_flags := -fno-inline

# ---------------------------------------------------------------- rules, the same for every configuration

# $(call record,TEXT): rewrites the target only if its content changes, so that what depends on it is remade just then.
record = $(Q)mkdir -p $(@D); printf '%s\n' '$1' | cmp -s - $@ || printf '%s\n' '$1' >$@

# $(eval $(call configuration,NAME)): objects and library of build/NAME.
define configuration
$1_compile   = $$($1_cc) -std=c11 $$($1_flags) -Isrc $$(CFLAGS) $$(same_bits)
$1_lib      := $$(patsubst %.c,build/$1/%.o,$$(lib_sources) $$($1_platform) $$($1_kernels))
$1_run      := $$(run_sources:%.c=build/$1/%.o)
$1_unit     := $$(unit_sources:%.c=build/$1/%.o)
$1_checkasm := $$(checkasm_sources:%.c=build/$1/%.o)

build/$1/flags.txt: FORCE
	$$(call record,$$($1_compile) | $$(src_warnings) | $$(all_isa_flags) | $$(shell $$($1_cc) -dumpfullversion -dumpversion 2>&1))

build/$1/members.txt: FORCE
	$$(call record,$$($1_lib))

build/$1/%.o: %.c build/$1/flags.txt
	$$(say) CC $$@
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$($1_compile) $$(if $$(filter tests/%,$$<),$$(warnings),$$(src_warnings)) $$(isa_flags) -MMD -MP -c -o $$@ $$<

# Made anew each time: `ar` would keep the member of a source that is gone.
build/$1/libml.a: $$($1_lib) build/$1/members.txt
	$$(say) AR $$@
	$$(Q)rm -f $$@
	$$(Q)$$(or $$($1_ar),$$(AR)) rcs $$@ $$($1_lib)

-include $$($1_lib:.o=.d) $$($1_run:.o=.d) $$($1_unit:.o=.d) $$($1_checkasm:.o=.d)
endef
$(foreach name,$(natives) $(wasms),$(eval $(call configuration,$(name))))

# $(eval $(call programs,NAME)): programs of build/NAME that run on the machine itself.
define programs
build/$1/ml_run: $$($1_run) build/$1/libml.a
	$$(say) LINK $$@
	$$(Q)$$($1_compile) -o $$@ $$^ -lm

build/$1/test_unit: $$($1_unit) build/$1/libml.a
	$$(say) LINK $$@
	$$(Q)$$($1_compile) -o $$@ $$^ -lm

build/$1/checkasm: $$($1_checkasm) build/$1/libml.a
	$$(say) LINK $$@
	$$(Q)$$($1_compile) -o $$@ $$^ -lm
endef
$(foreach name,$(natives),$(eval $(call programs,$(name))))

# $(eval $(call driver,CONFIGURATION,SOURCE)): a program by which a test in another language reaches the library.
define driver
build/$1/$(notdir $2): build/$1/$2.o build/$1/libml.a
	$$(say) LINK $$@
	$$(Q)$$($1_compile) -o $$@ $$^ -lm

-include build/$1/$2.d
endef

$(foreach name,native asan m32,$(foreach source,$(driver_sources:.c=),$(eval $(call driver,$(name),$(source)))))

# $(eval $(call wasm_programs,NAME)): the module of build/NAME, and test programs for Node.
#
# The module is what the linker made, without Emscripten's JavaScript (`bare`): js/heap.js is all it needs. Its memory
# is made by JavaScript at the size that a model needs, so the module takes any from a megabyte to 4 GB.
define wasm_programs
$1_module := build/$1/module/table.o build/$1/src/wasm/exports.o $$(filter-out %/kernels/table.o,$$($1_lib))

build/$1/module/table.o: src/kernels/table.c build/$1/flags.txt
	$$(say) CC $$@
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$($1_compile) $$(src_warnings) -DML_MODULE -MMD -MP -c -o $$@ $$<

build/$1/linked.wasm: $$($1_module) src/wasm/exports.txt build/$1/members.txt
	$$(say) LINK $$@
	$$(Q)sed -n '$(if $(filter %-threads,$1),,/^threads/q;)s/^ml_/_ml_/p' src/wasm/exports.txt >build/$1/exports.txt
	$$(Q)$$($1_compile) $$(wasm_link) -sEXPORTED_FUNCTIONS=@build/$1/exports.txt -o $$@ $$($1_module)

build/wasm/$1.wasm: build/$1/linked.wasm
	$$(say) WASM $$@
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(WASM_OPT) $$(wasm_opt_flags) -o $$@ $$<

build/$1/test_unit.mjs: $$($1_unit) $$($1_lib)
	$$(say) LINK $$@
	$$(Q)$$($1_compile) $$(node_link) -o $$@ $$^

build/$1/checkasm.mjs: $$($1_checkasm) $$($1_lib)
	$$(say) LINK $$@
	$$(Q)$$($1_compile) $$(node_link) -o $$@ $$^

-include build/$1/src/wasm/exports.d build/$1/module/table.d
endef
wasm_link := --oformat=bare -Wno-experimental --no-entry -sSTRICT -sFILESYSTEM=0 -sMALLOC=emmalloc -sSTACK_SIZE=128KB \
  -sIMPORTED_MEMORY -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=1MB -sMAXIMUM_MEMORY=4GB
# The linker leaves the first kilobyte of memory unused, so an address can take a small sum into its offset.
# The most used locals come first once more at the end: each gets a number of one byte.
wasm_opt_flags := --low-memory-unused -Oz --converge --reorder-locals --strip-debug --strip-producers
node_link := -sENVIRONMENT=node,worker -sNODERAWFS -sEXIT_RUNTIME -sALLOW_MEMORY_GROWTH -sSTACK_SIZE=1MB
$(foreach name,$(wasms),$(eval $(call wasm_programs,$(name))))

# One fuzzing program for each tests/fuzz/fuzz_*.c.
fuzz_programs := $(fuzz_sources:tests/fuzz/%.c=build/fuzz/%)
$(fuzz_programs): build/fuzz/%: build/fuzz/tests/fuzz/%.o build/fuzz/libml.a
	$(say) LINK $@
	$(Q)$(fuzz_compile) -fsanitize=fuzzer -o $@ $^ -lm
-include $(fuzz_sources:%.c=build/fuzz/%.d)

# The same targets without libFuzzer, in other builds: each input once, and some changes of it.
define replay
build/$1/fuzz_%: build/$1/tests/fuzz/fuzz_%.o build/$1/tests/fuzz/replay.o build/$1/libml.a
	$$(say) LINK $$@
	$$(Q)$$($1_compile) -o $$@ $$^ -lm

replay-$1: $$(fuzz_sources:tests/fuzz/%.c=build/$1/%) build/fuzz/seeds
-include $$(fuzz_sources:%.c=build/$1/%.d) build/$1/tests/fuzz/replay.d
endef
$(foreach name,native m32,$(eval $(call replay,$(name))))

# What fuzzing begins with.
build/fuzz/seeds: tests/fuzz/make_seeds.py $(wildcard tools/*.py)
	$(say) SEEDS $@
	$(Q)build/venv/bin/python $< $@ && touch $@

# Small models for the tests in JavaScript.
build/packages: tests/js/make_packages.py tools/tiny.py $(wildcard tests/golden/ids/*.mlt)
	$(say) MAKE $@
	$(Q)build/venv/bin/python $< $@ && touch $@

# The page and what it is bundled from; the package's own files are among them.
page_sources := $(filter-out web/serve.mjs,$(wildcard web/*)) $(wildcard js/*.js) package-lock.json
build/web/index.html: $(page_sources) $(wasms:%=build/wasm/%.wasm)
	$(say) PAGE $(@D)
	$(Q)node web/build.mjs

# The npm package, and its tarball.
build/package/package.json: tools/build_dist.js $(wildcard js/*) package.json package-lock.json README.md LICENSE $(wasms:%=build/wasm/%.wasm)
	$(say) MAKE $(@D)
	$(Q)node tools/build_dist.js

FORCE:
.PHONY: FORCE
.SECONDARY:

# ---------------------------------------------------------------- targets

.PHONY: replay-native replay-m32
.PHONY: help native wasm dist page demo native-demo check test bench hf ids tokenizers models parity fuzz fuzz-programs goldens format lint clean
.PHONY: machine-to-build machine-to-test machine-to-cross machine-to-wasm machine-to-browse machine-to-package machine-to-bench venv venv-hf

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/make \1@\2/p' Makefile | expand -t 1 | awk -F@ '{printf "  %-16s %s\n", $$1, $$2}'

native: build/native/ml_run build/native/libml.a ## build/native/ml_run and build/native/libml.a

wasm: machine-to-wasm ## build/wasm/*.wasm: the modules for browsers and Node
	@$(MAKE) --no-print-directory $(wasms:%=build/wasm/%.wasm)

dist: machine-to-package ## build/krafla-web-*.tgz: the npm package
	@$(MAKE) --no-print-directory build/package/package.json
	$(Q)cd build && npm pack --silent ./package

page: machine-to-package ## build/web: the chat page, as any static host can serve it
	@$(MAKE) --no-print-directory build/web/index.html

# exec: Ctrl-C is for the server alone, and no shell dies of it. MODEL=bundled fetches nothing. PORT and HOST choose where the page is; by default a free port of this machine alone.
MODEL := smollm2
demo: page ## a chat page with SmolLM2 in it: builds, fetches and serves it; MODEL=bundled, PORT=..., HOST=...
	@exec env PORT=$(PORT) HOST=$(HOST) tools/demo.sh $(MODEL)

native-demo: machine-to-build venv ## make a small model with random weights, look at it, and generate with it
	@$(MAKE) --no-print-directory native
	@mkdir -p build/demo
	build/venv/bin/python tools/mlb.py tiny llama --output build/demo/llama.mlb
	build/native/ml_run --model build/demo/llama.mlb --info
	build/native/ml_run --model build/demo/llama.mlb --ids 1,2,3 --predict 20
	build/native/ml_run --model build/demo/llama.mlb --ids 1,2,3 --predict 20 --temp 0.8 --seed 7 --threads 2

check: machine-to-test venv ## the tests for every edit, under a minute: style, repository rules, unit, tools, goldens
	@build/venv/bin/python tests/run.py check

test: machine-to-test machine-to-cross machine-to-browse venv venv-hf ## every test: check, sanitizers, 32-bit, ARM, wasm, Chromium, transformers, fuzzing
	@build/venv/bin/python tests/run.py all

hf: machine-to-build venv-hf ## compare with Hugging Face transformers on models made at random
	@build/venv-hf/bin/python tests/run.py --only hf

tokenizers: venv # published ones; says which it skips when a registry is out of reach
	@build/venv/bin/python tools/tokenizer_sources.py fetch

ids: machine-to-build venv-hf tokenizers ## compare token ids with the tokenizers library on published tokenizers
	@$(MAKE) --no-print-directory build/native/ids_driver
	@build/venv-hf/bin/python tests/ids/compare.py

models: machine-to-build venv ## fetch two small published models (330 MB) and convert them, into build/models; NAMES=... others
	@build/venv/bin/python tools/fetch_models.py $(NAMES)

parity: machine-to-test machine-to-cross machine-to-browse venv ## the same bits from every build, kernel table, thread count, batch and layout
	@$(MAKE) --no-print-directory native
	@! command -v $(arm64_cc) >/dev/null || $(MAKE) --no-print-directory build/arm64/ml_run
	@! [ -e build/emscripten/installed.txt ] || $(MAKE) --no-print-directory $(wasms:%=build/wasm/%.wasm)
	@build/venv/bin/python tests/parity/parity.py

# BENCH=--quick, or any options of tools/bench/bench.mjs; without them the tables of docs/PERFORMANCE.md are made anew.
BENCH := --document
bench: machine-to-test machine-to-wasm machine-to-bench venv ## speed beside wllama and llama.cpp on the same weights: build/bench/results.json; BENCH=--help
	@$(MAKE) --no-print-directory native $(wasms:%=build/wasm/%.wasm)
	@build/venv/bin/python tools/fetch_models.py --only-gguf smollm2-135m
	@$$(ls tests/node_modules/.bin/node 2>/dev/null || echo node) tools/bench/bench.mjs $(BENCH)

SECONDS := 60
fuzz: machine-to-test venv ## fuzz each target for SECONDS=60
	@build/venv/bin/python tests/run.py --only fuzz --fuzz-seconds $(SECONDS)

fuzz-programs: $(fuzz_programs) build/fuzz/seeds

goldens: machine-to-build venv-hf ## make the golden files anew (tests/golden); look at the difference before committing
	@$(MAKE) --no-print-directory native
	build/venv-hf/bin/python tests/oracle/make_goldens.py
	build/venv-hf/bin/python tests/oracle/make_tinyloop_goldens.py

prettier := node_modules/.bin/prettier --log-level warn js web tests/js tests/browser "examples/*.{mjs,html}" "tools/**/*.{js,mjs}" package.json
eslint   := node_modules/.bin/eslint -c tools/eslint.config.js js web tests/js tests/browser tools "examples/*.mjs"

format: machine-to-test venv ## rewrite C, Python and JavaScript in the house style
	$(Q)tools/setup-npm.sh
	$(Q)$$(command -v clang-format-19 || command -v clang-format) -i $(c_files)
	$(Q)build/venv/bin/ruff check --quiet --fix --exit-zero tools tests
	$(Q)build/venv/bin/ruff format --quiet tools tests
	$(Q)$(prettier) --write

lint: machine-to-test venv ## what format would change, and what ruff and ESLint find
	$(Q)tools/setup-npm.sh
	$(Q)$$(command -v clang-format-19 || command -v clang-format) --dry-run -Werror $(c_files)
	$(Q)build/venv/bin/ruff check tools tests
	$(Q)build/venv/bin/ruff format --check tools tests
	$(Q)$(prettier) --check
	$(Q)$(eslint)

kept := $(addprefix build/,venv venv-hf venv.lock venv-hf.lock emscripten emscripten.lock models tokenizers)
clean: ## remove what was built; keep what was downloaded: Python environments, Emscripten, models, tokenizers
	$(Q)rm -rf $(filter-out $(kept),$(wildcard build/*))

# Set-up scripts: silent when there is nothing to do.
machine-to-build:
	@tools/setup-native.sh build
machine-to-test:
	@tools/setup-native.sh
machine-to-cross:
	@tools/setup-arm64.sh
machine-to-wasm:
	@tools/setup-wasm.sh
machine-to-browse: # tests without these are skipped, and say so
	@tools/setup-wasm.sh || echo "no Emscripten: tests of the wasm modules will be skipped"
	@tools/setup-browser.sh || echo "no Node or no Chromium: tests that need them will be skipped"
	@tools/setup-npm.sh || echo "no packages of npm: tests that need them will be skipped"
machine-to-package: machine-to-wasm
	@tools/setup-npm.sh
machine-to-bench:
	@tools/setup-bench.sh
venv: machine-to-build
	@tools/setup-python.sh
venv-hf: machine-to-build
	@tools/setup-python.sh hf
