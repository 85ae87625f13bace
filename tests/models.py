"""Small random models and a tokenizer for the tests; nothing is downloaded."""

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from tests.files import write

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 300,
    "max_position_embeddings": 128,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}


def random_model(config_class: str = "LlamaConfig", seed: int = 0, **overrides):
    """A seeded two-layer model of any architecture, weights large enough for positions to
    matter."""
    sizes = SIZES if config_class in ("GPTNeoXConfig", "FalconConfig") else GROUPED
    config = getattr(transformers, config_class)(**{**sizes, **overrides})
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4)
    return model


def tokens(length, rows=1, seed=0):
    """Random ids [rows, length]."""
    return torch.randint(3, 300, (rows, length), generator=torch.Generator().manual_seed(seed))


def token_losses(model, ids):
    """The loss of each token after the first, float32 [tokens − 1], from one pass over all of
    them."""
    ids = torch.as_tensor(ids)
    with torch.inference_mode():
        logits = model(ids[None, :-1], use_cache=False).logits[0].float()
    return torch.nn.functional.cross_entropy(logits, ids[1:], reduction="none").numpy()


def byte_tokenizer(template: str | None = None) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer without merges: one token per byte, 259 tokens.

    Args:
        template: what it puts around every text, such as "<s> $A".
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=259,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([], trainer)
    if template:
        special = [("<s>", 1), ("</s>", 2)]
        tokenizer.post_processor = processors.TemplateProcessing(template, special_tokens=special)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        model_max_length=128,
    )


def checkpoint(directory, tokenizer=None, **overrides):
    """Save a random Llama and a tokenizer, the byte tokenizer by default, under `directory`; return
    it."""
    random_model(**overrides).save_pretrained(directory)
    (tokenizer or byte_tokenizer()).save_pretrained(directory)
    return directory


def fine_tuned(directory, **settings) -> dict:
    """Write the training.json with which experiments.finetune would have left this checkpoint;
    return it."""
    import records
    from experiments.kit.loading import weights_hashes

    run = {
        "scale": "toy",
        "method": "yarn",
        "factor": 4.0,
        "options": {},
        "seed": 3,
        "steps": 7,
        "length": 2048,
        "batch": 1,
        "model": {"source": "toy", "sha256": {"model.safetensors": "def"}},
        **settings,
    }
    facts = {
        "run": run,
        "identity": records.identity(**run),
        "parameters": 1,
        "data_facts": {"sha256": "abc", "sequences": 7, "books": []},
        "ran_on": {},
        "sha256": weights_hashes(directory),
        "losses": [2.0] * 7,
        "seconds_per_step": [0.5] * 7,
    }
    facts["content"] = records.content_hash(facts)
    write(directory / "training.json", facts)
    return facts
