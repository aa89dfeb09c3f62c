# Stands in for OpenWrt's own file: only what our recipes use, written for these tests.
INCLUDE_DIR := $(TOPDIR)/include
SHELL := /bin/sh

CP := cp -fpR
INSTALL_DIR := install -d -m0755
INSTALL_BIN := install -m0755
INSTALL_DATA := install -m0644
INSTALL_CONF := install -m0600
