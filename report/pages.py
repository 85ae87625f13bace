"""The pages that say what came out, from templates and records.

    python -m report.pages                 every model's pages, and the repository's own
    python -m report.pages --model tiny    one model's pages

A model's page, results/MODEL/README.md, shows the paper's tables and figures; where there is
results/MODEL/beyond/, its README.md shows the rest. A page is rendered from templates/MODEL.md,
whose prose is about the repository's own records, if there is one, and from templates/model.md
otherwise. A sentence that the records no longer bear out is an error.
"""

import os
import re
import unicodedata
from collections import Counter
from pathlib import Path

import jinja2

from analysis import disturbance, drawing, results
from analysis.claims.statement import VERDICTS
from analysis.results import Results
from core import discovery, files, rope
from core.errors import InputError
from experiments.kit import command_line
from records import BEYOND, RESULTS, ROOT
from report import all_results, audit, claims_page, paper_and_code
from report.model_view import FILTERS, View, holds
from tables.kit import markdown

Pages = dict[Path, str]  # what belongs in which file

TEMPLATES = Path(__file__).parent / "templates"
BEYOND_TEMPLATES = Path(__file__).parent / BEYOND / "templates"
# The repository's own pages, which speak of several models: where each belongs.
OVERALL = {
    "README.md": ROOT / "README.md",
    "results.md": RESULTS / "README.md",
    "experiments.md": ROOT / "experiments" / "README.md",
    "paper.md": RESULTS / "paper" / "README.md",
    "paper_and_code.md": RESULTS / "paper-and-code.md",
}
# What every template can name.
GLOBALS = {
    "holds": holds,
    "deviations": disturbance.deviations,
    "recomputed": disturbance.recomputed,
    "FLOAT32": disturbance.FLOAT32,
    "EQUATION": disturbance.EQUATION,
    "equation": paper_and_code.equation,
}
_beyond = discovery.module(f"report.{BEYOND}.model_view")


def pages(folder: Path, model: str | None = None) -> Pages:
    """A model's pages; or every model's, the claims unless the records are a quick run's, and the
    repository's own.

    Raises:
        InputError: no such model, or the records no longer say what a template does.
    """
    folder = folder.resolve()  # links are found by whole paths
    measured = [Results.of(name, folder) for name in drawing.models(folder, model)]
    written: Pages = {}
    for each in measured:
        written |= model_pages(each)
    if model or measured[0].is_quick:
        return written
    tested = claims_page.tested(folder)
    written[folder / "claims.md"] = claims(tested)
    written[folder / "claims.csv"] = claims_page.table(tested)
    written[folder / "all.csv"] = all_results.table(folder)
    return written | overall_pages(tested) if folder == RESULTS else written


def model_pages(measured: Results) -> Pages:
    """A model's page, and that of what is beyond the paper."""
    folder = measured.folder / measured.name
    views = {TEMPLATES: View(measured, folder)}
    if _beyond and (folder / BEYOND).is_dir():
        views[BEYOND_TEMPLATES] = _beyond.View(measured, folder / BEYOND)
    written = {}
    for templates, view in views.items():
        own = f"{measured.name.replace('-', '_')}.md"
        has_own = measured.folder == RESULTS and (templates / own).is_file()
        names = view.offered() | {"further": len(views) > 1}
        text = _render(own if has_own else "model.md", names, templates)
        written[view.page / "README.md"] = text
    return written


def claims(tested: list) -> str:
    """The page of the claims, which leads to the models' pages."""
    names = {
        "tested": tested,
        "counts": Counter(one["verdict"] for claim in tested for one in claim),
        "verdicts": VERDICTS,
        "models": {
            one["measured"].name: one["name"]
            for claim in tested
            for one in claim
            if one["measured"]
        },
    }
    return _render("claims.md", names)


def overall_pages(tested: list) -> Pages:
    """The repository's own pages."""
    checks = audit.checks()
    measured = {each.name: each for each in results.every()}
    names = {
        "outcomes": outcomes(tested),
        "epsilons": markdown.render(paper_and_code.by_epsilon(), caption=False),
        "best_epsilon": paper_and_code.best_epsilon(),
        "methods": list(rope.METHODS),
        "checks": len(checks),
        "agree": checks.count(None),
        "kinds": audit.kinds(checks),
        "meaning": audit.KINDS,
        "rule": audit.RULE,
        "audit": markdown.render(audit.build(checks), caption=False),
    }
    written = {}
    overall = {TEMPLATES: OVERALL}
    view = View
    if _beyond:
        overall[BEYOND_TEMPLATES] = _beyond.OVERALL
        view = _beyond.View
    for templates, pages_of in overall.items():
        for template, file in pages_of.items():
            views = {name: view(each, file.parent) for name, each in measured.items()}
            written[file] = _render(template, names | {"of": views}, templates)
    return written


def outcomes(tested: list) -> dict[str, dict[str, list[str]]]:
    """By claim and outcome, on which models, in which state and by what it came out."""
    states = {"without training": "untrained", "fine-tuned": "fine-tuned"}
    by_claim: dict[str, dict[str, list[str]]] = {}
    for one in (one for claim in tested for one in claim):
        models = by_claim.setdefault(one["claim"].text, {}).setdefault(
            one["verdict"].removesuffix(" here"), []
        )
        if one["measured"]:
            deciding = {
                each.by: states.get(each.state, "")
                for each in reversed(one["statements"])
                if each.verdict == one["verdict"]
            }
            words = [f"{state} by {by}" if by else state for by, state in deciding.items()]
            stated = " and ".join(filter(None, reversed(words)))
            models.append(f"{one['name']} ({stated})" if stated else one["name"])
    return by_claim


def _render(template: str, names: dict, templates: Path = TEMPLATES) -> str:
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, TEMPLATES, BEYOND_TEMPLATES]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # of a template that another one includes
        extensions=["jinja2.ext.do"],
        # Markdown: what is not the template's own words is escaped where it is inserted
        autoescape=False,
    )
    engine.filters |= FILTERS | {"anchor": anchor}
    try:
        text = engine.get_template(template).render(GLOBALS | names)
    except (jinja2.TemplateError, LookupError) as error:
        raise InputError(
            f"the records do not hold what {template} asks for ({error}); change the template."
        ) from error
    if empty := re.search(r"\[[^]]*\]\(\)", text):
        raise InputError(
            f"{template} would write a link that leads nowhere: {empty[0]}; change the template."
        )
    source = (templates / template).relative_to(ROOT)
    text = f"<!-- written by make pages from {source} -->\n{text.lstrip()}"
    return (
        re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)).strip() + "\n"
    )


def anchor(heading: str) -> str:
    """What a link to a heading ends in, as GitHub makes it: small letters, marks and digits, spaces
    as hyphens."""
    signs = (
        sign for sign in heading.lower() if sign in " -_" or unicodedata.category(sign)[0] in "LMN"
    )
    return "".join(signs).replace(" ", "-")


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.pages")
    parser.add_argument(
        "--model", help="whose pages (default: every model that has records, and the overall pages)"
    )
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    model, folder = results.chosen(arguments.model, arguments.results)
    for file, text in pages(folder, model).items():
        files.write(file, text)
        print(os.path.relpath(file))


if __name__ == "__main__":
    command_line.run(main)
