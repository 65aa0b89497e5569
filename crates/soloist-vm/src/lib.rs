//! Boots stock kernels under QEMU with the module loaded.
