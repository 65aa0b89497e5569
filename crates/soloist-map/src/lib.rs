//! Address maps: machine files, decoding, detection.
