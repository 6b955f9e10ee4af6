"""The kernels' PTX without a GPU: a check of its instructions, and their execution on the CPU.

======================  =============================================================================================
``reader.py``           the text of a PTX module as data ``forms.py``            allowed instructions: those whose
result IEEE 754 defines (``ci/check_kernels.py``) ``instructions.py``     C++ of each of them; memory, barriers and
local arrays go through ``executor.hpp`` ``translator.py``       C++ of functions and of the module ``executor.cpp``
threads, barriers, memory with a shadow that records the last writer and reader of each word ``executor.py``         PTX
of sources, libraries of PTX (both kept in the user's cache folder), launches, findings ``device.py``           CuPy
over that memory, for the cuda backend ``check.py``            models by ``backend="cuda"`` on all this, against
``backend="native"``: the command ======================
=============================================================================================
"""
