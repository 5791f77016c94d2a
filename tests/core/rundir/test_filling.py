"""Files put into a directory that anybody may have filled."""

import errno

import pytest

from gradestack.rundir.place import filling


def test_errors_name_files_where_they_were_going_to_be(tmp_path):
    """Not by the name of a directory that is gone when it is read."""
    with pytest.raises(OSError, match="No space") as full, filling(tmp_path) as new:
        raise OSError(errno.ENOSPC, "No space left on device", str(new / "tables" / "samples.csv"))
    assert full.value.filename == str(tmp_path / "tables" / "samples.csv")
    with pytest.raises(ValueError, match="wrong") as wrong, filling(tmp_path) as new:
        raise ValueError(f"{new}/report.html is wrong")
    assert str(wrong.value) == f"{tmp_path}/report.html is wrong"
    assert not list(tmp_path.iterdir())


def test_what_was_written_before_an_error_is_not_put_there(tmp_path):
    (tmp_path / "page").write_text("before")

    def fill():
        with filling(tmp_path) as new:
            (new / "page").write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fill()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"page": "before"}


def test_files_have_the_rights_of_any_new_file(tmp_path):
    """The directory they are written in is nobody else's, they are not."""
    (tmp_path / "usual").write_text("")
    with filling(tmp_path) as new:
        assert new.stat().st_mode & 0o077 == 0
        (new / "page").write_text("")
    assert (tmp_path / "page").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_folder_in_the_place_of_a_page_is_left_alone(tmp_path):
    (tmp_path / "page").mkdir()
    with pytest.raises(IsADirectoryError) as there, filling(tmp_path) as new:
        (new / "page").write_text("")
    assert there.value.filename2 == str(tmp_path / "page")
