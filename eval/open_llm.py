"""The four Open LLM benchmarks, through the tasks and the model class of EleutherAI's lm-eval.

Prompts, few-shot examples, tokenisation, metrics and truncation are lm-eval's. Added here are
documents from local files, scores one document at a time (so that a killed run resumes), and a
forward pass that computes what requests share only once. eval/open_llm_files.py reads the
documents.
"""

import copy
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import lm_eval.tasks
import numpy as np
import pyarrow.compute
import torch
from accelerate.utils.memory import should_reduce_batch_size
from datasets import Dataset, disable_progress_bars
from lm_eval.api.task import ConfigurableTask
from lm_eval.defaults import DEFAULT_OTHER_SEED
from lm_eval.models.huggingface import HFLM
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from core.errors import InputError, NonFiniteError, in_one_line
from core.huggingface.rotation import at_length, scale_for
from eval import special_tokens
from eval.generation import keeps_tokens, shared_prefix
from eval.intervals import mean_interval, mean_of_means
from eval.open_llm_files import TASKS, Benchmark, Tables, read

# lm-eval warns of every local data set, and of a model that was loaded by someone else.
logging.getLogger("lm_eval").setLevel(logging.ERROR)
disable_progress_bars()

CHUNK = 16  # documents whose requests are scored together; a killed run repeats at most so many

ANSWERS = 8  # to one document that are read side by side; changes memory, not scores


Tasks = dict[str, ConfigurableTask]  # of one benchmark, by key prefix


def load(name: str, data: Path | None = None, shots: int | None = None) -> Tasks:
    """lm-eval's task objects of a benchmark, by key prefix: one, or for MMLU one per subject.

    Local files change only where documents come from. For MMLU they may hold fewer than the 57
    subjects.

    Args:
        name: a key of TASKS.
        data: a directory laid out as :mod:`eval.open_llm_files` says; None for the hub.
        shots: fewer examples than the paper's, for a context that they do not fit in.

    Raises:
        InputError: the documents cannot be read.
    """
    benchmark = TASKS[name]
    shots = benchmark.shots if shots is None else shots

    # Read this folder only: indexing all of lm-eval's 14,000 tasks takes 15 s.
    folder = Path(lm_eval.tasks.__file__).parent / benchmark.folder
    manager = lm_eval.tasks.TaskManager(include_defaults=False, include_path=folder)
    tables = read(benchmark, data)
    with _unlike(f"a document of {benchmark.title}"):
        if benchmark.task in manager.all_subtasks:
            members = {name: benchmark.task}
        else:  # a task for each subject that the documents have
            subjects = {
                f"{name}/{task.removeprefix(benchmark.task)}": task
                for task in manager.all_subtasks
                if task.startswith(benchmark.task)
            }
            present = {f"{name}/{subject}" for subject in tables["test"]["subject"].to_pylist()}
            members = {key: subjects[key] for key in sorted(present)}
        group = []
        for key, task in members.items():
            splits = _splits(tables, name, key)
            split, examples = next(iter(splits.items()))
            if len(examples) < shots:
                raise InputError(
                    f"{key} has {len(examples)} examples in its split {split}, and a prompt takes "
                    f"{shots}; give more, or --shots {len(examples)}."
                )
            group.append(
                {
                    "task": task,
                    "num_fewshot": shots,
                    "custom_dataset": lambda of=splits, **_: of,
                }
            )
        loaded = manager.load({"group": name, "task": group})["tasks"]
    return {key: loaded[task] for key, task in members.items()}


def documents(tasks: Tasks, limit: int | None = None) -> list[str]:
    """The keys of the documents to score, such as "hellaswag/17" or "mmlu/abstract_algebra/17".

    The number is the document's row in the split that lm-eval scores. With a limit, the benchmark
    (for MMLU, all subjects in sequence) is cut into `limit` equal parts, and one document is drawn
    from each. So no document comes twice, and every part of the benchmark is in the sample.

    Args:
        tasks: of one benchmark, from :func:`load`.
    """
    keys = [key for key, _, _ in _rows(tasks)]
    if limit is None or limit >= len(keys):
        return keys
    edges = np.linspace(0, len(keys), limit + 1).astype(int)
    return [keys[row] for row in np.random.default_rng(0).integers(edges[:-1], edges[1:])]


def content_hashes(tasks: Tasks, keys: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of each document and of its requests: examples, question and answers, as a model
    is asked them.

    Args:
        tasks, keys: as for :func:`evaluate`.
    """
    hashes = {}
    for key, _, requests in _requests(tasks, keys):
        content = [requests[0].doc, [request.args for request in requests]]
        text = json.dumps(content, sort_keys=True, default=str)
        hashes[key] = hashlib.sha256(text.encode()).hexdigest()
    return hashes


def check(tokenizer: PreTrainedTokenizerBase, tasks: Tasks, keys: Iterable[str]) -> None:
    """Refuse documents that cannot be scored with the tokenizer; no model is needed.

    Args:
        tasks, keys: as for :func:`evaluate`.

    Raises:
        InputError: an answer has no tokens, or the model has no embedding for one of the tokens;
            the message names the document.
    """
    reader = SharedPrefixLM.__new__(SharedPrefixLM)  # without a model
    reader.tokenizer = tokenizer
    reader.add_bos_token = None
    reader.custom_prefix_token_id = None
    for key, _, requests in _requests(tasks, keys):
        for request in requests:
            question, answer = request.args
            asked = f"{_benchmark(key).title}, document {key}: the answer {answer!r}"
            before, after = reader._encode_pair(question, answer)
            if not after:
                raise InputError(f"{asked} adds no token to the question's; leave it out.")
            special_tokens.check_ids(tokenizer, before + after, f"{asked} or its question")


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tasks: Tasks,
    keys: Iterable[str],
) -> Iterator[tuple[str, dict]]:
    """Score documents one by one, in the benchmark's order.

    A document's score does not depend on which other documents are scored. Its few-shot examples
    are those that ``lm_eval.simple_evaluate`` gives it, with the default seed, in a run over the
    whole benchmark. (lm-eval's sampler draws for one document after another, so for a selection
    lm-eval itself gives other examples where it samples them, as for ARC.)

    Args:
        model: a causal language model. As in lm-eval, a prompt longer than its configuration's
            max_position_embeddings loses its beginning.
        tasks: of one benchmark, from :func:`load`.
        keys: the keys to score, from :func:`documents`.

    Yields:
        (key, {"score": lm-eval's metric of that document in [0, 1], "tokens": length of its prompt
        before any cut}).

    Raises:
        InputError: lm-eval cannot read a document.
        NonFiniteError: a log-likelihood is not finite; the message names the document.
    """
    # float32, because bfloat16 rounds a log-likelihood of −40 to a quarter of a nat, so choices
    # would tie
    lm = SharedPrefixLM(
        pretrained=model, tokenizer=tokenizer, batch_size=ANSWERS, softmax_dtype="float32"
    )
    pending = _requests(tasks, keys)
    while chunk := list(islice(pending, CHUNK)):
        answers = iter(
            lm.loglikelihood(
                [request for *_, requests in chunk for request in requests], disable_tqdm=True
            )
        )
        for key, task, requests in chunk:
            results = list(islice(answers, len(requests)))
            if not np.isfinite([log_likelihood for log_likelihood, _ in results]).all():
                raise NonFiniteError(f"the log-likelihood of an answer to {key} is not finite")
            score = float(task.process_results(requests[0].doc, results)[_benchmark(key).metric])
            if not np.isfinite(score):  # mc2, if all answers are too improbable for float64
                raise NonFiniteError(f"the score of {key} is not finite")
            yield key, {"score": score, "tokens": len(lm.tok_encode(requests[0].args[0]))}


def aggregate(scores: dict[str, list[float]]) -> dict[str, dict]:
    """Scores of benchmarks in percent, each with a bootstrap 95 % interval over its documents.

    MMLU is lm-eval's own aggregate: the mean over subjects weighted by their scored documents,
    which is the mean over documents. "average" is the mean over the four benchmarks, present if all
    four are; for its interval each benchmark's documents are resampled separately.

    Args:
        scores: of each document in [0, 1], by benchmark.

    Returns:
        {benchmark or "average": {"mean", "low", "high", "n"}}, in the order of TASKS.
    """
    samples = {name: 100 * np.array(scores[name]) for name in TASKS if name in scores}
    table = {name: mean_interval(sample) for name, sample in samples.items()}
    if len(samples) == len(TASKS):
        table["average"] = mean_of_means(list(samples.values()))
    return table


def _splits(tables: Tables, name: str, key: str) -> dict[str, Dataset]:
    """The splits of a task: the whole benchmark, or of one subject."""
    if key != name:
        of_subject = pyarrow.compute.field("subject") == key.removeprefix(f"{name}/")
        tables = {split: table.filter(of_subject) for split, table in tables.items()}
    splits = {split: Dataset(table) for split, table in tables.items()}
    # lm-eval opens HellaSwag's training split even when no example is taken from it.
    splits.setdefault("train", Dataset(next(iter(tables.values())).slice(0, 0)))
    return splits


def _benchmark(key: str) -> Benchmark:
    """The benchmark that a document is of."""
    return TASKS[key.partition("/")[0]]


def _rows(tasks: Tasks) -> list[tuple[str, ConfigurableTask, int]]:
    """(key, task, row) of every document of a benchmark, in order."""
    return [
        (f"{prefix}/{row}", task, row)
        for prefix, task in tasks.items()
        for row in range(len(task.task_docs))
    ]


def _requests(tasks: Tasks, keys: Iterable[str]) -> Iterator[tuple[str, ConfigurableTask, list]]:
    """(key, task, lm-eval's requests, one per answer) of the documents with these keys."""
    wanted = set(keys)
    for key, task, row in _rows(tasks):
        shots = task.config.num_fewshot
        if row == 0:
            task.set_fewshot_seed(DEFAULT_OTHER_SEED)
        if key not in wanted:
            # advance the sampler, so that later documents get their usual examples
            task.sampler.sample(shots)
            continue
        with _unlike(f"document {key}"):
            doc = task.task_docs[row]
            context = task.fewshot_context(
                doc, num_fewshot=shots, gen_prefix=task.doc_to_prefix(doc)
            )
            # the right answer, which is needed only after the model has read the document
            task.doc_to_target(doc)
            requests = task.construct_requests(
                doc=doc, ctx=context, metadata=(task.config.task, row, task.config.repeats)
            )
        yield key, task, requests


@contextmanager
def _unlike(what: str) -> Iterator[None]:
    """Inside the context, whatever lm-eval raises of a file's content becomes one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {in_one_line(error)}"
        raise InputError(
            f"lm-eval cannot read {what} ({reason}); put an intact copy of its file there."
        ) from error


# ---- the model


class SharedPrefixLM(HFLM):
    """lm-eval's Hugging Face model, computing a shared prefix only once.

    HFLM reads the whole prompt again for every answer and computes logits at every position. Here a
    prompt is read once for all its answers, reusing the prefix that it shares with the previous
    prompt (MMLU's examples, TruthfulQA's preamble), and logits are computed for the answers only.
    The log-likelihoods are the same up to rounding.
    """

    def tok_encode(
        self, string: str, add_special_tokens: bool | None = None, **options
    ) -> list[int]:
        """The ids of a text; a tokenizer may have neither BOS nor EOS, whose text HFLM looks for at
        its beginning."""
        if self.prefix_token_id is None and add_special_tokens is None:
            add_special_tokens = True
        return super().tok_encode(string, add_special_tokens, **options)

    @torch.inference_mode()
    def _loglikelihood_tokens(self, requests: Sequence[tuple], **_) -> list[tuple[float, bool]]:
        """For each request (strings, context, continuation): (log-likelihood in nats, whether it is
        the greedy one)."""
        by_scale = defaultdict(lambda: defaultdict(list))
        lengths = {}  # one of those of each scale
        for i, (strings, context, continuation) in enumerate(requests):
            if not 0 < len(continuation) <= self.max_length:
                raise InputError(
                    f"the answer {strings[1]!r} has {len(continuation)} tokens, and the model "
                    f"scores 1 to "
                    f"{self.max_length}; leave it out."
                )
            # A text that is too long loses its beginning, and its last token is never read.
            kept = (context + continuation)[-(self.max_length + 1) :]
            scale = scale_for(self.model, len(kept) - 1)
            by_scale[scale][tuple(kept[: -len(continuation)])].append((i, continuation))
            lengths[scale] = len(kept) - 1
        answers = {}
        for scale, by_context in by_scale.items():
            with at_length(self.model, lengths[scale]):
                answers |= self._answers(by_context)
        return [answers[i] for i in range(len(requests))]

    def _answers(self, by_context: dict[tuple[int, ...], list]) -> dict[int, tuple[float, bool]]:
        """{request: (log-likelihood, whether greedy)} for {context: [(request, continuation)]} of
        one RoPE scale."""
        answers = {}
        shares = keeps_tokens(self.model)
        cache: Any = None
        held: tuple[int, ...] = ()
        for context in sorted(by_context):  # neighbours share the longest prefixes
            # The last token's logits score the first of the answer, so it is read with them.
            stem = context[:-1] if shares else ()
            shared = shared_prefix(held, stem)
            if shared:
                cache.crop(shared - len(held))
            elif shares:
                # Full layers even for sliding-window attention, as only those can be cropped; the
                # mask applies the window.
                cache = DynamicCache()
            if shared < len(stem):
                self.model(
                    self._tensor([stem[shared:]]),
                    past_key_values=cache,
                    use_cache=True,
                    logits_to_keep=1,
                )
            held = stem
            # least padding
            group = sorted(by_context[context], key=lambda request: len(request[1]))
            while group:
                try:
                    answers |= self._score(context[len(stem) :], group[: self.batch_size], cache)
                except RuntimeError as error:
                    if self.batch_size == 1 or not should_reduce_batch_size(error):
                        raise
                    # permanently: the next prompt is about as long
                    self.batch_size_per_gpu = self.batch_size // 2
                else:
                    group = group[self.batch_size :]
        return answers

    def _score(
        self, rest: tuple, batch: list[tuple[int, list[int]]], cache: DynamicCache | None
    ) -> dict[int, tuple]:
        """{request: (log-likelihood, whether greedy)} for answers to the cached prompt and the
        `rest` of its tokens."""
        width = len(batch[-1][1])
        # Padding comes after the answer, where causal attention hides it.
        inputs = self._tensor(
            [[*rest, *answer[:-1]] + [0] * (width - len(answer)) for _, answer in batch]
        )
        branches = copy.deepcopy(cache)
        if branches is not None:
            branches.batch_repeat_interleave(len(batch))
        logits = self.model(
            inputs,
            past_key_values=branches,
            use_cache=branches is not None,
            logits_to_keep=width,
        ).logits
        log_probs = torch.nn.functional.log_softmax(logits, dim=-1, dtype=self.softmax_dtype)
        scores = {}
        for (i, answer), scored in zip(batch, log_probs):  # scored: [width, vocabulary]
            tokens = self._tensor(answer)
            scored = scored[: len(answer)]
            scores[i] = (
                float(scored.gather(1, tokens[:, None]).sum()),
                bool((scored.argmax(-1) == tokens).all()),
            )
        return scores

    def _tensor(self, tokens: Sequence) -> torch.Tensor:
        return torch.tensor(tokens, device=self.device)
