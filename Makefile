# Everything that can be made here; `make help` lists it.
PYTHON  ?= python3
VENV    ?= .venv
MODEL   ?=
METHOD  ?= dprope
METHODS ?=
FACTOR  ?=
QUICK   ?=
TEXTS   ?=
BOOKS_OF ?=
BENCHMARKS ?=
CORPUS  ?=
REPLACE ?=
# Not read from the environment, where other programs use these names.
N_HAT    =
STEPS    =
SEED     =

RESULTS ?=
PY      := $(VENV)/bin/python
# What a user wrote is one word to the shell, and Make expands it neither here nor for the environment of a command.
WRITTEN := MODEL METHOD METHODS FACTOR QUICK TEXTS BOOKS_OF BENCHMARKS CORPUS REPLACE N_HAT STEPS SEED RESULTS
unexport $(WRITTEN)
define newline


endef
OTHERS  := PYTHON VENV METHOD MAX_JOBS FLASH_ATTN_CUDA_ARCHS
$(foreach name,$(filter-out $(WRITTEN) $(OTHERS),$(.VARIABLES)),$(if $(findstring command line,$(origin $(name))),\
  $(error $(name) is no variable of this Makefile; `make help` names those that there are)))
$(foreach name,$(WRITTEN),$(if $(findstring $(newline),$(value $(name))),$(error $(name) holds a line break; give it in one line)))
quote    = '$(subst ','\'',$(1))'
# An option without a value is on unless it is 0.
on       = $(filter-out 0,$(value $(1)))
option   = $(if $(value $(2)),$(1) $(call quote,$(value $(2))))
SHOWN    = $(call option,--model,MODEL) $(call option,--results,RESULTS)

# What is measured anew.
RERUN    = $(SHOWN) $(call option,--factor,FACTOR) $(if $(call on,QUICK),--quick) $(if $(call on,REPLACE),--replace) \
  $(call option,--texts,TEXTS) $(call option,--books-of,BOOKS_OF) $(call option,--benchmarks,BENCHMARKS) $(call option,--corpus,CORPUS) \
  $(if $(value METHODS),--methods $(foreach name,$(value METHODS),$(call quote,$(name))))

.DEFAULT_GOAL := help
.PHONY: help reproduce test lint without-beyond env env-flash lock tables figures pages audit verify train rerun ablations report clean \
  table_longbench

# `##@` begins a group of the list, `## ` after a target says what it does, and `##   ` below says which options it takes.
help: ## This list
	@echo "make TARGET [MODEL=NAME] [RESULTS=DIR]"
	@echo "  MODEL is a base model: tiny, smollm2, llama2-7b, llama2-13b, or a checkpoint of your own."
	@echo "  RESULTS is a folder of records: by default results/, and for a model of your own build/own/results/;"
	@echo "  of rerun and ablations build/rerun/MODEL/results/. What is rendered goes beside it."
	@awk '/^##@ /{print "\n" substr($$0, 5)} \
	  /^[a-z_-]+:.*## /{name = $$0; sub(/:.*/, "", name); sub(/^[^#]*## /, ""); printf "  %-29s%s\n", name, $$0} \
	  /^##   /{print "      " substr($$0, 6)}' $(MAKEFILE_LIST)
	@list() { [ -d $$1 ] || return 0; printf '\n%s\n' "$$3"; \
	  awk -v kind=$$2 '/^def [a-z][a-z0-9_]*\(results: Results\) -> (Table|Figure):/ {name = $$0; \
	    sub(/^def /, "", name); sub(/\(.*/, "", name); getline; sub(/^ *"""/, ""); sub(/"""$$/, ""); sub(/\.$$/, ""); \
	    print $$0 "\t" kind "_" name}' $$1/*.py | \
	  LC_ALL=C sort -V | awk -F '\t' '{printf "  %-29s%s\n", $$2, $$1}'; }; \
	list tables table "The paper's tables, of MODEL or of every model that has records"; \
	list figures fig "The paper's figures"; \
	list tables/beyond table "Tables beyond the paper"; \
	list figures/beyond fig "Figures beyond the paper"

##@ Check
reproduce: env ## Render everything, audit the paper, verify a part
	@$(MAKE) --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),-O) tables figures
	@$(MAKE) --no-print-directory pages audit verify report
	@git rev-parse --git-dir >/dev/null 2>&1 || exit 0; \
	  changed=$$(git status --porcelain README.md results tables figures experiments); \
	  if [ -z "$$changed" ]; then echo "Every table, figure and page is the committed one."; else echo "$$changed"; fi
test: env ## Run the test suite
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
lint: env ## Check style, format (ruff) and types (mypy)
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
without-beyond: env ## Show that the paper's part stands alone: render it without what lies in beyond/
	rm -rf build/without-beyond && git clone --quiet . build/without-beyond
	find build/without-beyond -name beyond -type d -prune -exec rm -r {} +
	at=$$(cd $(VENV) && pwd) && $(MAKE) -C build/without-beyond VENV="$$at" -o "$$at/.installed" tables figures pages

##@ Install
PIP     = $(PY) -m pip install --quiet --disable-pip-version-check
# The one on the PATH is taken, of whatever version; pip installs where there is none, or where it fails.
# It copies: nltk reads no file that has a second name, as uv's cache would give it.
UV      = 0.13.9
# From `pip config list` to what uv reads: the same indexes, files, constraints and certificates.
AS_UV   = s/\\n/ /g; /\.find-links=/s/ /,/g; s/^[^=]*\.index-url=/export UV_DEFAULT_INDEX=/p; \
  s/^[^=]*\.extra-index-url=/export UV_EXTRA_INDEX_URL=/p; s/^[^=]*\.find-links=/export UV_FIND_LINKS=/p; \
  s/^[^=]*\.constraint=/export UV_CONSTRAINT=/p; s/^[^=]*\.cert=/export SSL_CERT_FILE=/p
env: $(VENV)/.installed ## Create .venv with the pinned packages
$(VENV)/.installed: requirements.lock requirements-data.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: Python 3.11 or newer is needed; name one with make PYTHON=python3.12 ..."; exit 2; }
	@echo "installing the pinned packages into $(VENV) (1 minute with uv, 5 with pip, or more; without a word) ..."
	@$(PYTHON) -m venv $(VENV)
	@uv=$$(command -v uv || { $(PIP) uv==$(UV) 2>/dev/null && echo $(VENV)/bin/uv; }); \
	eval "$$($(PY) -m pip config list | sort -r | sed -nE '$(AS_UV)')"; \
	install() { [ -n "$$uv" ] && UV_INDEX_STRATEGY=unsafe-best-match UV_LINK_MODE=copy "$$uv" pip install --quiet --python $(PY) "$$@" || $(PIP) "$$@"; }; \
	install -r requirements.lock && install --no-deps -r requirements-data.lock
	@touch $@
env-flash: env ## Compile FlashAttention-2, for training on GPUs (needs nvcc 13)
##   FLASH_ATTN_CUDA_ARCHS=80 for an A100, 90 for an H100; MAX_JOBS=N files at a time
	$(PY) -m pip install wheel==0.48.0
	$(PY) -m pip install --no-build-isolation -r requirements-flash.txt
# What has no wheels for macOS; training on GPUs alone needs it.
LINUX   = triton|liger_kernel|nvidia-[^=]*|cuda-[^=]*
lock: ## Resolve requirements.in into requirements.lock
	rm -rf build/lock && $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet -r requirements.in
	{ head -1 requirements.lock; build/lock/bin/python -m pip freeze | sort -f | \
	  sed -E 's/\+cpu//; s/^($(LINUX))==.*/&; sys_platform == "linux"/'; } > build/requirements.lock
	mv build/requirements.lock requirements.lock

##@ Render from the records
tables: env ## Every table, into tables/MODEL/
	@$(PY) -m tables $(SHOWN)
figures: env ## Every figure, into figures/MODEL/
	@$(PY) -m figures $(SHOWN)
pages: env ## Every page: results/MODEL/README.md, README.md and others
	@$(PY) -m report.pages $(SHOWN)
# A function `def NAME(results: Results) -> Table:` (`-> Figure:`) of a module in tables/ (figures/) or in beyond/ there is
# one table or one figure. An experiment with records and no table of its own gets one of the scores that they hold, and
# any other name is refused with those that there are.
table_%: env
	@$(PY) -m tables $(call quote,$*) $(SHOWN)
fig_%: env
	@$(PY) -m figures $(call quote,$*) $(SHOWN)
table_longbench: table_longbench_e ## Table 1 by a shorter name
audit: env ## Recompute the paper's averages and claims; list what differs
	@$(PY) -m report.audit
report: env ## build/report/index.html: all pages in one file, its tables sortable
	@$(PY) -m report.html $(call option,--results,RESULTS)

##@ Measure
verify: env ## Measure a part anew and compare it with the committed records
	@$(PY) -m experiments.verify
rerun: env ## Measure a model's whole suite under build/rerun/, and render it
##   MODEL=tiny                  which base model
##   MODEL=PATH_OR_NAME FACTOR=2 your own model, without training, under build/own/
##   METHODS="pi yarn"           these methods alone
##   QUICK=1                     one seed and few samples
##   REPLACE=1                   measure it again and replace the records
##   TEXTS=DIR BENCHMARKS=DIR CORPUS=DIR    your own texts, items, books to train on
##   TEXTS=DIR BOOKS_OF=RECORD   of your texts, those that a record of losses is of
	@$(PY) -m experiments.rerun $(RERUN)
ablations: env ## Tables 4-7: vary n̂ and b; options as for `rerun`
	$(PY) -m experiments.ablation_n_hat $(RERUN)
	$(PY) -m experiments.ablation_intervals $(RERUN)

##@ Train
train: env ## Fine-tune a base model, on a CPU or on all GPUs (ZeRO-3)
##   MODEL=tiny METHOD=dprope N_HAT=40 FACTOR=2 STEPS=32 SEED=0 CORPUS=DIR of books, REPLACE=1
	$(PY) -m experiments.finetune $(call option,--model,MODEL) --method $(call quote,$(value METHOD)) \
	  $(call option,--n-hat,N_HAT) $(call option,--factor,FACTOR) $(call option,--steps,STEPS) $(call option,--seed,SEED) \
	  $(call option,--corpus,CORPUS) $(call option,--results,RESULTS) $(if $(call on,REPLACE),--replace)

##@ Other
clean: ## Remove what is made again in minutes; what was measured and .venv stay
	rm -rf $(addprefix build/,verify report without-beyond lock requirements.lock)
