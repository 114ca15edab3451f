"""Kernels by their text, made once."""

from typing import Any

import wgpu


class Kernels:
    """The kernels of one device; for the threads that enqueue."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._layouts: dict[int, tuple[Any, Any]] = {}
        self._made: dict[str, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def made(self, text: str, buffers: int) -> tuple[Any, Any]:
        """Return the pipeline of a text and the layout of its bindings.

        Raises:
            GPUValidationError: it is no WGSL.
        """
        found = self._made.get(text)
        if found is None:
            layout, bindings = self._layout(buffers)
            module = self._device.create_shader_module(code=text)
            pipeline = self._device.create_compute_pipeline(
                layout=layout, compute={"module": module, "entry_point": "main"}
            )
            found = self._made[text] = pipeline, bindings
        return found

    def _layout(self, buffers: int) -> tuple[Any, Any]:
        """Return the layout of a pipeline with numbers and so many buffers, and of its bindings."""
        found = self._layouts.get(buffers)
        if found is None:
            entries = [
                {
                    "binding": at,
                    "visibility": wgpu.ShaderStage.COMPUTE,
                    "buffer": {"type": "storage" if at else "read-only-storage"},
                }
                for at in range(buffers + 1)
            ]
            bindings = self._device.create_bind_group_layout(entries=entries)
            layout = self._device.create_pipeline_layout(bind_group_layouts=[bindings])
            found = self._layouts[buffers] = layout, bindings
        return found
