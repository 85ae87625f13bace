"""Every number of README's results table, computed again from the records with pandas and SciPy alone.

Bootstrapped intervals are compared with normal ones, to a tenth of their width; all else to the last printed digit.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
EXTENDED = {("tiny", 2): 2048, ("tiny", 4): 4096, ("smollm2", 2): 16384}
N_HAT = {2: {"n_hat": 40}, 4: {"n_hat": 32}}  # 5/8 and 1/2 of 64
TEXTS = {"tiny": 8, "smollm2": 3}
RIVALS = {"pi": {}, "yarn": {}, "clex": {}}


@pytest.fixture(scope="module")
def readme():
    """The table's cells by claim and model."""
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("| ")]
    start = next(place for place, line in enumerate(lines) if line.startswith("| claim | paper"))
    rows = []
    for line in lines[start + 2 :]:
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) != 5 or not cells[-1].startswith("**"):
            break
        rows.append(cells)
    table = pd.DataFrame(rows, columns=["claim", "paper", "where", "ours", "outcome"])
    table["claim"] = table["claim"].replace("", None).ffill()
    table["model"] = table["where"].str.extract(r"\]\(results/([\w-]+)/")
    return table.set_index(["claim", "model"])


def records(model, experiment):
    """One row for each record: its setting, its seed (-1 without training) and all that it holds."""
    runs = [json.loads(file.read_text()) for file in sorted((ROOT / "results" / model / experiment).glob("*.json"))]
    table = pd.DataFrame(runs)
    table["seed"] = [run.get("training", {}).get("seed", -1) for run in runs]
    table["of"] = [json.dumps([run.get("method"), run.get("options")]) for run in runs]
    return table[table["data"].map(len) == TEXTS[model]] if experiment == "perplexity" else table


def runs(table, method, options, factor, trained):
    """The records of a setting by seed."""
    chosen = table[(table["of"] == json.dumps([method, options])) & (table["factor"] == factor)]
    return chosen[(chosen["seed"] >= 0) == trained].set_index("seed")


def numbers(text):
    """Those of a cell, without the names of settings and factors."""
    text = re.sub(r"s = \d+|n̂ = \d+|t = 0|× 10⁻³ nat", "", text).replace("−", "-").replace("+", "")
    return [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", text)]


def same(cell, expected, digits):
    assert numbers(cell) == pytest.approx(expected, abs=0.5001 * 10**-digits)


# Student's intervals over texts and seeds, Holm's levels


def student(*samples):
    """(mean, error below, error above, degrees of freedom) of independent errors, by Welch and Satterthwaite."""
    errors = [(sample.std(ddof=1) / np.sqrt(len(sample)), len(sample) - 1) for sample in samples if len(sample) > 1]
    return float(samples[0].mean()), *welch(errors)


def welch(errors):
    error, rest = np.sqrt(sum(each**2 for each, _ in errors)), sum(each**4 / freedom for each, freedom in errors)
    return error, error, error**4 / rest if rest else np.inf


def p_value(estimate, low=-np.inf, high=np.inf):
    """Of the nearer edge of the region that a statement places the number in."""
    mean, below, above, freedom = estimate
    gaps = [abs(mean - edge) / (below if mean > edge else above) for edge in (low, high) if np.isfinite(edge)]
    return 2 * stats.t.sf(min(gaps), freedom)


def intervals(estimates, **region):
    """(mean, low, high) of each at Holm's level."""
    order = sorted(range(len(estimates)), key=lambda place: p_value(estimates[place], **region))
    levels, failed = {}, None
    for rank, place in enumerate(order):
        level = 0.05 / (len(order) - rank)
        if failed is None and p_value(estimates[place], **region) > level:
            failed = level
        levels[place] = failed or level
    found = []
    for place, (mean, below, above, freedom) in enumerate(estimates):
        times = stats.t.ppf(1 - levels[place] / 2, freedom)
        found.append([mean, mean - times * below, mean + times * above])
    return found


# Losses on texts


def losses(run, length):
    """Nats per token of each text."""
    windows = pd.DataFrame(run["by_window"]).T.set_axis(["loss", "tokens"], axis=1)
    keys = windows.index.str.rsplit("/", n=2)
    windows["text"], windows["length"] = keys.str[0], keys.str[1].astype(int)
    sums = windows[windows["length"] == length].groupby("text")[["loss", "tokens"]].sum()
    return sums["loss"] / sums["tokens"]


def gaps(table, model, factor, ours, other, trained):
    """One setting's loss minus another's, [seeds, texts]."""
    length = EXTENDED[model, factor]
    both = [runs(table, *each, factor, trained) for each in (ours, other)]
    seeds = sorted(set(both[0].index) & set(both[1].index))
    return np.array([losses(both[0].loc[seed], length) - losses(both[1].loc[seed], length) for seed in seeds])


def over_both(values):
    return student(values.mean(axis=0), values.mean(axis=1))


def test_least_perplexity(readme):
    claim = "DPRoPE has the least perplexity at L'"
    on_books = gaps(records("smollm2", "perplexity"), "smollm2", 2, ("dprope", N_HAT[2]), ("yarn", {}), False)
    same(readme.ours[claim, "smollm2"], [on_books.mean(), *on_books[0]], 3)
    assert on_books.shape == (1, 3) and numbers(readme["where"][claim, "smollm2"])[-1] == 3
    table, estimates, shown = records("tiny", "perplexity"), [], []
    for factor in (2, 4):
        for rival in RIVALS.items():
            values = gaps(table, "tiny", factor, ("dprope", N_HAT[factor]), rival, True)
            assert values.shape == (3, 8)
            estimates.append(over_both(values))
            shown.append((factor, rival[0]))
    factor = int(re.search(r"s = (\d)", readme.ours[claim, "tiny"])[1])
    same(readme.ours[claim, "tiny"], intervals(estimates, high=0)[shown.index((factor, "yarn"))], 3)
    assert numbers(readme["where"][claim, "tiny"])[-2:] == [3, 8]


def test_less_disturbance(readme):
    claim = "Less disturbance extends a model better"
    for model, factors in (("smollm2", (2,)), ("tiny", (2, 4))):
        table, moved, estimates, shown = records(model, "perplexity"), disturbances(model, "float64"), [], []
        for factor in factors:
            settings = [("pi", {}), ("yarn", {}), ("dprope", {}), ("dprope", N_HAT[factor])]
            settings.sort(key=lambda each: moved[json.dumps(list(each)), factor])
            pairs = [(less, more) for place, less in enumerate(settings) for more in settings[place + 1 :]]
            shown += [(factor, *pair) for pair in pairs]
            estimates += [gaps(table, model, factor, *pair, False)[0] for pair in pairs]
        first, second = (moved[json.dumps(["dprope", options]), 2] for options in ({}, N_HAT[2]))
        place = shown.index((2, ("dprope", {}), ("dprope", N_HAT[2])))
        by_text = estimates[place]
        if model == "smollm2":
            measured = [by_text.mean(), *by_text]
        else:
            measured = intervals([student(values) for values in estimates], high=0)[place]
        *losses_, ours, theirs = numbers(readme.ours[claim, model])
        assert losses_ == pytest.approx(measured, abs=0.00051) and len(by_text) == {"smollm2": 3, "tiny": 8}[model]
        assert [ours, theirs] == pytest.approx([first, second], abs=0.0051)


# Disturbances


def disturbances(model, precision):
    """Averages in 10⁻³ nat by setting and factor."""
    table = records(model, "disturbance").explode("scores")
    scores = pd.json_normalize(table["scores"]).set_index(table.index)
    table = table.drop(columns="scores").join(scores, rsuffix="_")
    table = table[(table["precision"] == precision) & (table["convention"] == "released")]
    return (1e3 * table["average"]).groupby([table["of"], table["factor"]]).first()


def test_disturbances(readme):
    paper = pd.read_csv(ROOT / "results" / "paper" / "disturbance.csv").set_index(["method", "factor"])[
        "disturbance_e3"
    ]
    ours = disturbances("llama2-7b", "float32")
    off = [abs(ours[json.dumps([method, {}]), factor] / value - 1) for (method, factor), value in paper.items()]
    same(
        readme.ours["Table 3: DPRoPE's disturbance, 10⁻³ nat", "llama2-7b"],
        [ours['["dprope", {}]', 2], 100 * max(off)],
        2,
    )
    assert len(off) == 6
    for model in ("llama2-7b", "smollm2", "tiny"):
        exact = disturbances(model, "float64")
        expected = [exact['["dprope", {}]', 2], exact['["yarn", {}]', 2]]
        same(readme.ours["DPRoPE has the least disturbance", model], expected, 2)


# Benchmarks


def by_group(run, experiment):
    """What is drawn anew, in per cent: of Open LLM documents, of LongBench-E beyond L a task's means at two lengths."""
    if experiment == "open_llm":
        return {name: 100 * np.array(scores) for name, scores in run["by_document"].items()}
    tasks = run["scores"]["tasks"].values()
    return {bucket: np.array([of[bucket]["mean"] for of in tasks]) for bucket in ("4-8k", "8k+")}


def ahead(model, experiment, factors, trained):
    """DPRoPE minus each rival, as (factor, rival, estimate), and the printed means' differences."""
    table, found = records(model, experiment), []
    for factor in factors:
        ours = runs(table, "dprope", N_HAT[factor], factor, trained)
        for rival, options in RIVALS.items():
            theirs = runs(table, rival, options, factor, trained)
            seeds = sorted(set(ours.index) & set(theirs.index))
            if not seeds:
                continue
            groups = [[by_group(each.loc[seed], experiment) for seed in seeds] for each in (ours, theirs)]
            values = [np.mean([a[name] - b[name] for a, b in zip(*groups)], axis=0) for name in groups[0][0]]
            of_seeds = [np.mean([np.mean(a[name] - b[name]) for name in a]) for a, b in zip(*groups)]
            error = np.sqrt(sum(each.var() / len(each) for each in values)) / len(values)
            errors = [(error, np.inf)]
            if len(seeds) > 1:
                errors.append((np.std(of_seeds, ddof=1) / np.sqrt(len(seeds)), len(seeds) - 1))
            found.append((factor, rival, (float(np.mean(of_seeds)), *welch(errors)), sum(map(len, values)), len(seeds)))
    return found


@pytest.mark.parametrize(
    ("claim", "model", "experiment", "factors"),
    [
        ("DPRoPE is best on LongBench-E beyond L", "tiny", "longbench_e", (2, 4)),
        ("DPRoPE is best on short text (Open LLM)", "tiny", "open_llm", (2, 4)),
        ("DPRoPE is best on short text (Open LLM)", "smollm2", "open_llm", (2,)),
    ],
)
def test_benchmarks(readme, claim, model, experiment, factors):
    found = ahead(model, experiment, factors, trained=model == "tiny")
    cell = readme.ours[claim, model]
    factor = int(re.search(r"s = (\d)", cell)[1])
    place = [(each[0], each[1]) for each in found].index((factor, "yarn"))
    mean, low, high = intervals([each[2] for each in found], low=0)[place]
    printed = numbers(cell)
    assert printed[0] == pytest.approx(mean, abs=0.0051)
    assert printed[1:] == pytest.approx([low, high], abs=0.1 * (high - low))
    counts = numbers(readme["where"][claim, model].replace(",", "").split(")", 1)[1])
    assert counts == ([found[place][4]] if model == "tiny" else []) + [found[place][3]]


# Passkeys


def found_within(run, longest):
    lines = pd.DataFrame(run["scores"]["by_length"])
    lines = lines[lines["length"] <= longest]
    return round((lines["mean"] * lines["n"]).sum()), int(lines["n"].sum())


def test_passkeys(readme):
    claim = "DPRoPE finds every passkey within L'"
    for model, context, factors in (("smollm2", 8192, (2,)), ("tiny", 1024, (2, 4))):
        trained, table = model == "tiny", records(model, "passkey")
        table = table[table["lengths"].map(len) > 3]
        estimates = []
        for factor in factors:
            ours = runs(table, "dprope", N_HAT[factor], factor, trained)
            keys = [found_within(run, factor * context) for _, run in ours.iterrows()]
            shares = 100 * np.array([found / asked for found, asked in keys])
            ends = [stats.binomtest(*each).proportion_ci(method="wilson") for each in keys]
            over = stats.t.ppf(0.975, len(keys) - 1) * shares.std(ddof=1) / np.sqrt(len(keys)) if trained else 0.0
            below, above = (np.hypot(over, abs(100 * np.array(end) - shares).mean()) for end in zip(*ends))
            below = shares.mean() - max(shares.mean() - below, 0)
            estimates.append((shares.mean(), below / stats.norm.ppf(0.975), above / stats.norm.ppf(0.975), np.inf))
        mean, low, high = intervals(estimates, low=99.5)[0]
        others = [runs(table, rival, {}, 2, trained) for rival in RIVALS]
        asked = found_within(runs(table, "dprope", N_HAT[2], 2, trained).iloc[0], 2 * context)[1]
        expected = [mean, low, min(high, 100), asked]
        for rival in filter(len, others):
            shares = [np.divide(*found_within(run, 2 * context)) for _, run in rival.iterrows()]
            expected += [100 * np.mean(shares), asked]
        found, asked = found_within(runs(table, "original", {}, 2, False).iloc[0], context)
        same(readme.ours[claim, model], [*expected, 100 * found / asked, asked], 0)


# Time


def test_time(readme):
    scores = pd.DataFrame(records("tiny", "time_cost").iloc[0]["scores"])
    ours = scores[(scores["method"] == "dprope") & (scores["options"].map(len) == 0)]
    times = stats.norm.ppf(0.975)
    estimates = [
        (row.relative_to_pi, (row.relative_to_pi - row.low) / times, (row.high - row.relative_to_pi) / times, np.inf)
        for row in ours.itertuples()
    ]
    expected = intervals(estimates, high=1.005)[0]  # the paper prints two decimals
    same(readme.ours["DPRoPE takes no more time than PI", "tiny"], expected, 3)
