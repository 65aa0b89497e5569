/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address spaces: flags that keep Linux from moving, merging or replacing pages in
 * colour. docs/design/moves.md says how each mechanism is met.
 */
#ifndef SOLOIST_SPACE_H
#define SOLOIST_SPACE_H

struct task_struct;

/**
 * sol_stay_task() - bring an address space in line with the groups of its threads
 * @task: one of its threads, which joined or left a group, or whose group's huge_ok
 *	changed, or who has colours now or has none any more
 *
 * Takes mmap_lock, so not under sol_group_mutex, which the fault path takes below
 * mmap_lock. May sleep.
 */
void sol_stay_task(struct task_struct *task);

int sol_stay_init(void);
void sol_stay_exit(void);

#endif /* SOLOIST_SPACE_H */
