"""What README.md claims, measured: `make bench`, or `python -m tests.bench [SECTION ...]`.

One run, one table, everything on this machine and over loopback, in real processes. What is compared runs in the same
minute, alternating, so that noise hits all alike. A figure over its target is said loudly and fails nothing: a
benchmark that fails on a busy machine is soon ignored.
"""
