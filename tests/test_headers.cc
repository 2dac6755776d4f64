// Owns the precompiled header that the tests share; has no code.
