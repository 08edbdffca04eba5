"""Declarations made from the schemas of our own kinds: each property at each kind of value.

Chains of them, with a revert at the end, are what `tests/api/test_declarations.py` and
`tests/e2e/test_declarations.py` declare; `cd tests && python -m declarations` counts them and
checks what can be checked without an API server.
After Acto (Gu et al., SOSP 2023): declared states come from the schema, one small change after
the other, and a bad one must be rejected or be undone by going back.
"""
