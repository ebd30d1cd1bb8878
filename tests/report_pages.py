"""A report page, taken apart, and what it shows."""

import html.parser
import json

import numpy as np

from dpmic_jax import MICrHistogram, ReplaceOne, secret_key
from dpmic_jax.mechanisms.deconvolution import Design
from dpmic_jax.results.axes import CategoryAxis, NumberAxis
from dpmic_jax.results.histograms import Histograms

SMALL = Design(side=12, calibration=(0.0, 0.0, 0.0, 1.0))
VOID = {"circle", "input", "meta", "path", "rect"}
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script></style><b onload='x'>",
    "&lt;i&gt; & $style ${x}",
    "it's",
)


class Page(html.parser.HTMLParser):
    """Elements of a page, in order, after checking that every one that is opened is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        element = {"tag": tag, **dict(attrs), "text": ""}
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self._open:
            element["text"] += data

    def all(self, tag, **attributes):
        return [
            element
            for element in self.elements
            if element["tag"] == tag
            and all(element.get(name) == value for name, value in attributes.items())
        ]

    def one(self, tag, **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def rows(self):
        """x, y, mic, lower, upper, distance, and whether there is a star."""
        heads = [element["text"].strip() for element in self.all("th")]
        assert heads == ["x", "y", "mic", "lower", "upper", "distance", "★"]
        cells = [element["text"] for element in self.all("td")]
        values = [float(element["value"]) for element in self.all("data")]
        assert 4 * len(cells) == 7 * len(values)
        stars = [{"★": True, "": False}[star] for star in cells[6::7]]
        numbers = (values[i::4] for i in range(4))
        return list(zip(cells[::7], cells[1::7], *numbers, stars, strict=True))

    @property
    def content(self):
        return json.loads(self.one("script", id="content")["text"])


def one_histogram(*, epsilon=0.5, key=None, records=1):
    """A histogram, and the 400 records that it is of."""
    rng = np.random.default_rng(0)
    age, dose = rng.uniform(0, 100, 400), rng.integers(0, 3, 400)
    release = MICrHistogram(epsilon=epsilon, design=SMALL, relation=ReplaceOne(records)).release(
        age, dose, bounds=[(0, 100), (-0.5, 2.5)], key=secret_key() if key is None else key
    )
    pair = NumberAxis("age", 0, 100), CategoryAxis("dose", ("low", "middle", "high"))
    return Histograms(axes=(pair,), release=release), age, dose
