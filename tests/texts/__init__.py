"""What pages, charts and the command line say, stored as text and compared.

A test hands over what it sees, ``texts(page)`` or ``texts(sentence, "part")``, and the words are
held to the section of that test's name in ``tests/texts/<folder>/<file>.txt``. To change a
sentence: change it, run ``python -m tests.texts --write``, and read the difference with git.
"""
