/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Children whose fork does not end (lib/forking.h). Whoever binds cgroups or removes groups
 * meanwhile waits for a moment, and not for each of them.
 */
#define _GNU_SOURCE
#include "../lib/forking.h"

#include <sys/wait.h>

#define CHILDREN 60
#define SOON	30	/* seconds; each of them would take three */

static double started;

/* Nobody waited for each of the children. @err: of what was written since @started. */
static void check_soon(const char *name, int err)
{
	guest_check(!err && now_s() - started < SOON, name, "%d, %f s: %s", err,
		    now_s() - started, guest_status());
	started = now_s();
}

int main(void)
{
	pid_t pid[CHILDREN];
	long long refused;
	int i;

	guest_group("with", "1");
	guest_group("rest", "2-15");
	for (i = 0; i < CHILDREN; i++)
		pid[i] = forking(i % 2 ? "with" : NULL);
	for (i = 0; i < CHILDREN; i++)
		wait_forking(pid[i]);
	started = now_s();
	check_soon("newborn-group-goes", guest_ungroup("with"));
	check_soon("newborn-binds", guest_write("groups/rest/cgroup", "everything-else"));
	refused = guest_stat("groups/rest/stats", "cgroup_refused");
	/* The others count as members of the group that went. */
	guest_check(refused == CHILDREN / 2, "newborn-counted", "%lld of %d", refused,
		    CHILDREN / 2);
	started = now_s();
	check_soon("newborn-unbinds", guest_write("groups/rest/cgroup", "\n"));
	for (i = 0; i < CHILDREN; i++)
		kill(pid[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	guest_check(!guest_ungroup("rest"), "newborn-rest-goes", "%s", guest_status());
	return guest_exit();
}
