"""HTML as a reader of it sees it: tags that balance, ids, links, images, and what is loaded from elsewhere."""

from html.parser import HTMLParser

VOID = {"meta", "br", "img"}
SHAPES = {"rect", "path", "circle"}  # of an <svg>, which close themselves


class Reader(HTMLParser):
    """Follows the tags of a page and collects what it has."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags, self.unbalanced = [], [], [], []
        self.ids, self.loaded, self.targets, self.images = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.loaded += [found[name] for name in ("src", "srcset", "data", "poster", "action") if name in found]
        self.targets += [found["href"]] if "href" in found else []
        if len(found) != len(attrs):
            self.unbalanced.append(f"{tag}: an attribute twice")
        if tag == "img":
            self.images.append(found)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in SHAPES:
            self.unbalanced.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    @property
    def said(self):
        """All that is read, without the style and the script."""
        return "".join(self.text)
