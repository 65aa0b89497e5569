/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads of one process have their own colours (TintMalloc III.B). */
#include "../lib/guest.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define N_THREADS 4
#define BYTES (4ul << 20)

static pthread_barrier_t all;

static void *body(void *arg)
{
	long me = (long)arg;
	char group[16], sets[16], name[32];
	struct guest_audit sum;
	void *own;
	int err;

	snprintf(group, sizeof(group), "thread%ld", me);
	snprintf(sets, sizeof(sets), "%ld", me);
	snprintf(name, sizeof(name), "threads-own-colors-%ld", me);
	err = guest_join(group);
	own = guest_map_anon(BYTES);
	pthread_barrier_wait(&all);
	guest_touch(own, BYTES);
	pthread_barrier_wait(&all);
	sum = guest_audit_range(own, BYTES, sets, NULL);
	guest_check(!err && sum.in == (long)(BYTES / GUEST_PAGE) && !sum.out,
		    name, "join %d, %ld in, %ld out (first %#lx)", err, sum.in,
		    sum.out, sum.first_out);
	return NULL;
}

int main(void)
{
	pthread_t thread[N_THREADS];
	char group[16], sets[16];
	struct guest_audit sum;
	void *mine;
	long i;

	pthread_barrier_init(&all, NULL, N_THREADS);
	guest_map(); /* static state of the library: fill before threads */
	for (i = 0; i < N_THREADS; i++) {
		snprintf(group, sizeof(group), "thread%ld", i);
		snprintf(sets, sizeof(sets), "%ld", i);
		guest_group(group, sets);
	}
	for (i = 0; i < N_THREADS; i++)
		if (pthread_create(&thread[i], NULL, body, (void *)i))
			guest_die("pthread_create");
	for (i = 0; i < N_THREADS; i++)
		pthread_join(thread[i], NULL);

	/* The main thread joined none: its pages come from anywhere. */
	mine = guest_map_anon(BYTES);
	guest_touch(mine, BYTES);
	/* Supply may move some out of the groups' colours: they are nowhere meanwhile. */
	for (i = 0; i < 100; i++) {
		sum = guest_audit_range(mine, BYTES, NULL, NULL);
		if (!sum.swapped)
			break;
		usleep(10000);
	}
	guest_check(sum.present == (long)(BYTES / GUEST_PAGE),
		    "threads-main-uncolored", "%ld present, %ld on the move",
		    sum.present, sum.swapped);
	return guest_exit();
}
