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

# SUITE [ARCH]: a bare Debian in build/chroot/SUITE.base, of another architecture in
# SUITE-ARCH.base; kept.
bare() {
	base=build/chroot/$1${2:+-$2}.base
	[ ! -e "$base/done" ] || return 0
	rm -rf --one-file-system "$base"
	mkdir -p "$base"
	debootstrap ${2:+--arch="$2"} --variant=minbase "$1" "$base" $mirror >&2
	touch "$base/done"
}

# Programs of arm64 run here, by QEMU.
emulate() {
	[ -x /usr/bin/qemu-aarch64-static ] || apt-get -q -y install --no-install-recommends qemu-user-static binfmt-support >&2
	dir=/proc/sys/fs/binfmt_misc
	[ -e $dir/register ] || mount -t binfmt_misc binfmt_misc $dir
	[ -e $dir/qemu-aarch64 ] || update-binfmts --enable qemu-aarch64
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
