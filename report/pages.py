"""The pages that say what came out, from templates and records.

    python -m report.pages                 every model's pages, and the repository's own
    python -m report.pages --model tiny    one model's pages

A model's page, results/MODEL/README.md, shows the paper's tables and figures; where there is
results/MODEL/beyond/, its README.md shows the rest. The words of the repository's own models, in
templates/MODEL.md, are about its own records; with --results, and of any other model, the page is
rendered from templates/model.md. A sentence that the records no longer bear out is refused.
"""

import os
import re
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import jinja2

from analysis import disturbance, drawing, results
from analysis.results import Results
from core import discovery, files, rope
from core.errors import InputError
from experiments.kit import command_line
from records import BEYOND, RESULTS, ROOT
from report import all_results, assumed, audit, claims_page, paper_and_code
from report.model_view import FILTERS, View
from report.sentences import FOLDERS, check
from tables.kit import markdown

Pages = dict[Path, str]  # what belongs in which file

TEMPLATES, BEYOND_TEMPLATES = FOLDERS
# The repository's own pages, which speak of several models, by the folder of their templates: where
# each belongs.
OVERALL = {
    TEMPLATES: {
        "README.md": ROOT / "README.md",
        "results.md": RESULTS / "README.md",
        "experiments.md": ROOT / "experiments" / "README.md",
        "paper.md": RESULTS / "paper" / "README.md",
        "paper_and_code.md": RESULTS / "paper-and-code.md",
    },
    BEYOND_TEMPLATES: {"experiments.md": ROOT / "experiments" / BEYOND / "README.md"},
}
# What every template can name.
GLOBALS = {
    "audit": audit,
    "claims_page": claims_page,
    "deviations": disturbance.deviations,
    "FLOAT32": disturbance.FLOAT32,
    "methods": rope.METHODS,
    "paper_and_code": paper_and_code,
}
# What the words of each folder of templates assume; the one beyond the paper may not be there.
ASSUMED = {TEMPLATES: assumed}
if _beyond := discovery.module(f"report.{BEYOND}.assumed"):
    ASSUMED[BEYOND_TEMPLATES] = _beyond
discovery.modules(f"report.{BEYOND}")  # so that their functions are offered to templates


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
    page = folder / "claims.md"
    written[page] = claims(tested, page)
    written[folder / "claims.csv"] = claims_page.table(tested)
    written[folder / "all.csv"] = all_results.table(folder)
    return written | overall_pages(tested) if folder == RESULTS else written


def model_pages(measured: Results) -> Pages:
    """A model's page, and that of what is beyond the paper; of the committed records in the
    repository's words of the model, where there are any."""
    folder = measured.folder / measured.name
    templates_of = {folder: TEMPLATES}
    if BEYOND_TEMPLATES in ASSUMED and (folder / BEYOND).is_dir():
        templates_of[folder / BEYOND] = BEYOND_TEMPLATES
    written = {}
    for page, templates in templates_of.items():
        file = page / "README.md"
        view = View(measured, page, beyond=templates == BEYOND_TEMPLATES)
        names = view.context() | {"further": len(templates_of) > 1}
        words_of = ASSUMED[templates].MODELS.get(measured.name)
        if words_of and measured.folder == RESULTS:
            text = _render(templates / f"{measured.name.replace('-', '_')}.md", names)
            check(text, words_of(view), file)
        else:
            text = _render(templates / "model.md", names)
        written[file] = _tidied(text)
    return written


def claims(tested: list, page: Path) -> str:
    """The page of the claims, which leads to the models' pages beside it and to committed ones."""

    def committed(file: str) -> str:
        return quote(os.path.relpath(RESULTS / file, page.parent))

    text = _render(TEMPLATES / "claims.md", {"tested": tested, "committed": committed})
    if page.parent == RESULTS:
        check(text, assumed.claims(tested), page)
    return _tidied(text)


def overall_pages(tested: list) -> Pages:
    """The repository's own pages."""
    checks = audit.checks()
    names = {
        "tested": tested,
        "checks": checks,
        "kinds": audit.kinds(checks),
        "differences": markdown.render(audit.build(checks), caption=False),
    }
    written = {}
    for templates in ASSUMED:
        for template, file in OVERALL[templates].items():
            views = {each.name: View(each, file.parent) for each in results.every()}
            of = {name: SimpleNamespace(**view.context()) for name, view in views.items()}
            text = _render(templates / template, names | {"of": of})
            for words in ASSUMED.values():
                if file in words.PAGES:
                    check(text, words.PAGES[file](views), file)
            written[file] = _tidied(text)
    return written


def _render(template: Path, names: dict) -> str:
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, *FOLDERS]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # of a template that another one includes
    )  # of Markdown: what is not the template's own words is escaped where it is inserted
    engine.filters |= FILTERS
    try:
        text = engine.get_template(template.name).render(GLOBALS | names)
    except (jinja2.TemplateError, LookupError) as error:
        raise InputError(
            f"the records do not hold what {template.name} asks for ({error}); change the template."
        ) from error
    source = template.relative_to(ROOT)
    return f"<!-- written by make pages from {source} -->\n{text.lstrip()}"


def _tidied(text: str) -> str:
    """Without blanks at the ends of lines and more than one blank line."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def main() -> None:
    parser = command_line.parser(__doc__, prog="python -m report.pages")
    parser.add_argument(
        "--model", help="whose pages (default: every model that has records, and the overall pages)"
    )
    command_line.add_results_argument(parser)
    arguments = parser.parse_args()
    model, folder = results.chosen(arguments.model, arguments.results)
    for file, text in pages(folder, model).items():
        print(os.path.relpath(files.write(file, text)))


if __name__ == "__main__":
    command_line.run(main)
