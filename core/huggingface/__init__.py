"""The checkpoints and models of Hugging Face transformers: their configuration, rotary embedding
and files."""
