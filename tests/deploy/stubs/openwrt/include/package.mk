# BUILD_DIR is where packages are prepared, ROOT where they are installed; both come from the test.
PKG_BUILD_DIR ?= $(BUILD_DIR)/$(PKG_NAME)-$(PKG_VERSION)
PKG_INSTALL_DIR ?= $(PKG_BUILD_DIR)/ipkg-install

FIELDS := SECTION CATEGORY SUBMENU TITLE URL DEPENDS USERID PKGARCH FILE_MODES

define BuildPackage
$(foreach field,$(FIELDS),$(eval $(field):=))
$(eval $(Package/$(1)))
PACKAGES += $(1)
$(foreach field,$(FIELDS),$(eval $(1)_$(field) := $($(field))))
endef

# `make describe`: one line for each variable that was given a value.
show = $(if $(strip $($(1))),$(info $(1)=$(strip $($(1)))))
describe:
	$(foreach name,PKG_NAME PKG_VERSION PKG_RELEASE PKG_LICENSE PKG_LICENSE_FILES PKG_HASH PYPI_NAME \
		PYTHON3_PKG_WHEEL_VERSION PACKAGES,$(call show,$(name)))
	$(foreach package,$(PACKAGES),$(foreach field,$(FIELDS),$(call show,$(package)_$(field))))
	$(foreach package,$(PACKAGES),$(info $(package)_conffiles=$(strip $(Package/$(package)/conffiles))))
	@:

prepare:
	$(Build/Prepare)

define Build/Prepare
	mkdir -p $(PKG_BUILD_DIR)
	tar -xzf $(SDIST) -C $(PKG_BUILD_DIR) --strip-components=1
endef
