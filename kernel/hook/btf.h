/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private structs and functions of the kernel, by its own type information
 * (CONFIG_DEBUG_INFO_BTF). May sleep.
 */
#ifndef SOLOIST_BTF_H
#define SOLOIST_BTF_H

#include <linux/types.h>

/**
 * sol_btf_member() - offset of a member of a struct
 * @structure: name of the struct
 * @member: name of the member
 *
 * Return: bytes; -ENOENT: no such struct or member; -ENODATA: no type information.
 */
int sol_btf_member(const char *structure, const char *member);

/**
 * sol_btf_takes() - does a function take a pointer to a struct?
 * @function: name of the function
 * @n: which argument, from 0
 * @structure: name of the struct
 *
 * Return: 1: yes; 0: no; -ENOENT: there is no information about the function.
 */
int sol_btf_takes(const char *function, unsigned int n, const char *structure);

#endif /* SOLOIST_BTF_H */
