"""The audit finds what is known to be wrong in the paper and of which kind it is; one rule holds
for all sentences."""

import pytest

from report import audit

WRONG = [
    # (38.03 + 76.61 + 44.02 + 50.68) / 4
    ("slip", "Open LLM table: Avg. of LLaMA2-7B, PI, s = 2: 50.35", "52.335"),
    ("slip", "section 4.3: table that the drops of 0.12 and 0.53 are read from", "Open LLM"),
    ("slip", "perplexity table: label of the LLaMA2-13B rows: 7B", "13B"),
    # 100 · (1 − 6.71 / 25.55), 100 · (1 − 22.92 / 35.44), 100 · (30.12 / 27.57 − 1)
    ("omission", "abstract: less disturbance than the strong baselines at 8k", "73.7 % less"),
    ("omission", "abstract: less disturbance than the strong baselines at 16k", "35.3 % less"),
    ("omission", "abstract: LongBench-E above existing methods, by up to", "9.25 % more"),
    # 27.61 − 28.75, which is CLEX's
    ("omission", "introduction, section 4: LongBench-E above existing methods (Avg.>4k)", "−1.14"),
    ("omission", "section 4.2: LongBench-E best at each extension (Avg.>4k)", "−1.14 points"),
    ("tie", "Open LLM table: best of LLaMA2-7B, MMLU in bold", "LLaMA2-7B, original and"),
    ("tie", "Open LLM over n̂: best of HellaSwag in bold: n̂ = 56", "n̂ = 56 and n̂ = 72"),
    # (31.64 + 31.40 + 30.43) / 3 is 31.1567: 31.16 in one table, 31.15 in two.
    ("rounding", "LongBench-E over n̂: Avg. of n̂ = 80 repeats the LongBench-E table", "31.16"),
    ("rounding", "LongBench-E over b: Avg. of b = 360 repeats the LongBench-E table", "31.16"),
    ("judgement", "section 4.2: LLaMA2-13B, 16k: DPRoPE keeps", "PI −0.47, YaRN −1.46"),
]


def test_what_does_not_agree_is_of_these_kinds():
    (block,) = audit.build(audit.checks()).blocks
    for row, (kind, printed, derived) in zip(block.rows, WRONG, strict=True):
        of_kind, statement, by_tables, why = (cell.text for cell in row)
        assert of_kind == kind
        assert statement.startswith(printed)
        assert by_tables.startswith(derived)
        assert why


def test_every_average_is_checked():
    # 16 LongBench rows with two averages each, 14 Open LLM, 10 RULER, and the two LongBench
    # ablations.
    assert len(list(audit.averages())) == 2 * 16 + 14 + 10 + 6 + 4


@pytest.mark.parametrize(
    "what, metric, values",
    [
        # 30.12 against 28.87, 28.65 and 27.57 at 7B; 31.67 against 26.43 at 13B
        (
            "LongBench-E above existing methods, by up to",
            "Avg.",
            {"pi": 4.33, "yarn": 5.13, "clex": 9.25, "original": 19.83},
        ),
        # 30.91 − 30.35 and 30.91 − 30.25 at 13B, 27.61 − 28.75 and 27.61 − 26.02 at 7B
        (
            "LongBench-E best at each extension",
            "Avg.>4k",
            {"pi": 0.56, "yarn": 0.64, "clex": -1.14, "original": 1.59},
        ),
        # 53.70 − 52.335, which is the mean of PI's row, 53.70 − 53.36 and 53.70 − 53.82
        (
            "Open LLM of 7B after extension to 8k",
            "Avg.",
            {"pi": 1.365, "yarn": 0.34, "original": -0.12},
        ),
    ],
)
def test_sentences_against_each_method_by_hand(what, metric, values):
    listed = audit.sentences()
    (sentence,) = (each for each in listed if (each.what, each.metric) == (what, metric))
    found = {method: run[1] for method, run in audit.against_each(sentence).items()}
    assert found == pytest.approx(values, abs=0.006)
