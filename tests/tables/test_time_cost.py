"""Table 9 has a row for each setting, by phase."""

from tables import time_cost


def test_times_are_by_setting_and_phase(made):
    cells = {"seconds": 1.0, "rounds": 3, "relative_to_pi": 1.01, "low": 0.9, "high": 1.1}
    settings = [("pi", {}, False), ("dprope", {"n_hat": 28}, False), ("clex", {"weights": "a_b=c"}, False)]
    times = [
        {"method": method, "options": options, "again": again, "phase": phase} | cells
        for method, options, again in [*settings, ("pi", {}, True)]
        for phase in ("train", "test")
    ]
    made.add("time_cost", "several", times, length=512)
    measured = time_cost.build(made.results()).blocks[-1]
    assert [row[0].text for row in measured.rows] == ["PI", "DPRoPE (n̂ = 28)", "CLEX", "PI, again"]
    assert len(measured.rows[0]) == 3 and measured.rows[0][2].text.startswith("1.01")
