"""Records that were cut or lack what a page shows: refused in one sentence that names the file, never a traceback."""

import json
import re

import pytest

from analysis import results
from analysis.results import Results
from core.errors import InputError
from report import model_view, pages

BROKEN = {
    "cut": lambda text: text[: len(text) // 2],
    "no scores": lambda text: json.dumps({key: value for key, value in json.loads(text).items() if key != "scores"}),
    "no number": lambda text: re.sub(r": -?\d+\.\d+", ": NaN", text, count=1),
}
OF = {
    "longbench_e": "dprope_s=4*",
    "open_llm": "pi_s=2*",
    "passkey": "pi_s=2*",
    "ruler": "pi_s=2*",
    "time_cost": "*",
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("experiment", OF)
def test_a_broken_record_is_refused_in_a_sentence(folder, experiment, fault):
    file = folder.copy("tiny", experiment, OF[experiment], to="mine")[0]
    pages.model_pages(Results.of("mine", folder.path))
    file.write_text(BROKEN[fault](file.read_text()))
    for kept in (results._read, model_view._build):
        kept.cache_clear()
    with pytest.raises(InputError) as refused:
        pages.model_pages(Results.of("mine", folder.path))
    assert "\n" not in str(refused.value) and (fault == "no number" or file.name in str(refused.value))
