"""Training text: where it comes from, how it is cut, in what order it comes back."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from experiments.kit import texts
from experiments.kit.texts import Book
from experiments.training import corpus
from experiments.training.corpus import Wanted, books, pack
from tests.changes import changes
from tests.files import write
from tests.models import byte_tokenizer

TEXTS = {"a": "abcdefghij" * 7, "b": "klmnopq" * 9, "c": "rs", "d": "tuvwxyz" * 20}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "books"
    folder.mkdir()
    for title in ("a", "c"):
        (folder / f"{title}.txt").write_text(TEXTS[title])
    rest = {
        "text": [TEXTS["b"], TEXTS["d"], None, "  "],
        "short_book_title": ["b", "d", "none", "blank"],
    }
    pq.write_table(pa.table(rest), folder / "rest.parquet", row_group_size=2)
    return folder


def packed(folder, tmp_path, batch=2, steps=3, length=10, seed=0):
    wanted = Wanted(str(folder), length, batch, steps, seed)
    return pack(wanted, byte_tokenizer(), tmp_path / "cache")


def text_of(item):
    return byte_tokenizer().decode(item["input_ids"])


def test_every_book_comes_once_in_an_order_of_the_seed(folder):
    def titles(seed):
        found = {book.title: book.text for book in books(str(folder), seed)}
        assert found == TEXTS
        return list(found)

    assert titles(0) == titles(0)
    assert any(titles(0) != titles(seed) for seed in range(1, 6))


def test_sequences_are_cut_from_one_book_each_and_come_again_in_another_order(folder, tmp_path):
    data = packed(folder, tmp_path, batch=2, steps=27)
    cut = sorted(t[i : i + 10] for t in TEXTS.values() for i in range(0, len(t) - 9, 10))
    assert data.facts["sequences"] == len(cut) == 27
    assert len(data) == 54
    first = [text_of(data[i]) for i in range(27)]
    second = [text_of(data[i]) for i in range(27, 54)]
    assert sorted(first) == sorted(second) == cut
    assert first != second
    assert (data[0]["input_ids"] == data[0]["labels"]).all()


def test_each_packaged_book_gives_its_share_from_a_place_of_the_seed_and_the_scored_one_none(
    tmp_path, monkeypatch
):
    """Each of three books gives a third; which of its sequences differs by seed."""
    library = [
        Book(title, "".join(random.Random(title).choices("abcdefgh", k=900))) for title in "wxyz"
    ]
    monkeypatch.setattr(texts, "books", lambda count: library[:count])
    starts = set()
    for seed in range(3):
        data = pack(Wanted("books", 10, 3, 10, seed), byte_tokenizer(), tmp_path / "cache")
        firsts = {book["title"]: book["first"] for book in data.facts["books"]}
        assert set(firsts) == {"x", "y", "z"}
        expected = []
        for book in library[1:]:
            start = 10 * firsts[book.title]
            expected += [book.text[start + 10 * i :][:10] for i in range(10)]
        assert sorted(text_of(data[i]) for i in range(30)) == sorted(expected)
        starts.add(tuple(firsts.values()))
    assert len(starts) == 3


def test_a_book_gives_at_most_so_many_sequences_and_the_order_names_the_book_of_each(
    folder, tmp_path
):
    for seed in range(3):
        wanted = Wanted(str(folder), 10, 1, 5, seed, per_book=2)
        data = pack(wanted, byte_tokenizer(), tmp_path / "cache")
        books = data.facts["books"]
        assert sum(book["sequences"] for book in books) == 5
        assert max(book["sequences"] for book in books) == 2
        order = data.order()
        assert [order.count(place) for place in range(len(books))] == [
            book["sequences"] for book in books
        ]
        for item, place in enumerate(order):
            assert text_of(data[item]) in TEXTS[books[place]["title"]]


def test_what_other_code_tokenised_is_not_taken(folder, tmp_path, monkeypatch):
    packed(folder, tmp_path)
    monkeypatch.setattr(corpus, "versions", lambda *_: {"tokenizers": "another"})
    packed(folder, tmp_path)
    made = [each for each in (tmp_path / "cache").iterdir() if each.is_dir()]
    assert len(made) == 2


def test_seeds_settings_and_edited_texts_do_not_share_a_cache(folder, tmp_path):
    caches = [packed(folder, tmp_path, steps=20)]
    caches.append(packed(folder, tmp_path, steps=20, seed=1))
    caches.append(packed(folder, tmp_path, steps=20, length=11))
    (folder / "a.txt").write_text(TEXTS["a"].replace("a", "A"))
    caches.append(packed(folder, tmp_path, steps=20))
    assert len({data.facts["sha256"] for data in caches}) == 4


def refusal(*arguments, **options):
    with pytest.raises(InputError) as error:
        packed(*arguments, **options)
    assert not list(arguments[1].glob("cache/*"))
    return str(error.value)


def test_sequences_that_were_changed_are_refused(folder, tmp_path):
    whole = packed(folder, tmp_path).facts
    (tokens,) = tmp_path.rglob("tokens.bin")
    facts = tokens.with_name("data.json")
    written = facts.read_text()
    for _, _, other in changes(json.loads(written)):
        write(facts, other)
        with pytest.raises(InputError, match=str(tokens.parent)):
            packed(folder, tmp_path)
    facts.write_text(written)
    assert packed(folder, tmp_path).facts == whole
    tokens.write_bytes(tokens.read_bytes()[:-1] + b"\1")
    with pytest.raises(InputError, match=str(tokens.parent)):
        packed(folder, tmp_path)


def test_what_cannot_be_trained_on_is_refused(folder, tmp_path):
    assert "its longest book has 140 tokens" in refusal(folder, tmp_path, length=141)
    assert "gives 27 sequences of 10 tokens and a batch needs 28" in refusal(
        folder, tmp_path, batch=28
    )
    assert "no directory" in refusal(tmp_path / "nowhere", tmp_path)
    (folder / "rest.parquet").unlink()
    (folder / "a.txt").write_text("")
    (folder / "c.txt").write_text("\n\n")
    assert "holds no text" in refusal(folder, tmp_path)


# ------------------------------------------------------------------------------------------
# Files that are no text


def parquet(columns):
    return lambda file: pq.write_table(pa.table(columns), file)


def torn_inside(file):
    """The end, with the schema, is whole; the rows are not."""
    pq.write_table(
        pa.table({"text": [f"word {n} " * 50 for n in range(9)]}), file, compression="zstd"
    )
    content = file.read_bytes()
    file.write_bytes(content[:20] + b"\xff" * 200 + content[220:])


BAD = {
    "latin.txt": lambda file: file.write_bytes("Ça va mal".encode("latin-1") * 20),
    "folder.parquet": lambda file: file.mkdir(),
    "torn.parquet": torn_inside,
    "other.parquet": parquet({"words": ["x"]}),
    "ints.parquet": parquet({"text": [1, 2, 3]}),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_text_is_refused_by_name(name, tmp_path):
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "good.txt").write_text("abcdefghij" * 7)
    BAD[name](folder / name)
    sentence = refusal(folder, tmp_path, steps=20)
    assert name in sentence
    assert "\n" not in sentence


def test_rows_and_files_without_text_are_no_books(tmp_path):
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "none.parquet")
    assert list(books(str(tmp_path), 0)) == []
    rows = {"text": ["one", None, "", "two"], "short_book_title": [7, 8, 9, None]}
    pq.write_table(pa.table(rows), tmp_path / "some.parquet")
    (tmp_path / "upper.TXT").write_text("three")
    found = {book.title: book.text for book in books(str(tmp_path), 0)}
    assert found == {"7": "one", "some 3": "two", "upper": "three"}
