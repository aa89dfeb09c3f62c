# A wheel is built from the prepared tree, unpacked, and its modules copied; the recipe's own lines install the rest.
PYTHON3_PKG_WHEEL_NAME ?= $(if $(PYPI_NAME),$(PYPI_NAME),$(PKG_NAME))
PYTHON3_PKG_WHEEL_VERSION ?= $(PKG_VERSION)

compile: prepare
	cd $(PKG_BUILD_DIR) && $(PYTHON) -m build --no-isolation --wheel --outdir openwrt-build . >&2
	$(PYTHON) -m installer --no-compile-bytecode --destdir $(PKG_INSTALL_DIR) --prefix /usr \
		$(PKG_BUILD_DIR)/openwrt-build/$(PYTHON3_PKG_WHEEL_NAME)-$(PYTHON3_PKG_WHEEL_VERSION)-*.whl

# Unless the recipe says otherwise, whatever is in /usr/bin.
define Py3Package
ifndef Py3Package/$(1)/install
define Py3Package/$(1)/install
	if [ -d $(PKG_INSTALL_DIR)/usr/bin ]; then $(INSTALL_DIR) $$(1)/usr/bin; $(CP) $(PKG_INSTALL_DIR)/usr/bin/. $$(1)/usr/bin/; fi
endef
endif

install: install-$(1)
install-$(1): compile
	mkdir -p $(ROOT)$(SITE)
	$(CP) $(PKG_INSTALL_DIR)$(SITE)/. $(ROOT)$(SITE)/
	$$(call Py3Package/$(1)/install,$(ROOT))
endef
