include $(sort $(wildcard $(BR2_EXTERNAL_MCPBOARD_PATH)/package/*/*.mk))
