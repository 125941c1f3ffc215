"""The C library through ctypes: its file, its ABI, its handles and its calls."""
