"""One short program for each engine, run by `python -m tools.beyond.engines`: python -I PROGRAM
MODEL REQUEST ANSWER.

A program runs in an environment of its own, so it imports nothing from this project. REQUEST is
JSON with token `ids`, how many of the last ones are `scored`, the `length` to serve and the
`threads`. ANSWER receives their losses in nats.
"""
