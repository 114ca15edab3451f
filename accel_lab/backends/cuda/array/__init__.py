"""The `array` library on CUDA."""
