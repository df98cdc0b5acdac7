"""A discontinuous Galerkin solver for the Euler equations of gas dynamics, in 2D.

It is laid out as applications on array contexts are:

* ``array_context.py`` chooses a lazy array context,
* ``state.py`` has the container that holds the conserved quantities,
* ``discretization.py`` has the nodes, weights and matrices (numpy),
* ``operators.py`` applies them, and moves values between elements,
* ``physics.py`` has the equations and the numerical flux,
* ``time_stepping.py`` advances the state, with a compiled right-hand side.

The program that drives it is ``../vortex.py``.
"""

from __future__ import annotations
