"""What a public project states of itself: licence, citation, changes, a checklist, what is checked
before a commit."""

import hashlib
import re
import tomllib

import yaml

from eval import hub
from experiments.kit.records import ROOT
from tests.test_project import pins

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
# apache.org/licenses/LICENSE-2.0.txt
APACHE = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_the_licence_is_apaches_unmodified():
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE
    assert PROJECT["license"] == CITATION["license"] == "Apache-2.0"


def test_every_package_of_data_and_every_repository_has_its_licence_listed():
    listed = (ROOT / "LICENSES.md").read_text()
    packages = pins("requirements-data.lock").keys()
    repositories = {name.replace("Llama-2-13b", "Llama-2-7b") for name in hub.REVISIONS}
    for name in packages | repositories:
        assert re.search(rf"^\| `{re.escape(name)}`.*\|.*\| \S.* \|$", listed, re.MULTILINE), name


def test_one_version_is_stated():
    first = re.search(r"^## \[(.+?)\] – (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first[1] == PROJECT["version"] == CITATION["version"]
    assert first[2] == str(CITATION["date-released"])
