"""Benchmark tables: published rows as the paper prints them, measured ones from records, never
mixed."""

from tables import benchmarks
from tests.analysis.recorder import on_texts, score


def lines(table):
    """{block's title: {a row's name: the texts of its cells}}; a header's name is that of the
    rows' names."""
    by_title = {}
    for block in table.blocks:
        name, *header = block.header
        rows = {row[0].text: [cell.text for cell in row[1:]] for row in block.rows}
        by_title[block.title] = {name: header, **rows}
    return by_title


def test_published_rows_are_the_papers_and_stand_above(recorder):
    scores = {"buckets": {"0-4k": score(1)}, "tasks": {"qasper": {}}}
    recorder.add("longbench_e", "pi", scores)
    table = benchmarks.longbench_e(recorder.results())
    assert table.paper == "Table 1"
    seven, thirteen, measured = lines(table)
    assert (seven, thirteen) == ("LLaMA2-7B, published", "LLaMA2-13B, published")
    assert "qasper only" in measured
    assert lines(table)[seven]["PI (s = 2)"] == ["28.21", "26.90", "26.79", "27.30", "26.85"]
    (best,) = (row for row in table.blocks[0].rows if row[0].text == "DPRoPE (s = 4)")
    assert all(cell.bold and not cell.small for cell in best[1:])


def test_an_ablation_stands_below_the_papers(recorder):
    for b in (90, 720):
        scores = {"buckets": {"8k+": score(b / 10)}}
        recorder.add("longbench_e", "dprope", scores, options={"intervals": b}, seed=0)
    scores = {"buckets": {"8k+": score(36)}}
    recorder.add("longbench_e", "dprope", scores, seed=0)  # states no b: the default's, 360
    (_, published), (title, measured) = lines(
        benchmarks.intervals_longbench_e(recorder.results())
    ).items()
    assert next(iter(published)) == "b"
    assert (
        "DPRoPE is that of t = 0. " in benchmarks.intervals_longbench_e(recorder.results()).caption
    )
    assert published["90"] == ["31.47", "31.26", "30.44", "31.06"]
    assert measured == {"b": ["8k+"], "90": ["9.0"], "360": ["36.0"], "720": ["72.0"]}
    assert "s = 2" in title


def test_measured_rows_stand_apart_with_intervals_and_their_own_best(recorder):
    tasks = {"tasks": ["vt", "cwe"], "comparable": ["samples"]}
    measured = [("yarn", 50, 42), ("original", 60, 42), ("dprope", 55, 45), ("my-method", 1, 2)]
    for method, at_4k, at_8k in measured:
        lengths = {"4096": score(at_4k), "8192": score(at_8k)}
        scores = {"lengths": lengths, "average": score((at_4k + at_8k) / 2)}
        recorder.add("ruler", method, scores, samples=5, **tasks)
    other = {"lengths": {"512": score(99)}, "average": score(99)}
    recorder.add("ruler", "pi", other, samples=1, **tasks)
    table = benchmarks.ruler(recorder.results())
    *_, (title, rows), (apart, others) = lines(table).items()
    assert title == "A Model, measured without training, 2 of 13 tasks"
    assert rows == {
        "Method": ["4k", "8k", "Avg."],
        "Original": ["60.0", "42.0", "51.0"],
        "YaRN (s = 2)": ["50.0", "42.0", "46.0"],
        "DPRoPE (t = 0) (s = 2)": ["55.0", "45.0", "50.0"],
        "My-method (s = 2)": ["1.0", "2.0", "1.5"],
    }
    *_, of_five, _ = table.blocks
    bold = [(cell.text, cell.small) for row in of_five.rows for cell in row if cell.bold]
    assert bold == [("60.0", "[59.0, 61.0]"), ("51.0", "[50.0, 52.0]"), ("45.0", "[44.0, 46.0]")]
    assert ", one prompt a task, each 50.0 points" in apart  # other samples: a block of its own
    assert others == {"Method": ["512"], "PI (s = 2)": ["99.0"]}


def test_the_title_of_perplexities_names_the_books_whose_values_stand_there(recorder):
    """A text may be a part of a book; the book's value is one."""
    losses = {f"{book}, part {part}": 1.0 + part for book in "AB" for part in range(3)}
    recorder.add("perplexity", "pi", **on_texts({8192: losses}))
    *_, measured = benchmarks.perplexity(recorder.results()).blocks
    assert measured.title.endswith(", 6 parts of 2 texts: A; B")
    assert measured.rows[0][1].small == "(7.39, 7.39)"


def test_the_original_with_an_attention_factor_is_a_row_of_its_own(recorder):
    """Also where it scores the same, and the model has no ablations."""
    recorder.facts["ablated"] = []
    for factor, options in ((2, {}), (4, {}), (2, {"attention_factor": 1.07})):
        scores = {"lengths": {"8192": score(50)}, "average": score(50)}
        recorder.add("ruler", "original", scores, options=options, factor=factor, tasks=["vt"])
    *_, rows = lines(benchmarks.ruler(recorder.results())).values()
    assert list(rows) == ["Method", "Original", "Original, attention × 1.07 (s = 2)"]


def test_an_ablation_whose_values_share_no_seed_says_so(recorder):
    for n_hat, seeds in ((28, [0]), (40, [1, 2])):
        for seed in seeds:
            scores = {"tasks": {"mmlu": score(n_hat)}}
            recorder.add("open_llm", "dprope", scores, options={"n_hat": n_hat}, seed=seed)
    table = benchmarks.n_hat_open_llm(recorder.results())
    *_, rows = lines(table).values()
    assert list(rows) == ["n̂", "28, one seed", "40"]
    assert "every row has" not in table.caption and "share none" in table.caption


def test_an_ablation_over_b_at_a_fixed_n_hat_says_which(recorder):
    """As LLaMA2's suite measures it."""
    for options in ({"n_hat": 28}, {"n_hat": 28, "intervals": 90}):
        recorder.add("open_llm", "dprope", {"tasks": {"mmlu": score(1)}}, options=options)
    assert "that of n̂ = 28. " in benchmarks.intervals_open_llm(recorder.results()).caption
