# A wheel is built from the prepared tree, unpacked, and its modules copied; the recipe's own lines install the rest.
PYTHON3_PKG_WHEEL_NAME ?= $(if $(PYPI_NAME),$(PYPI_NAME),$(PKG_NAME))
PYTHON3_PKG_WHEEL_VERSION ?= $(PKG_VERSION)

# 24.10's Python for the build brings setuptools; since 25.12 it is a package of its own, and a recipe has to ask for it.
SETUPTOOLS := $(or $(filter 24.10,$(RELEASE)),$(filter python-setuptools/host,$(PKG_BUILD_DEPENDS)))

compile: prepare
	$(if $(SETUPTOOLS),,echo "Backend 'setuptools.build_meta' is not available." >&2; exit 1)
	cd $(PKG_BUILD_DIR) && $(PYTHON) -m build --no-isolation --wheel --outdir openwrt-build . >&2
	$(PYTHON) -m installer --no-compile-bytecode --destdir $(PKG_INSTALL_DIR) --prefix /usr \
		$(PKG_BUILD_DIR)/openwrt-build/$(PYTHON3_PKG_WHEEL_NAME)-$(PYTHON3_PKG_WHEEL_VERSION)-*.whl

# A package of the sources goes with each, by the same description and the same lines. Unless the recipe says
# otherwise, these install whatever is in /usr/bin.
define Py3Package
define Package/$(1)-src
$$(Package/$(1))
DEPENDS:=
USERID:=
endef

define Package/$(1)/install
	mkdir -p $$(1)$(SITE)
	$(CP) $(PKG_INSTALL_DIR)$(SITE)/. $$(1)$(SITE)/
	$$(call Py3Package/$(1)/install,$$(1))
endef

define Package/$(1)-src/install
	$$(call Package/$(1)/install,$$(1))
	find $$(1) -not -type d -not -name '*.py' -delete
	find $$(1) -mindepth 1 -empty -type d -delete
endef

ifndef Py3Package/$(1)/install
define Py3Package/$(1)/install
	if [ -d $(PKG_INSTALL_DIR)/usr/bin ]; then $(INSTALL_DIR) $$(1)/usr/bin; $(CP) $(PKG_INSTALL_DIR)/usr/bin/. $$(1)/usr/bin/; fi
endef
endif

install: install-$(1)
install-$(1): compile
	$$(call Package/$(1)/install,$(ROOT))
endef
