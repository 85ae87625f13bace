"""The pages that say what came out, from templates and records.

    python -m report.pages                 results/<model>/README.md of every model, results/claims.md, and the
                                           repository's own pages
    python -m report.pages --model tiny    one model's page

A model's page is rendered from templates/<model>.md, whose prose is about the repository's own records, where there is
one, and from templates/model.md otherwise. A sentence that the records no longer bear out is an error.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import jinja2

from analysis import results, time_taken
from analysis.results import Results, place
from core import files, rope
from core.errors import InputError
from experiments.kit import command_line
from experiments.kit.records import RESULTS, ROOT
from report import audit, claims_page, main_claims
from report.model_view import FILTERS, RIVAL, View, environment, holds
from report.paper_and_code import DIFFERENCES
from tables.kit import markdown

TEMPLATES = Path(__file__).parent / "templates"
# The repository's own pages, which speak of several models: where each belongs.
OVERALL = {
    "README.md": ROOT / "README.md",
    "experiments.md": ROOT / "experiments" / "README.md",
    "paper.md": RESULTS / "paper" / "README.md",
    "paper_and_code.md": RESULTS / "paper-and-code.md",
    "serving.md": RESULTS / "serving.md",
    "paper_scale.md": RESULTS / "paper-scale.md",
}


def pages(folder: Path, model: str | None = None) -> dict[Path, str]:
    """What belongs in which file: a model's page; or every model's, the claims, and the repository's own pages.

    Raises:
        InputError: no such model, or the records no longer say what a template does.
    """
    models = [model] if model else results.models(folder)
    if not models:
        raise InputError(f"no records under {folder}; measure something, or give --results.")
    made = {folder / name / "README.md": model_page(Results.of(name, folder)) for name in models}
    if not model:
        made[folder / "claims.md"] = claims(folder, {file.parent.name: text for file, text in made.items()})
    return made if model or folder.resolve() != RESULTS else made | overall_pages()


def model_page(measured: Results) -> str:
    """A model's page."""
    own = f"{measured.model.name.replace('-', '_')}.md"
    ours = measured.folder.resolve() == RESULTS and (TEMPLATES / own).is_file()
    return _render(own if ours else "model.md", environment(View(measured, measured.folder / measured.model.name)))


def claims(folder: Path, model_pages: dict[str, str]) -> str:
    """The page of the claims, which leads to those sections that the models' pages have."""
    tested = claims_page.tested(folder)
    names = {
        "tested": tested,
        "counts": claims_page.counts(tested),
        "meanings": claims_page.MEANING,
        "pages": model_pages,
        "rival": RIVAL,
    }
    return _render("claims.md", names)


def overall_pages() -> dict[Path, str]:
    """The repository's own pages, by where each belongs."""
    checks = audit.findings()
    of = {measured.model.name: measured for measured in results.every()}

    def took(model: str, *experiments: str) -> str:
        return View(of[model], ROOT).took(*experiments)

    names = {
        "cost": took,
        "all": sum(time_taken.compute().values(), time_taken.Compute()),
        "minutes": time_taken.commands(),
        "main_claims": main_claims.lines(RESULTS),
        "differences": markdown.render(DIFFERENCES, caption=False),
        "methods": list(rope.METHODS),
        "checks": len(checks),
        "agree": sum(check.holds for check in checks),
        "audit": markdown.render(audit.build(checks), caption=False),
    }
    made = {}
    for name, file in OVERALL.items():
        views = {model: View(measured, file.parent) for model, measured in of.items()}
        made[file] = _render(name, names | {"of": views})
    return made


def _render(template: str, names: dict) -> str:
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
        autoescape=False,  # Markdown: what is not the template's own words is escaped where it is inserted
    )
    engine.filters |= FILTERS | {"anchor": anchor}
    try:
        text = engine.get_template(template).render(names | {"holds": holds})
    except (jinja2.TemplateError, LookupError) as error:
        raise InputError(f"the records do not hold what {template} asks for ({error}); change the template.") from error
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)).strip() + "\n"


def anchor(heading: str) -> str:
    """What a link to a heading ends in, as GitHub makes it: small letters, marks and digits, spaces as hyphens."""
    kept = (sign for sign in heading.lower() if sign in " -_" or unicodedata.category(sign)[0] in "LMN")
    return "".join(kept).replace(" ", "-")


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.pages")
    parser.add_argument("--model", help="whose page (default: every model that has records, and the overall pages)")
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    made = pages(place(arguments.model, arguments.results), arguments.model)
    for file, text in made.items():
        files.write(file, text)
        print(os.path.relpath(file))


if __name__ == "__main__":
    command_line.run(main)
