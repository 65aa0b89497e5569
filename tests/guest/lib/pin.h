/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that nobody can move. */
#ifndef SOLOIST_TEST_PIN_H
#define SOLOIST_TEST_PIN_H

#include "guest.h"
#include "kernel.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * @bytes of memory in all colours, MAP_PRIVATE or MAP_SHARED: a device of a child's has it.
 * Return: the child, or 0: the kernel has no io_uring.
 */
static pid_t pin(size_t bytes, int sharing)
{
	struct iovec buffer = { NULL, bytes };
	char params[120] = "";
	int ready[2], ring;
	pid_t pid;
	char c;

	if (pipe(ready))
		guest_die("pipe");
	pid = fork();
	if (!pid) {
		buffer.iov_base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				       sharing | MAP_ANONYMOUS, -1, 0);
		if (buffer.iov_base == MAP_FAILED)
			_exit(1);
		madvise(buffer.iov_base, bytes, MADV_NOHUGEPAGE);
		guest_touch(buffer.iov_base, bytes);
		ring = syscall(SYS_io_uring_setup, 1, params);
		if (ring < 0 || syscall(SYS_io_uring_register, ring, 0, &buffer, 1) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

/* End a child of pin(). The ring's memory comes free some time after the process. */
static void unpin(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (kernel_number("/proc/vmstat", "nr_foll_pin_acquired") !=
	       kernel_number("/proc/vmstat", "nr_foll_pin_released"))
		usleep(10000);
}

#endif /* SOLOIST_TEST_PIN_H */
