# BUILD_DIR is where packages are prepared, ROOT where they are installed, PACKED where the files of each package are
# laid out by name; RELEASE is the one that packs. All come from the test.
PKG_BUILD_DIR ?= $(BUILD_DIR)/$(PKG_NAME)-$(PKG_VERSION)
PKG_INSTALL_DIR ?= $(PKG_BUILD_DIR)/ipkg-install

FIELDS := SECTION CATEGORY SUBMENU TITLE URL DEPENDS USERID PKGARCH FILE_MODES

# What packs an ipk sets the modes that the description names, and stops at a file that is not there. What packs an apk
# takes modes and owners from the files, and never looks at the description.
mode = chmod $(word 4,$(2)) $(1)$(word 1,$(2))

define BuildPackage
$(foreach field,$(FIELDS),$(eval $(field):=))
$(eval $(Package/$(1)))
PACKAGES += $(1)
$(foreach field,$(FIELDS),$(eval $(1)_$(field) := $($(field))))

pack: pack-$(1)
pack-$(1): compile
	mkdir -p $(PACKED)/$(1)
	$$(call Package/$(1)/install,$(PACKED)/$(1))
	$$(if $$(filter 24.10,$(RELEASE)),$$(foreach each,$$($(1)_FILE_MODES),$$(call mode,$(PACKED)/$(1),$$(subst :, ,$$(each)))))
endef

# `make describe`: one line for each variable that was given a value.
show = $(if $(strip $($(1))),$(info $(1)=$(strip $($(1)))))
describe:
	$(foreach name,PKG_NAME PKG_VERSION PKG_RELEASE PKG_LICENSE PKG_LICENSE_FILES PKG_HASH PKG_MAINTAINER PKG_CPE_ID \
		PYPI_NAME PYTHON3_PKG_WHEEL_VERSION PACKAGES,$(call show,$(name)))
	$(foreach package,$(PACKAGES),$(foreach field,$(FIELDS),$(call show,$(package)_$(field))))
	$(foreach package,$(PACKAGES),$(info $(package)_conffiles=$(strip $(Package/$(package)/conffiles))))
	@:

prepare:
	$(Build/Prepare)

define Build/Prepare
	mkdir -p $(PKG_BUILD_DIR)
	tar -xzf $(SDIST) -C $(PKG_BUILD_DIR) --strip-components=1
endef
