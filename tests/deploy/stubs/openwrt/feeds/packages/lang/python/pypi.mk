# What it derives from PYPI_NAME for the download; the test brings the file.
PKG_SOURCE ?= $(PYPI_NAME)-$(PKG_VERSION).tar.gz
