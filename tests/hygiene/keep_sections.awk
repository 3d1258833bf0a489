# Prints the header without the sections that are not in `keep` (",base,json,"). Their lines become
# blank ones, so that a compiler's message points at the real line.
BEGIN { on = 1 }
/^\/\/ >>[a-z_]+ \((declarations|definitions)\)/ {
  name = $2
  sub(/^>>/, "", name)
  on = index(keep, "," name ",") > 0
}
/^}  \/\/ namespace v/ { on = 1 }
{ print on ? $0 : "" }
