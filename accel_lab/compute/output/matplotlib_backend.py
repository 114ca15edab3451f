"""What Matplotlib loads to draw in a context: Agg, with accel_lab's own `show`.

The interface is Matplotlib's for backends that are modules (`matplotlib.backends`).
"""

from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

from accel_lab.compute.output.matplotlib_figures import show

__all__ = ["FigureCanvas", "show"]
