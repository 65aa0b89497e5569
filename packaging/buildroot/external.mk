# A Buildroot external tree, of which this source tree is the package. Its Rust is 1.85 or later:
#
#   make BR2_EXTERNAL=SOLOIST/packaging/buildroot menuconfig    External options, soloist
#
# with docs/examples/board.config as a fragment of the kernel's configuration. Buildroot never ran
# it: tests/recipes/run follows its manual's steps without it.
include $(BR2_EXTERNAL_SOLOIST_PATH)/package/soloist/soloist.mk
