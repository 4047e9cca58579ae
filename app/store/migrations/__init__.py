"""How a file of an older form becomes one of this form, one step for each file in `versions`.

A new step is a file `rNNNN_what.py` with the next number, which is also the next `VERSION` of `app/store/sqlite.py`. It
spells out its tables, because `app/store/tables.py` will have changed by the time it runs. There is no way down: an
older Parley refuses the file, and the backup beside it is what that one can read.
"""
