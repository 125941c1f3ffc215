"""What comes in from the caller, and what goes out to files and notebooks.

`arguments` checks the arguments of every public function, so that all errors name the call, the
argument and the value. `arraylike` and `hostarrays` take arrays of any library, and `synonyms`
knows the names that other libraries use. `saving` replaces a file as a whole, and `notebook` shows
text.
"""
