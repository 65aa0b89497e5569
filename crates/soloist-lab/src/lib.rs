//! Tasks, allocators and experiments over the memory model.
