"""What a detector's own interpreter runs first; any Python reads this file, so that one that is too old says so.

The arguments: where tsadbench lies, modules that are lent, both as JSON, and what is to be done. None of this is
imported by name: nothing of tsadbench is installed in that interpreter.
"""

if __name__ == "__main__":
    import json
    import sys

    # The first entry is this file's folder.
    del sys.path[0]
    if sys.version_info < (3, 10):  # noqa: UP036 - it may be any
        json.dump({"version": ".".join(map(str, sys.version_info[:3]))}, sys.stdout)
        sys.exit()

    from importlib.util import module_from_spec, spec_from_file_location

    _folder, _lent = json.loads(sys.argv[1])
    _spec = spec_from_file_location("tsadbench", _folder + "/__init__.py", submodule_search_locations=[_folder])
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules["tsadbench"] = _package = module_from_spec(_spec)
    _spec.loader.exec_module(_package)

    from tsadbench.sandbox.interpreter.inside import begin

    begin(_lent, sys.argv[2:])
