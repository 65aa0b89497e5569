// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * PID 1 of the guest.
 *
 * It lives in an initramfs beside the few modules that a stock Debian kernel
 * needs to reach the host's files. In order: load those modules, mount the
 * host's root over virtiofs with a tmpfs overlay on top, bind what shall be
 * writable or hidden, load soloist.ko and write its map, run the command, and
 * tell its end. Everything it is told lies under /soloist in the initramfs:
 *
 *   modules/NN-NAME.ko   loaded in the order of their names
 *   binds                NUL-ended pairs: path on the host, path in the guest
 *   layer                directory of the host whose files come before its own, as
 *                        programs of another architecture do; optional
 *   soloist.ko, params   the module under test and its parameters; optional
 *   map                  text for /sys/kernel/config/soloist/map; optional
 *   argv, env, cwd       the command, NUL-ended strings
 *   terminal             the command gets a terminal of its own; optional
 *   input                the command gets the host's standard input; optional
 *
 * The command's output goes to the virtio ports soloist.out and soloist.err,
 * its input comes from soloist.in. With a terminal these carry its keys and
 * what it shows, and soloist.size the size of its window, `ROWS COLUMNS`
 * lines. What became of it goes to soloist.verdict, one line each: `ready`,
 * `step WHAT`, then `exit N`, `signal N` or `failed WHY`. The console belongs
 * to the kernel alone.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIGFS "/sys/kernel/config"

static int verdict_fd = -1;

static void __attribute__((format(printf, 1, 2))) verdict(const char *fmt, ...)
{
	char line[512];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (n > (int)sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (verdict_fd < 0 || write(verdict_fd, line, n) != n)
		fprintf(stderr, "soloist init: %.*s", n, line);
}

static void __attribute__((noreturn)) power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Say why the guest can't go on, and end it. */
static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
	char why[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	verdict("failed %s", why);
	power_off();
}

static void must_mount(const char *what, const char *where, const char *type,
		       unsigned long flags, const char *options)
{
	if (mount(what, where, type, flags, options))
		fail("cannot mount %s on %s: %s", what, where, strerror(errno));
}

/* For file systems that a kernel may lack: tracefs, debugfs. */
static void may_mount(const char *type, const char *where)
{
	(void)!mount(type, where, type, 0, NULL);
}

/* mkdir -p; what exists stays. */
static void make_dirs(const char *path)
{
	char part[4400];

	snprintf(part, sizeof(part), "%s", path);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(part, 0755);
		*p = '/';
	}
	mkdir(part, 0755);
}

/* A whole file and a NUL behind it; NULL if there is none. */
static char *slurp(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t done = 0;
	ssize_t n = 0;
	char *text;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !(text = malloc(st.st_size + 1)))
		fail("cannot read %s: %s", path, strerror(errno));
	while (done < (size_t)st.st_size &&
	       (n = read(fd, text + done, st.st_size - done)) > 0)
		done += n;
	if (n < 0)
		fail("cannot read %s: %s", path, strerror(errno));
	close(fd);
	text[done] = 0;
	if (size)
		*size = done;
	return text;
}

/* The NUL-ended strings of a file, NULL behind the last. */
static char **strings(const char *path)
{
	static char *none[] = { NULL };
	char **list, *text;
	size_t size, n = 0;

	text = slurp(path, &size);
	if (!text)
		return none;
	for (char *p = text; p < text + size; p += strlen(p) + 1)
		n++;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		fail("out of memory");
	n = 0;
	for (char *p = text; p < text + size; p += strlen(p) + 1)
		list[n++] = p;
	return list;
}

static void load_module(const char *path, const char *params)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	if (syscall(SYS_finit_module, fd, params, 0) && errno != EEXIST)
		fail("the kernel refused %s: %s (its log says why)",
		     strrchr(path, '/') + 1, strerror(errno));
	close(fd);
}

static void load_modules(void)
{
	struct dirent **entry;
	char path[512];
	int n = scandir("/soloist/modules", &entry, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (entry[i]->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/soloist/modules/%s",
			 entry[i]->d_name);
		load_module(path, "");
	}
}

/*
 * The host's files come by interrupts, and a kernel with real-time locks handles these in
 * threads. On a CPU that a guard stops, each would wait for the next period, and every
 * program of the guest with it: CPU 0 gets them all.
 */
static void interrupts_to_first_cpu(void)
{
	int fd = open("/proc/irq/default_smp_affinity", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1", 1);
	close(fd);
}

/* Open the virtio port called @name; -1 while there is none. */
static int open_port(const char *name)
{
	char path[300], text[64];
	struct dirent *entry;
	int fd = -1, name_fd;
	ssize_t n;
	DIR *dir = opendir("/sys/class/virtio-ports");

	while (dir && fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
			 entry->d_name);
		name_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (name_fd < 0)
			continue;
		n = read(name_fd, text, sizeof(text) - 1);
		close(name_fd);
		if (n <= 0)
			continue;
		text[n] = 0;
		text[strcspn(text, "\n")] = 0;
		if (strcmp(text, name))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (dir)
		closedir(dir);
	return fd;
}

/* Ports are announced some time after the driver has come up. */
static int wait_for_port(const char *name)
{
	int fd = -1;

	for (int i = 0; i < 2000 && fd < 0; i++) {
		fd = open_port(name);
		if (fd < 0)
			usleep(5000);
	}
	return fd;
}

static void mount_kernel_views(const char *root)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/proc", root);
	must_mount("proc", path, "proc", 0, NULL);
	snprintf(path, sizeof(path), "%s/sys", root);
	must_mount("sysfs", path, "sysfs", 0, NULL);
	snprintf(path, sizeof(path), "%s/dev", root);
	must_mount("devtmpfs", path, "devtmpfs", 0, NULL);
}

/*
 * Directories of one file system can't be layers of an overlay where one lies in the
 * other: the host's root becomes an overlay of its own below the programs.
 */
static void mount_host(void)
{
	const char *layer = slurp("/soloist/layer", NULL);
	char options[4400] = "lowerdir=/host,upperdir=/over/upper,workdir=/over/work";

	must_mount("host", "/host", "virtiofs", 0, NULL);
	must_mount("tmpfs", "/over", "tmpfs", 0, NULL);
	mkdir("/over/upper", 0755);
	mkdir("/over/work", 0755);
	if (layer) {
		mkdir("/over/none", 0755);
		mkdir("/over/host", 0755);
		must_mount("overlay", "/over/host", "overlay", MS_RDONLY,
			   "lowerdir=/over/none:/host");
		snprintf(options, sizeof(options),
			 "lowerdir=/host%s:/over/host,upperdir=/over/upper,workdir=/over/work",
			 layer);
	}
	must_mount("overlay", "/root", "overlay", 0, options);
}

/* Binds go from the share itself, which is writable, past the overlay. */
static void mount_binds(void)
{
	char from[4200], to[4200];

	for (char **bind = strings("/soloist/binds"); bind[0] && bind[1];
	     bind += 2) {
		snprintf(from, sizeof(from), "/host%s", bind[0]);
		snprintf(to, sizeof(to), "/root%s", bind[1]);
		make_dirs(to);
		must_mount(from, to, NULL, MS_BIND, NULL);
	}
}

static void mount_rest(void)
{
	mount_kernel_views("/root");
	must_mount("tmpfs", "/root/run", "tmpfs", 0, "mode=755");
	mkdir("/root/dev/shm", 01777);
	must_mount("tmpfs", "/root/dev/shm", "tmpfs", 0, "mode=1777");
	mkdir("/root/dev/pts", 0755);
	must_mount("devpts", "/root/dev/pts", "devpts", 0,
		   "mode=620,ptmxmode=666");
	(void)!symlink("/proc/self/fd", "/root/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/root/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/root/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/root/dev/stderr");
	may_mount("configfs", "/root" CONFIGFS);
	may_mount("debugfs", "/root/sys/kernel/debug");
	may_mount("tracefs", "/root/sys/kernel/tracing");
	may_mount("cgroup2", "/root/sys/fs/cgroup");
}

static void write_map(void)
{
	const char *path = "/root" CONFIGFS "/soloist/map";
	size_t size;
	char *map = slurp("/soloist/map", &size), *why;
	int fd;

	if (!map)
		return;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fail("cannot open %s: %s", path + 5, strerror(errno));
	if (write(fd, map, size) != (ssize_t)size) {
		why = slurp("/root" CONFIGFS "/soloist/last_cmd_status", NULL);
		fail("the module refused the map: %s",
		     why ? strtok(why, "\n") : strerror(errno));
	}
	if (close(fd)) {
		why = slurp("/root" CONFIGFS "/soloist/last_cmd_status", NULL);
		fail("the module refused the map: %s",
		     why ? strtok(why, "\n") : strerror(errno));
	}
}

static void load_soloist(void)
{
	char *params;

	if (access("/soloist/soloist.ko", F_OK))
		return;
	params = slurp("/soloist/params", NULL);
	load_module("/soloist/soloist.ko", params ? params : "");
	write_map();
}

static void switch_root(void)
{
	if (chdir("/root") || mount(".", "/", NULL, MS_MOVE, NULL) ||
	    chroot(".") || chdir("/"))
		fail("cannot switch to the host's root: %s", strerror(errno));
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		(void)!ioctl(fd, SIOCSIFFLAGS, &request);
	close(fd);
}

static void __attribute__((noreturn))
become(char **argv, char **env, const char *cwd, int in, int out, int err)
{
	setsid();
	if (in < 0)
		in = open("/dev/null", O_RDONLY);
	dup2(in, 0);
	dup2(out, 1);
	dup2(err, 2);
	/* A new session takes the terminal that it has for its own. */
	if (isatty(0))
		ioctl(0, TIOCSCTTY, 0);
	signal(SIGPIPE, SIG_DFL);
	if (chdir(cwd))
		dprintf(2, "soloist vm: cannot enter %s: %s\n", cwd,
			strerror(errno));
	environ = env;
	execvp(argv[0], argv);
	dprintf(2, "soloist vm: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* ---- A terminal for the command ---- */

static int open_terminal(char *name, size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || grantpt(master) || unlockpt(master) ||
	    ptsname_r(master, name, size))
		fail("cannot make a terminal: %s", strerror(errno));
	return master;
}

static void write_all(int fd, const char *text, ssize_t size)
{
	ssize_t n;

	while (size > 0 && (n = write(fd, text, size)) > 0) {
		text += n;
		size -= n;
	}
}

/* Pass on what there is; false if nothing more will come. */
static bool pass(int from, int to)
{
	char text[4096];
	ssize_t n = read(from, text, sizeof(text));

	if (n > 0)
		write_all(to, text, n);
	return n > 0;
}

/* Take the last whole line that the host has written. */
static bool resize(int port, int master)
{
	struct winsize size = { 0 };
	char text[256], *line;
	ssize_t n = read(port, text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = 0;
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (sscanf(line, "%hu %hu", &size.ws_row, &size.ws_col) == 2)
			ioctl(master, TIOCSWINSZ, &size);
	return true;
}

/* Reap what has ended; whether @child has, then with its wait status. */
static bool reaped(pid_t child, int *status)
{
	int one;
	pid_t pid;

	while ((pid = waitpid(-1, &one, WNOHANG)) > 0)
		if (pid == child) {
			*status = one;
			return true;
		}
	return false;
}

/*
 * Carry keys and text between the host and the terminal until @child is gone;
 * its wait status. A port or a terminal that has been closed is let be.
 */
static int relay_until(pid_t child, int master, int in, int out, int size)
{
	struct pollfd ends[] = {
		{ .fd = master, .events = POLLIN },
		{ .fd = in, .events = POLLIN },
		{ .fd = size, .events = POLLIN },
	};
	int status = 0x7f00;

	while (!reaped(child, &status)) {
		if (poll(ends, 3, 50) <= 0)
			continue;
		if (ends[0].revents)
			pass(master, out);
		if (ends[1].revents && !pass(in, master))
			ends[1].fd = -1;
		if (ends[2].revents && !resize(size, master))
			ends[2].fd = -1;
	}
	/* What it printed last. */
	fcntl(master, F_SETFL, O_NONBLOCK);
	while (pass(master, out))
		;
	return status;
}

/* Reap everything until @child is gone; its wait status. */
static int reap_until(pid_t child)
{
	int status;
	pid_t pid;

	do {
		pid = wait(&status);
	} while (pid != child && (pid > 0 || errno == EINTR));
	return pid == child ? status : 0x7f00;
}

int main(void)
{
	int in = -1, out, err, status, size = -1, master = -1, slave = -1;
	char **argv, **env, *cwd, name[64];
	bool terminal, input;
	pid_t child;

	mount_kernel_views("");
	interrupts_to_first_cpu();
	load_modules();
	verdict_fd = wait_for_port("soloist.verdict");
	out = wait_for_port("soloist.out");
	err = wait_for_port("soloist.err");
	terminal = !access("/soloist/terminal", F_OK);
	input = terminal || !access("/soloist/input", F_OK);
	if (input)
		in = wait_for_port("soloist.in");
	if (terminal)
		size = wait_for_port("soloist.size");
	if (verdict_fd < 0 || out < 0 || err < 0 || (input && in < 0) ||
	    (terminal && size < 0))
		fail("the host's serial ports did not appear");
	mount_host();
	mount_binds();
	mount_rest();
	load_soloist();
	argv = strings("/soloist/argv");
	env = strings("/soloist/env");
	cwd = slurp("/soloist/cwd", NULL);
	switch_root();
	loopback_up();
	sethostname("soloist", 7);
	if (terminal) {
		master = open_terminal(name, sizeof(name));
		/* Ours stays open: without any the master reads EIO. */
		slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	}
	verdict("ready");
	/* The host tells the window's size first. */
	if (terminal)
		resize(size, master);
	child = fork();
	if (child < 0)
		fail("cannot fork: %s", strerror(errno));
	if (!child)
		become(argv, env, cwd ? cwd : "/", terminal ? slave : in,
		       terminal ? slave : out, terminal ? slave : err);
	if (terminal)
		status = relay_until(child, master, in, out, size);
	else
		status = reap_until(child);
	kill(-1, SIGKILL);
	while (wait(NULL) > 0)
		;
	/* Closing waits for what is still on its way to the host. */
	close(out);
	close(err);
	if (WIFSIGNALED(status))
		verdict("signal %d", WTERMSIG(status));
	else
		verdict("exit %d", WEXITSTATUS(status));
	power_off();
}
