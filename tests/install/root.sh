# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# Debian roots made with nothing but debootstrap and apt, for the tests that
# install Soloist as a user does. To be sourced in the top directory; $root is
# the root that the functions work on.

mirror=http://deb.debian.org/debian

if [ "$(id -u)" != 0 ]; then
	echo "$0: root is needed for a chroot; try sudo" >&2
	exit 1
fi
command -v debootstrap >/dev/null || apt-get -q -y install debootstrap >&2

# SUITE: a bare Debian in build/chroot/SUITE.base, kept.
bare() {
	base=build/chroot/$1.base
	[ ! -e "$base/done" ] || return 0
	rm -rf --one-file-system "$base"
	mkdir -p "$base"
	debootstrap --variant=minbase "$1" "$base" $mirror >&2
	touch "$base/done"
}

# FROM SUITE: $root becomes a fresh copy of build/chroot/FROM that apt works in.
enter() {
	leave
	rm -rf --one-file-system "$root"
	cp -a "build/chroot/$1" "$root"
	rm -f "$root/done"
	if [ "$2" = bookworm ]; then
		echo "deb $mirror-security bookworm-security main" >"$root/etc/apt/sources.list.d/security.list"
	fi
	cp /etc/resolv.conf "$root/etc/"
	# A network that needs a certificate of its own needs it in there as well.
	mkdir -p "$root/usr/local/share/ca-certificates"
	cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
	for dir in proc sys dev; do mount --rbind --make-rslave "/$dir" "$root/$dir"; done
}

leave() {
	for dir in proc sys dev; do
		if mountpoint -q "$root/$dir"; then umount -R -l "$root/$dir"; fi
	done
}

# COMMAND: in $root, with nothing of this machine's environment.
inside() {
	env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		TERM="${TERM:-dumb}" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		chroot "$root" sh -euc "$1" </dev/null
}
