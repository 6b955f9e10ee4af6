"""Check the PTX of the kernels without a GPU, and run it on the CPU.

* ``reader.py``: read the text of a PTX module as data.
* ``forms.py``: allowed instructions, whose results IEEE 754 defines (``ci/check_kernels.py``).
* ``instructions.py``: translate each instruction to C++. Memory, barriers and local arrays use ``executor.hpp``.
* ``translator.py``: translate functions and the whole module to C++.
* ``executor.cpp``: run threads and barriers. Shadow memory records the last writer and reader of each word.
* ``executor.py``: make PTX, compile it to CPU libraries, launch kernels, and collect findings. The user's cache folder
  keeps PTX and libraries.
* ``device.py``: imitate CuPy on the executor's memory, for the cuda backend.
* ``check.py``: the command. Run models with ``backend="cuda"`` on the executor, and compare the results with
  ``backend="native"``.
"""
