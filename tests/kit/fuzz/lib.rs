//! Nothing: the targets are in `tests/fuzz`.
