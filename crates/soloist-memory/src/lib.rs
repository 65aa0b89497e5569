//! Timing model of caches, interconnect, controllers and DRAM.
