//! This machine: the control interface, processes and their pages, and what
//! the running kernel offers.
