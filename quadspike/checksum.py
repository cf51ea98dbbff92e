"""What tells that tensors on disk are still those that were written: safetensors would not."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor


def checksum(header: str, tensors: Mapping[str, Tensor]) -> str:
    """The CRC-32 of a text and of the names, types, shapes and bytes of contiguous tensors.

    >>> checksum("", {"a": torch.zeros(2)}) == checksum("", {"a": torch.tensor([0.0, -0.0])})
    False
    """
    value = zlib.crc32(header.encode())
    for name in sorted(tensors):
        tensor = tensors[name].cpu()
        value = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), value)
        value = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, value)
    return f"{value:08x}"
