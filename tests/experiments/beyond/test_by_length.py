"""A prompt that has the scale of its own length."""

from tests.models import checkpoint


def test_generate_scales_by_the_length_of_the_prompt_and_what_follows(call, tmp_path):
    """Within L the model is as it was; beyond it, as the method at that scale has it."""
    model = checkpoint(tmp_path / "llama")
    for count, same in ((20, []), (200, ["--method", "pi", "--factor", 2]), (300, ["--method", "pi", "--factor", 3])):
        asked = "--model", model, "--prompt", ("to be or not " * 40)[:count], "--tokens", 9
        by_length = call("generate", *asked, "--method", "by-length", "--of", "pi", "--factor", 4)
        assert by_length[0] == 0 and by_length[1] == call("generate", *asked, *same)[1]
