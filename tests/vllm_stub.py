"""An environment of vLLM without vLLM: the project's own worker runs in it, on a stub of the engine's package.

The stub continues prompts by transformers' `generate`, one at a time, the last request first, and returns a stop as
vLLM does; or, where `model` is false, by counting up from the prompt's last token.
"""

import importlib.machinery
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import types
from importlib import metadata
from pathlib import Path

from experiments.lab.records import ROOT

WORKER = ROOT / "experiments" / "lab" / "serving" / "vllm_worker.py"
STARTED = "started.jsonl"  # one line for each start, in the environments' directory: what it was given
PROMPTS = "prompts.jsonl"  # one line for each request


def install(environments, version, **behaviour):
    """A stand-in for build/engines/vllm/bin/python.

    Args:
        version: of vLLM.
        behaviour: `model`; `after` how many answers it does what `then` says: "hang", "die", "fail" or "not finite".
    """
    place = environments / "vllm" / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    settings = {"version": version, "place": str(environments)} | behaviour
    place.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests import vllm_stub\nvllm_stub.main({settings!r})\n",
        encoding="utf-8",
    )
    place.chmod(0o755)


def worker_module():
    """The worker's program as a module; it imports vLLM only when it serves."""
    spec = importlib.util.spec_from_file_location("vllm_worker", WORKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(behaviour):
    isolated, worker, *arguments = sys.argv[1:]
    assert (isolated, worker) == ("-I", str(WORKER))
    child = subprocess.Popen(["sleep", "600"])  # vLLM starts processes too
    weights = Path(arguments[0]) / "model.safetensors"
    note(behaviour, STARTED, {"ids": [os.getpid(), child.pid], "model": arguments[0], "inode": weights.stat().st_ino}
         | {"settings": json.loads(arguments[1]), "environment": dict(os.environ)})  # fmt: skip
    if behaviour.get("after") == 0 and behaviour["then"] == "fail":
        sys.exit("(EngineCore pid=1) ERROR 01-01 [core.py:1] ValueError: no memory for the cache\nINFO it is over")
    distribution = metadata.distribution
    metadata.distribution = lambda name: (
        types.SimpleNamespace(version=f"{behaviour['version']}+cpu") if name == "vllm" else distribution(name)
    )
    sys.modules |= modules(behaviour)
    sys.argv = [worker, *arguments]
    program = worker_module()
    program.FAREWELL = 0.5
    program.main()


def note(behaviour, file, fact):
    with open(Path(behaviour["place"]) / file, "a", encoding="utf-8") as handle:
        handle.write(json.dumps(fact) + "\n")


def modules(behaviour):
    """vLLM's modules, as far as the worker and lm-eval's back end name them."""
    names = ("vllm", "vllm.inputs", "vllm.platforms", "vllm.lora", "vllm.lora.request", "vllm.renderers",
             "vllm.renderers.hf", "vllm.tokenizers")  # fmt: skip
    made = {name: types.ModuleType(name) for name in names}
    made["vllm"].__spec__ = importlib.machinery.ModuleSpec("vllm", None)  # lm-eval looks for it
    made["vllm"].LLM = lambda model, **arguments: Llm(model, behaviour, arguments)
    made["vllm"].SamplingParams = made["vllm"].TokensPrompt = lambda **arguments: types.SimpleNamespace(**arguments)
    made["vllm.inputs"].tokens_input = lambda prompt: {"prompt_token_ids": prompt}
    made["vllm.platforms"].current_platform = types.SimpleNamespace(is_cpu=lambda: True)
    made["vllm.lora.request"].LoRARequest = None
    made["vllm.renderers.hf"].resolve_chat_template = lambda **_: None
    made["vllm.tokenizers"].get_tokenizer = load_tokenizer
    return made


def load_tokenizer(name, tokenizer_mode, **arguments):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name)


class Llm:
    """vllm.LLM and its llm_engine in one."""

    def __init__(self, model, behaviour, arguments):
        self.behaviour, self.waiting, self.done, self.model = behaviour, [], 0, None
        self.llm_engine, self.model_config = self, None
        assert arguments["enforce_eager"] and arguments["max_model_len"] > 0
        os.write(1, b"a line that is no answer\n")  # as vLLM's processes print
        if behaviour.get("model"):
            from transformers import AutoModelForCausalLM

            self.model = AutoModelForCausalLM.from_pretrained(model).eval()
            self.model.generation_config.eos_token_id = None

    def add_request(self, key, prompt, parameters):
        note(self.behaviour, PROMPTS, {"key": key, "tokens": len(prompt["prompt_token_ids"])})
        self.waiting.append((key, prompt["prompt_token_ids"], parameters))

    def step(self):
        if self.done == self.behaviour.get("after", -1):
            {"hang": lambda: time.sleep(600), "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
             "fail": self.fail, "not finite": lambda: None}[self.behaviour["then"]]()  # fmt: skip
        not_finite = (self.done, "not finite") == (self.behaviour.get("after"), self.behaviour.get("then"))
        self.done += 1
        key, prompt, parameters = self.waiting.pop()
        tokens = self.continued(prompt, parameters)
        made = types.SimpleNamespace(token_ids=tokens, cumulative_logprob=float("nan") if not_finite else -1.0)
        done = types.SimpleNamespace(finished=True, request_id=key, outputs=[made])
        return [types.SimpleNamespace(finished=False), done]

    @staticmethod
    def fail():
        raise ValueError("a kernel is missing")

    def continued(self, prompt, parameters):
        if self.model is None:
            return [prompt[-1] + 1 + step for step in range(parameters.max_tokens)]
        import torch

        found = self.model.generate(
            torch.tensor([prompt]),
            do_sample=False,
            max_new_tokens=parameters.max_tokens,
            min_new_tokens=parameters.min_tokens,
            eos_token_id=parameters.stop_token_ids,
            pad_token_id=0,
        )
        return found[0, len(prompt) :].tolist()

    def generate(self, prompts, sampling_params, **_):
        """The log-probabilities of prompts, as lm-eval's back end asks for them."""
        import torch

        found = []
        for prompt in prompts:
            ids = torch.tensor([prompt.prompt_token_ids])
            with torch.inference_mode():
                scored = self.model(ids).logits[0, :-1].float().log_softmax(-1)
            rows = [{int(t): float(r[t]), int(r.argmax()): float(r.max())} for r, t in zip(scored, ids[0, 1:])]
            found.append(types.SimpleNamespace(prompt_logprobs=[None, *rows]))
        return found
