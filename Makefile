# Everything runs in a virtual environment of its own; `make help` lists the targets.
PYTHON  ?= python3
VENV    ?= .venv
RESULTS ?= results
VERIFY  ?= build/verify/$(MEASURED_BY)
DATA    ?=
SCALE   ?=
METHOD  ?= dprope
FACTOR  ?= 2
QUICK   ?=
BOOKS   ?=
BENCHMARKS ?=
CORPUS  ?=
PY      := $(VENV)/bin/python
# What measures decides where `verify` keeps its records: after a change it measures anew.
MEASURED_BY := $(shell cat $(sort $(wildcard core/*.py eval/*.py experiments/*.py)) requirements.lock | cksum | cut -d' ' -f1)
SHOWN    = $(if $(SCALE),--scale $(SCALE)) --results $(RESULTS)

TABLES  := disturbance extension longbench openllm ruler perplexity time \
           n_hat_longbench n_hat_openllm intervals_longbench intervals_openllm previous_token \
           temperature n_hat short_text whole_texts
FIGURES := interpolation angle_distribution frequency distribution_complete disturbance_strategies disturbance extension \
           passkey disturbance_longbench selections whole_texts

.DEFAULT_GOAL := help
.PHONY: help reproduce test env env-gpu lock tables figures audit verify pretrain train rerun ablations report bench summary clean
.PHONY: $(TABLES:%=table_%) $(FIGURES:%=fig_%)

help: ## This list
	@echo "make TARGET [SCALE=tiny|smollm2|llama2-7b|llama2-13b] [RESULTS=DIR]"; echo
	@grep -hE '^(## )?[a-z_-]+:.*## |^## [a-z_]+: ' $(MAKEFILE_LIST) \
	  | sed -E 's/^## //; s/:[^#]*## /: /' | awk -F': ' '{printf "  %-27s %s\n", $$1, $$2}'

reproduce: env tables figures audit verify summary ## Render every table and figure, audit the paper, measure a part anew
test: env ## Run the test suite
	$(PY) -m pytest

env: $(VENV)/.installed ## Create the virtual environment with the pinned packages
$(VENV)/.installed: requirements.lock requirements-data.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: Python 3.11 or newer is needed; name one with make PYTHON=python3.12 ..."; exit 2; }
	@echo "installing the pinned packages into $(VENV) (a few minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-data.lock
	@touch $@
env-gpu: env ## Add flash-attn (needs a CUDA toolkit) and Liger
	$(PY) -m pip install --no-build-isolation -r requirements-gpu.txt
lock: ## Resolve requirements.in anew into requirements.lock
	rm -rf build/lock && $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet -r requirements.in
	{ head -1 requirements.lock; build/lock/bin/python -m pip freeze | sed 's/+cpu//' | sort -f; } > build/requirements.lock
	mv build/requirements.lock requirements.lock

tables: $(TABLES:%=table_%) ## Render every table from the records
figures: $(FIGURES:%=fig_%) ## Render every figure from the records
## table_disturbance: Disturbance of PI, YaRN and ours, published beside recomputed
## table_extension: SmolLM2 extended without training, loss within and beyond L
## table_longbench: LongBench-E by length
## table_openllm: TruthfulQA, HellaSwag, MMLU, ARC-c
## table_ruler: RULER by length
## table_perplexity: Sliding-window perplexity by length
## table_time: Training and inference time relative to PI
## table_n_hat_longbench: Ablation over n̂, LongBench-E
## table_n_hat_openllm: Ablation over n̂, Open LLM
## table_intervals_longbench: Ablation over b, LongBench-E
## table_intervals_openllm: Ablation over b, Open LLM
## table_previous_token: Beyond the paper, where heads that look back look under each method
## table_n_hat: Beyond the paper, n̂ without training by every evaluation
## table_short_text: Beyond the paper, what extending costs on texts that fit in L
## table_whole_texts: SmolLM2 on whole books, loss by position and what earlier text gives
## table_temperature: Beyond the paper, YaRN without its temperature and DPRoPE with it
$(TABLES:%=table_%): table_%: env
	@$(PY) -m tables.$* $(SHOWN)
## fig_interpolation: Figure 2, what interpolation and extrapolation show the model
## fig_angle_distribution: Figure 1, two pairs, pre-trained against extended
## fig_frequency: Figure 3, pairs 6 and 22, first 24 intervals
## fig_distribution_complete: The same pairs, all intervals
## fig_disturbance_strategies: Interpolation against extrapolation per pair
## fig_disturbance: PI, YaRN and ours per pair
## fig_extension: SmolLM2 extended without training, loss against position
## fig_passkey: Figure 4, passkey accuracy against length, and by depth
## fig_disturbance_longbench: LongBench-E's score as the disturbance grows with falling n̂
## fig_selections: Beyond the paper, disturbance against loss over dozens of selections of pairs
## fig_whole_texts: SmolLM2 on whole books, loss against position and its difference to YaRN's
$(FIGURES:%=fig_%): fig_%: env
	@$(PY) -m figures.$* $(SHOWN)
audit: env ## Re-add the paper's averages, re-derive its claims, list what does not add up
	@$(PY) -m tables.audit

verify: env ## Measure the geometry, and SmolLM2 under DPRoPE, anew; compare with the committed records
	@$(PY) -m experiments.disturbance --results $(VERIFY)/results
	@$(PY) -m experiments.disturbance --scale smollm2 --results $(VERIFY)/results
	@$(PY) -m experiments.angle_distribution --results $(VERIFY)/results
	@$(PY) -m experiments.extension --method dprope --results $(VERIFY)/results
	@$(PY) -m experiments.verify $(VERIFY)/results
rerun: env ## Measure all of a scale's suite anew into build/rerun (QUICK=1: a sketch; BOOKS=, BENCHMARKS=, CORPUS=: directories)
	$(PY) -m experiments.rerun --scale $(or $(SCALE),tiny) $(if $(QUICK),--quick) \
	  $(if $(BOOKS),--books $(BOOKS)) $(if $(BENCHMARKS),--benchmarks $(BENCHMARKS)) \
	  $(if $(CORPUS),--corpus $(CORPUS))
ablations: env ## The part of `rerun` that goes through n̂ and b (a fine-tune and all evaluations for each selection)
	$(PY) -m experiments.rerun --scale $(or $(SCALE),tiny) $(if $(QUICK),--quick) --only ablations
report: env ## report/index.html: each claim beside what was measured, with every table and figure
	@$(PY) -m tables.report --results $(RESULTS)
pretrain: env ## Train the tiny base model into build/tiny (DATA=DIR of books; default the registry's)
	$(VENV)/bin/torchrun --nproc-per-node 2 -m experiments.pretrain --threads 1 --scale tiny $(if $(DATA),--data $(DATA)) \
	  --work build/pretrain --output build/tiny
train: env ## Fine-tune SCALE by METHOD=dprope at FACTOR=2 on what is there: CPU, a GPU, or all GPUs under ZeRO-3
	$(PY) -m experiments.finetune --scale $(or $(SCALE),tiny) --method $(METHOD) --factor $(FACTOR)
bench: env ## Speed and memory against the plain way, as ratios (half an hour on two cores)
	@$(PY) -m bench.selection
	@for what in perplexity passkey generation; do $(PY) -m bench.evaluation $$what; done
	@$(PY) -m bench.training
summary: env ## What was made, and where
	@$(PY) -m tables.summary
clean: ## Remove what `verify` and `rerun` measured (not the environment, not results/)
	rm -rf build runs report
