#!/bin/bash
# Debian's Python, without site packages: the rules need nothing else.
exec /usr/bin/python3 -S tests/layering/layering_test.py
