"""Benchmark tables: published rows as the paper prints them, measured ones from records, never
mixed."""

from tables import intervals_longbench_e, longbench_e, ruler
from tests.analysis.recorder import score


def rows(table):
    """{block: [cells of each line, as (text, small, bold)]}, the header as texts."""
    return {block.title: [block.header, *block.rows] for block in table.blocks}


def texts(line):
    return [cell.text for cell in line]


def test_published_rows_are_the_papers_and_stand_above(recorder):
    recorder.add(
        "longbench_e",
        "pi",
        {"buckets": {"0-4k": score(1)}, "averages": {}, "tasks": {"qasper": {}}},
    )
    table = longbench_e.build(recorder.results())
    blocks = rows(table)
    assert (
        list(blocks)[:2] == ["LLaMA2-7B, published", "LLaMA2-13B, published"] and len(blocks) == 3
    )
    assert table.paper == "Table 1"
    _, *lines = blocks["LLaMA2-7B, published"]
    seven = {line[0].text: line[1:] for line in lines}
    assert texts(seven["PI (s = 2)"]) == ["28.21", "26.90", "26.79", "27.30", "26.85"]
    assert all(cell.bold and not cell.small for cell in seven["DPRoPE (s = 4)"])
    assert "qasper only" in list(blocks)[2]


def test_an_ablation_stands_below_the_papers(recorder):
    for b in (90, 720):
        scores = {"buckets": {"8k+": score(b / 10)}, "averages": {}}
        recorder.add("longbench_e", "dprope", scores, options={"intervals": b}, seed=0)
    scores = {"buckets": {"8k+": score(36)}, "averages": {}}
    recorder.add("longbench_e", "dprope", scores, seed=0)  # states no b: the default's, 360
    published, measured = intervals_longbench_e.build(recorder.results()).blocks
    assert (
        texts(published.rows[0]) == ["90", "31.47", "31.26", "30.44", "31.06"]
        and published.header[0] == "b"
    )
    assert [line[0].text for line in measured.rows] == ["90", "360", "720"] and measured.rows[1][
        1
    ].text == "36.0"
    assert "s = 2" in measured.title


def test_measured_rows_stand_apart_with_intervals_and_their_own_best(recorder):
    for method, at_4k, at_8k in (
        ("yarn", 50, 42),
        ("original", 60, 42),
        ("dprope", 55, 45),
        ("my-method", 1, 2),
    ):
        lengths = {"4096": score(at_4k), "8192": score(at_8k)}
        scores = {"lengths": lengths, "average": score((at_4k + at_8k) / 2)}
        recorder.add(
            "ruler", method, scores, samples=5, tasks=["vt", "cwe"], comparable=["samples"]
        )
    other = {"lengths": {"512": score(99)}, "average": score(99)}
    recorder.add(
        "ruler", "pi", other, samples=1, tasks=["vt", "cwe"], comparable=["samples"], file="other"
    )
    table = ruler.build(recorder.results())
    header, original, yarn, dprope, mine = rows(table)[
        "A Model, measured without training, 2 of 13 tasks"
    ]
    assert header == ("Method", "4k", "8k", "Avg.")
    names = [line[0].text for line in (original, yarn, dprope, mine)]
    assert names == ["Original", "YaRN (s = 2)", "DPRoPE (t = 0) (s = 2)", "My-method (s = 2)"]
    assert (original[1].text, original[1].small, original[1].bold) == ("60.0", "[59.0, 61.0]", True)
    assert (original[2].text, original[2].small, original[2].bold) == (
        "42.0",
        "[41.0, 43.0]",
        False,
    )
    assert dprope[2].bold and original[3].bold and not yarn[3].bold
    title, (_, other) = list(rows(table).items())[-1]  # other samples: a block of its own
    assert ", one prompt a task, each 50.0 points" in title
    assert other[0].text == "PI (s = 2)" and other[1].text == "99.0"
