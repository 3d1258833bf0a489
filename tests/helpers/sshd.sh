#!/bin/sh
# A server of ssh of its own, with keys of its own, and a client's configuration that knows it:
#
#   tests/helpers/sshd.sh DIR ADDRESS PORT
#
# It makes what it needs in the folder DIR, and becomes the server, which says "Server listening" on
# standard error when it does. Who it lets in is the user that starts it.
#
#   DIR/config           for `ssh -F`: the server is called `box`
#   DIR/bin/ssh          an ssh that has this configuration, to be found first in a PATH
#   DIR/known, unknown, changed, user_key, other_key
#                        what a test may exchange in the configuration
set -eu
[ $# = 3 ] || {
  sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" >&2
  exit 2
}
PATH=$PATH:/usr/sbin:/sbin
dir=$(cd "$1" && pwd -P)
address=$2
port=$3
chmod 700 "$dir"

for key in host_key user_key other_key; do
  ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"
done
cp "$dir/user_key.pub" "$dir/authorized"
cat > "$dir/sshd_config" << END
Port $port
ListenAddress $address
HostKey $dir/host_key
AuthorizedKeysFile $dir/authorized
StrictModes no
UsePAM no
PermitRootLogin yes
PidFile none
PasswordAuthentication yes
END

# A port that is not the usual one stands in the name.
name=$address
[ "$port" = 22 ] || name="[$address]:$port"
echo "$name $(cat "$dir/host_key.pub")" > "$dir/known"
echo "$name $(cat "$dir/other_key.pub")" > "$dir/changed"
: > "$dir/unknown"
cat > "$dir/config" << END
Host box
 HostName $address
 Port $port
 User $(id -un)
 IdentityFile $dir/user_key
 IdentitiesOnly yes
 UserKnownHostsFile $dir/known
 GlobalKnownHostsFile none
END
mkdir -p "$dir/bin"
printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$dir/config" > "$dir/bin/ssh"
chmod 755 "$dir/bin/ssh"

# It wants a directory that a fresh machine does not have.
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
exec "$(command -v sshd)" -D -e -f "$dir/sshd_config"
