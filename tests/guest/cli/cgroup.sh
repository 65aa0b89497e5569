#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A group bound to a cgroup by the command line: what is started there is in
# colour from its first page, and the binding survives save and apply.
set -u
. "$(dirname "$0")/../lib/cli.sh"

tree=/sys/fs/cgroup
mkdir -p $tree/video.slice
soloist group create video --colors 2 --cgroup /video.slice >/dev/null
same bound "$(cat $root/groups/video/cgroup)" /video.slice
sh -c "echo 0 >$tree/video.slice/cgroup.procs; exec soloist verify --self --strict" >out 2>&1
same in-colour $? 0
soloist save "$PWD/saved.toml" >/dev/null
grep -q 'cgroup = "/video.slice"' saved.toml && ok saved || fail saved "$(cat saved.toml)"
soloist group rm video
expect apply 0 soloist apply "$PWD/saved.toml"
same bound-again "$(cat $root/groups/video/cgroup)" /video.slice
soloist group set video --cgroup '' >/dev/null
same unbound "$(cat $root/groups/video/cgroup)" ""
soloist group rm video
rmdir $tree/video.slice
