# docs/cli.md -> the manual page of the board's command, in roff: its verbs and exit codes, with nothing of other machines.
# awk -v version=VERSION -f man.awk docs/cli.md

function plain(text) {
	gsub(/`/, "", text)
	gsub(/\\\|/, "|", text)
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	return text ~ /^[.']/ ? "\\&" text : text
}

BEGIN {
	print ".TH MCPBOARD 1 \"\" \"mcpboard " version "\" \"User Commands\""
	print ".SH NAME\nmcpboard \\- Model Context Protocol in front of a phone board"
	print ".SH SYNOPSIS\n.B mcpboard\n.I VERB\n[\\fIOPTION\\fR]..."
	print ".SH DESCRIPTION\nServes the Model Context Protocol over HTTP, and forwards its tool calls to the Agent and"
	print "to Config Web on loopback. \\fBmcpboard \\-\\-help\\fR lists the verbs, those for other machines among them."
	print ".SH VERBS"
}

/^```/ { if (shown) print (is_code = !is_code) ? ".PP\n.EX" : ".EE"; next }
/^#/ { shown = $0 ~ /^### mcpboard (serve|config|doctor|tools|call)$/; if (shown) print ".SS " plain(substr($0, 5)); next }
/^\| -?[0-9]+ \|/ { split($0, cell, " \\| "); codes = codes ".TP\n" substr(cell[1], 3) "\n" plain(substr(cell[2], 1, length(cell[2]) - 2)) "\n" }
!shown || /^$/ || /^\|---/ || /^\| argument / { next }
/^\| / {
	split($0, cell, / \| /)
	print ".TP\n.B " plain(substr(cell[1], 3)) "\n" plain(substr(cell[2], 1, length(cell[2]) - 2))
	next
}
{ print plain($0) }

END {
	print ".SH EXIT STATUS\n" codes ".SH FILES\n.TP\n.I /etc/mcpboard/mcpboard.toml\nsettings; mcpboard config prints the effective ones"
	print ".SH SEE ALSO\nhttps://github.com/mcpboard/mcpboard"
}
