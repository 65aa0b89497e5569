SOLOIST_VERSION = 0.1.0
SOLOIST_SITE = $(BR2_EXTERNAL_SOLOIST_PATH)/../..
SOLOIST_SITE_METHOD = local
SOLOIST_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = --exclude=/build --exclude=/target
SOLOIST_LICENSE = MIT or Apache-2.0 (programs), GPL-2.0 (module)
SOLOIST_LICENSE_FILES = LICENSES/MIT.txt LICENSES/Apache-2.0.txt LICENSES/GPL-2.0.txt

SOLOIST_MODULE_SUBDIRS = kernel
# The module's own type information is of no use, and a kernel without pahole has none.
SOLOIST_MODULE_MAKE_OPTS = CONFIG_DEBUG_INFO_BTF_MODULES=
SOLOIST_CARGO_BUILD_OPTS = -p soloist

# A local site has no download step, in which Buildroot would fetch the crates.
define SOLOIST_FETCH
	cd $(@D) && $(HOST_MAKE_ENV) $(PKG_COMMON_CARGO_ENV) cargo fetch --locked
endef
SOLOIST_PRE_BUILD_HOOKS += SOLOIST_FETCH

define SOLOIST_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 755 $(@D)/target/$(RUSTC_TARGET_NAME)/$(if $(BR2_ENABLE_DEBUG),debug,release)/soloist \
		$(TARGET_DIR)/usr/bin/soloist
endef

$(eval $(kernel-module))
$(eval $(cargo-package))
