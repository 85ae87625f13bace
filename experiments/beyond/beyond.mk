# What the Makefile has beyond the paper; it is read if it is here.
.PHONY: env-serving serving

##@ Beyond the paper
# An environment for each lock: the engines' packages contradict each other and this project's own.
unexport ENGINES
ENGINES := $(patsubst requirements-serving/%.lock,%,$(wildcard requirements-serving/*.lock))
env-serving: $(patsubst %,build/engines/%/.installed,$(value ENGINES)) ## Install the inference engines into build/engines/
##   ENGINES=vllm for one of them
build/engines/%/.installed: requirements-serving/%.lock
	@echo "installing $(<:requirements-serving/%.lock=%) into $(@D) (llama.cpp is compiled: ten minutes) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@# What vLLM wants of these is built for another torch, and importing it fails.
	@$(@D)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@
serving: env ## Compare exported models in every installed engine (an hour)
##   MODEL=tiny
	$(PY) -m tools.beyond.engines --model $(call quote,$(MEASURED))
