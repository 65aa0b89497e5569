# SPDX-License-Identifier: MIT OR Apache-2.0
"""Matrix products by OpenBLAS, threads and their barriers being its own."""
import numpy as np

n = 384
a = np.arange(n * n, dtype=np.float64).reshape(n, n) % 17
b = a.T.copy()
for _ in range(6):
    b = a @ b
    b /= b.max()
print(b.trace())
