// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Frames with a deadline: copies a picture once a frame and waits for the next
 * frame's time. A pass is a frame's work, without the wait; frames that end after
 * their deadline are counted.
 */
#define _GNU_SOURCE
#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
	static const char *const kinds[] = { "60", "30", "25", "120", NULL };
	struct load load = {
		.name = "fps", .bytes = 8 << 20, .stride = LINE,
		.seconds = 5, .threads = 1,
	};
	struct result result = { 0 };
	double frame, due, *took = NULL;
	uint64_t late = 0, room = 0;
	char *from, *to;
	int status;

	load_parse(&load, argc, argv, "frames a second, with deadlines", kinds);
	frame = 1.0 / atoi(load.kind);
	from = load_memory(&load, 2 * load.bytes);
	to = from + load.bytes;
	due = load_now() + frame;
	while (load_again(&load, &result)) {
		double began = load_now(), left;

		memcpy(to, from, load.bytes);
		from[result.passes % load.bytes]++;
		if (result.passes >= room) {
			room = room ? 2 * room : 1024;
			took = realloc(took, room * sizeof(*took));
			if (!took)
				return 1;
		}
		took[result.passes] = load_now() - began;
		left = due - load_now();
		late += left < 0;
		if (left > 0) {
			struct timespec wait = { (time_t)left, (left - (time_t)left) * 1e9 };

			nanosleep(&wait, NULL);
		}
		due += frame;
		result.accesses += load.bytes / LINE;
		result.bytes += 2 * load.bytes;
	}
	memcpy(result.pass_seconds, took, result.passes * sizeof(*took));
	result.seconds = 0;
	for (uint64_t i = 0; i < result.passes; i++)
		result.seconds += took[i];
	result.checksum = late;
	status = load_print(&load, &result);
	fprintf(stderr, "fps: %lu of %lu frames late\n", (unsigned long)late,
		(unsigned long)result.passes);
	return status;
}
