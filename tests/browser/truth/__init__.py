"""Tests in a browser. They are a package, so that one browser and one page serve all of them."""
