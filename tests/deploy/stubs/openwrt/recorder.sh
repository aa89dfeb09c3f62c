# Stands in for rc.common: UCI content comes from variables, every call to procd is a line of output.
# SECTIONS names the sections; SECTION_OPTION holds an option, its words those of a list.
# ADDRESS_INTERFACE is what the network says; LOADED is where the script's own library would be.

config_load() { :; }

config_foreach() {
	for section in $SECTIONS; do "$1" "$section"; done
}

config_get() {
	eval "$1=\${$2_$3:-\${4:-}}"
}

config_get_bool() {
	config_get "$@"
	eval "case \$$1 in 1|on|true|yes|enabled) $1=1 ;; 0|off|false|no|disabled) $1=0 ;; *) $1=$4 ;; esac"
}

config_list_foreach() {
	eval "set -- \"\$3\" \${$1_$2:-}"
	callback=$1
	shift
	for item in "$@"; do "$callback" "$item"; done
}

network_get_ipaddr() {
	eval "$1=\${ADDRESS_$2:-}"
	eval "[ -n \"\$$1\" ]"
}

logger() {
	shift 4
	echo "logged: $*"
}

for call in procd_open_instance procd_set_param procd_append_param procd_close_instance \
	procd_add_reload_trigger procd_add_reload_interface_trigger; do
	eval "$call() { echo \"$call\${*:+ \$*}\"; }"
done
