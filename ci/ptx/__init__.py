"""Check the PTX of the kernels without a GPU, and run it on the CPU.

* ``reader.py``: read the text of a PTX module as data.
* ``forms.py``: the allowed instructions, whose result IEEE 754 defines (``ci/check_kernels.py``).
* ``instructions.py``: translate each instruction to C++. Memory, barriers and local arrays use ``executor.hpp``.
* ``translator.py``: translate functions and the whole module to C++.
* ``executor.cpp``: run threads and barriers. The memory has a shadow that records the last writer and reader of each
  word.
* ``executor.py``: make PTX and compile it to CPU libraries (both are kept in the user's cache folder), launch kernels,
  and collect findings.
* ``device.py``: imitate CuPy on the executor's memory, for the cuda backend.
* ``check.py``: the command. It runs models with ``backend="cuda"`` on the executor and compares them with
  ``backend="native"``.
"""
