"""The YAML that Marian writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_vanilla.interop.files.flat_yaml import parse_flat_yaml

NO_LINE_ENDS = st.characters(
    exclude_categories=["Cs"], exclude_characters="\n\r\x85\u2028\u2029"
)


def test_scalars_and_lists():
    text = """# options
type: transformer
preprocess: ""
sizes:
  - 58100
  - '5''8'
tied:
  []
inline: [1, "2"]
"a: \\"b\\" \\\\ \\x41 \\u2581 \\U0001f600 \\t": 3
? 'long: name'
: 4
nothing:
a:b: 5
"""
    assert parse_flat_yaml(text, "a.yml") == {
        "type": "transformer",
        "preprocess": "",
        "sizes": ["58100", "5'8"],
        "tied": [],
        "inline": ["1", "2"],
        'a: "b" \\ A \u2581 \U0001f600 \t': "3",
        "long: name": "4",
        "nothing": "",
        "a:b": "5",
    }


@given(
    st.dictionaries(st.text(NO_LINE_ENDS, min_size=1), st.integers(0, 99), max_size=5),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_tokens_that_pyyaml_writes_are_read(ids, allow_unicode):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    text = yaml.dump(ids, width=10**9, allow_unicode=allow_unicode)
    expected = {token: str(id_) for token, id_ in ids.items()}
    if ids:
        assert parse_flat_yaml(text, "a.yml") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n", "a.yml line 1 is not of the form \"name: value\": 'a'"),
        ("a: 1\nb: 2\na: 3\n", "line 3 has a name for the second time"),
        ('"a: 1', "line 1 is not of the form"),
        ('a: "b', "line 1 has a quote without an end"),
        ('a: "\\q"', r"has the unknown escape '\\\\q'"),
        ('a: "\\ud800"', "has the unknown escape"),
        ("a: |", "has more than scalars and lists"),
        ("a: {b: c}", "has more than scalars and lists"),
        ("a: &b c", "has more than scalars and lists"),
        ("a: 1\n- 2\n", "line 2 is a second value"),
        ("a:\n  b: 1\n", "line 2 is not of the form"),
        (": 1\n", "line 1 is not of the form"),
    ],
)
def test_other_yaml_is_refused_by_its_line(text, message):
    with pytest.raises(ValueError, match=message):
        parse_flat_yaml(text, "a.yml")
