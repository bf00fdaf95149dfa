"""Records with a digest."""

import pytest

from keras_vanilla._record import read_record, write_record

RECORD = {"finished": False, "settings": {"rate": 0.1, "freeze": ["é"], "none": None}}


def test_record_comes_back(tmp_path):
    for record in (RECORD, {}, {"finished": True}):
        write_record(tmp_path / "run.json", record)
        assert read_record(tmp_path / "run.json") == record


def test_each_damaged_byte_is_found(tmp_path):
    path = tmp_path / "run.json"
    write_record(path, RECORD)
    content = path.read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        for damaged in (content[:place], bytes(flipped), content + content[:place]):
            if damaged != content:
                path.write_bytes(damaged)
                with pytest.raises(ValueError, match=f"{path} is damaged, or of anoth"):
                    read_record(path)


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("text", ["[]", "3", "{}", '{"digest": 0}', "[" * 10**5])
def test_other_json_is_refused(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="run.json is damaged, or of another version"):
        read_record(tmp_path / "run.json")
