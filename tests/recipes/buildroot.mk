# What Buildroot does for packaging/buildroot, by its manual: the steps of its kernel-module and
# cargo-package, without its toolchain and its kernel. tests/recipes/run says where things lie:
# LINUX_DIR, TARGET_DIR and BR2_EXTERNAL_SOLOIST_PATH; the source lies in SOURCE.
INSTALL := install
RUSTC_TARGET_NAME := aarch64-unknown-linux-gnu
LINUX_MAKE_FLAGS := ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- INSTALL_MOD_PATH=$(TARGET_DIR)
kernel-module :=
cargo-package :=
include $(BR2_EXTERNAL_SOLOIST_PATH)/external.mk

$(SOURCE)/installed:
	$(foreach hook,$(SOLOIST_PRE_BUILD_HOOKS),$($(hook)))
	cd $(@D) && cargo build -q --offline --release --locked --target $(RUSTC_TARGET_NAME) $(SOLOIST_CARGO_BUILD_OPTS)
	$(MAKE) -C $(LINUX_DIR) $(LINUX_MAKE_FLAGS) $(SOLOIST_MODULE_MAKE_OPTS) \
		M=$(@D)/$(SOLOIST_MODULE_SUBDIRS) modules
	$(MAKE) -C $(LINUX_DIR) $(LINUX_MAKE_FLAGS) $(SOLOIST_MODULE_MAKE_OPTS) \
		M=$(@D)/$(SOLOIST_MODULE_SUBDIRS) modules_install
	$(SOLOIST_INSTALL_TARGET_CMDS)
