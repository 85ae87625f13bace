"""The loop that draws, where there are records of a part."""


def test_what_has_no_record_is_left_out_by_name_and_alone_is_refused(recorder, call):
    recorder.add("ruler", "pi")
    folder = recorder.results().folder
    status, out, _ = call("tables.__main__", "passkey", "disturbance", "--results", folder)
    assert status == 0 and "passkey" in out.splitlines()[-1]
    status, _, err = call("tables.__main__", "passkey", "--results", folder)
    assert status == 2 and "passkey" in err
