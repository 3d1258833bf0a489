# Reads the header and prints what its section banners say, one line each:
#   table NAME NEED...    the table in the manual      //   >>json   needs: base     a JSON value
#   decl NAME NEED...     the declaration banner       // >>json (declarations)   needs: base
#   def NAME              the definition banner        // >>json (definitions)
#   test NAME PATH        the test file a declaration banner names, on its line or the next
function needs_of(line) {
  sub(/.*needs: */, "", line)
  sub(/  .*/, "", line)
  sub(/\[.*/, "", line)
  gsub(/-/, "", line)
  return line
}
# "all" stands for every section before it.
function expanded(kind, name, needs, list) {
  list = needs ~ /^ *all *$/ ? before[kind] : needs
  before[kind] = before[kind] " " name
  return list
}
/^\/\/   >>[a-z_]+ / {
  name = $2
  sub(/^>>/, "", name)
  print "table", name, expanded("table", name, needs_of($0))
}
/^\/\/ >>[a-z_]+ \(declarations\)/ {
  section = $2
  sub(/^>>/, "", section)
  banner = NR
  print "decl", section, expanded("decl", section, needs_of($0))
}
section != "" && NR <= banner + 1 && match($0, /\[tests\/[a-z_\/]+\.cpp\]/) {
  print "test", section, substr($0, RSTART + 1, RLENGTH - 2)
}
/^\/\/ >>[a-z_]+ \(definitions\)/ {
  name = $2
  sub(/^>>/, "", name)
  print "def", name
}
