################################################################################
#
# mcpboard
#
################################################################################

MCPBOARD_VERSION = 0.1.0
MCPBOARD_SITE = $(BR2_EXTERNAL_MCPBOARD_PATH)/../..
MCPBOARD_SITE_METHOD = local
MCPBOARD_LICENSE = MIT
MCPBOARD_LICENSE_FILES = LICENSE
MCPBOARD_SETUP_TYPE = setuptools

# The package without the roles that need another machine, and what builds it.
MCPBOARD_OVERRIDE_SRCDIR_RSYNC_EXCLUSIONS = \
	--exclude __pycache__ \
	$(addprefix --exclude /mcpboard/,$(shell cat $(MCPBOARD_SITE)/deploy/board-excludes)) \
	--include /mcpboard \
	--include /setup.cfg \
	--include /pyproject.toml \
	--include /LICENSE \
	--exclude '/*'

define MCPBOARD_INSTALL_SETTINGS
	$(INSTALL) -D -m 0640 $(MCPBOARD_PKGDIR)/mcpboard.toml \
		$(TARGET_DIR)/etc/mcpboard/mcpboard.toml
endef
MCPBOARD_POST_INSTALL_TARGET_HOOKS += MCPBOARD_INSTALL_SETTINGS

ifeq ($(BR2_PACKAGE_MCPBOARD_ALONGSIDE),y)
define MCPBOARD_PUT_ALONGSIDE
	$(SED) 's/^#\(listen\|agent_base_url\) = /\1 = /' \
		$(TARGET_DIR)/etc/mcpboard/mcpboard.toml
endef
MCPBOARD_POST_INSTALL_TARGET_HOOKS += MCPBOARD_PUT_ALONGSIDE
endif

# The host role is not on the board, its command would find nothing to run.
define MCPBOARD_REMOVE_HOST_COMMAND
	rm -f $(TARGET_DIR)/usr/bin/device-host-agent
endef
MCPBOARD_POST_INSTALL_TARGET_HOOKS += MCPBOARD_REMOVE_HOST_COMMAND

define MCPBOARD_INSTALL_INIT_SYSV
	$(INSTALL) -D -m 0755 $(MCPBOARD_PKGDIR)/S90mcpboard \
		$(TARGET_DIR)/etc/init.d/S90mcpboard
	$(INSTALL) -D -m 0644 $(MCPBOARD_PKGDIR)/mcpboard.default \
		$(TARGET_DIR)/etc/default/mcpboard
endef

define MCPBOARD_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(MCPBOARD_SITE)/deploy/systemd/mcpboard.service \
		$(TARGET_DIR)/usr/lib/systemd/system/mcpboard.service
endef

define MCPBOARD_USERS
	mcpboard -1 mcpboard -1 * - - - Model Context Protocol server
endef

# The settings may name a token; the server, which is not root, has to read them.
define MCPBOARD_PERMISSIONS
	/etc/mcpboard/mcpboard.toml f 640 root mcpboard - - - - -
endef

$(eval $(python-package))
