/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reading and writing the kernel's small files. */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int put(const char *path, const void *text, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len ? len : strlen(text)) < 0)
		err = -errno;
	/* binary attributes take effect on close */
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int putf(const char *path, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return put(path, text, 0);
}

const char *get(const char *path)
{
	static __thread char text[65536];
	size_t have = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	text[0] = 0;
	if (fd < 0)
		return text;
	while (have < sizeof(text) - 1 &&
	       (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += n;
	text[have] = 0;
	close(fd);
	return text;
}

long get_key(const char *path, const char *key)
{
	size_t len = strlen(key);
	const char *at = get(path);

	while (at && *at) {
		if (!strncmp(at, key, len) && strchr(" :", at[len]))
			return strtol(at + len + 1, NULL, 0);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return -1;
}

unsigned int empty(const char *dir)
{
	DIR *open = opendir(dir);
	const struct dirent *entry;
	unsigned int gone = 0;
	char path[512];

	while (open && (entry = readdir(open))) {
		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		gone += !rmdir(path);
	}
	if (open)
		closedir(open);
	return gone;
}
