"""What a change would do, found out without doing it: the operator itself works on a copy.

`live` copies what the operator looks at, `wanted` says what a file would make of it, `rehearsal`
lets the operator work on the copy in simulated time, `effects` says what that means, and `words`
puts it for people.
"""
