"""Whole computations that a job carries out in a process of its own.

Paths come in, JSON goes out and arrays stay in files: what a page starts with one click and
reads when it is done. Everything here is put together from the rooms below.
"""
