"""The built-in demo MCP server: a program of its own, which imports nothing else of Parley.

`server.py` is its entry. What it offers: `plain_tools.py`, `asking_tools.py` with one ask each, `scenes.py` with
several, `tasks_2025.py` and `tasks_2026.py` with work that takes its time, `resources.py` and `prompts.py`. How it
asks: `questions.py` has the words, `asking.py` the wire, `rounds.py` the way of 2026-07-28, `errands.py` what takes
long. Below all of them: `data.py` never changes, `state.py` does, and `tools.py` is what a tool is made of.
"""
