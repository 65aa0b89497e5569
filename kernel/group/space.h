/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pages stay in their colour: what an address space must know so that Linux
 * neither moves nor merges nor replaces its pages. docs/design/moves.md says which
 * mechanism is met where.
 */
#ifndef SOLOIST_SPACE_H
#define SOLOIST_SPACE_H

struct task_struct;

/*
 * Bring the address space of @task in line with the groups of its threads.
 * To be called after @task joined or left a group, and for every task of a
 * group whose huge_ok changed. Takes mmap_lock: not under sol_group_mutex, which
 * the fault path takes below mmap_lock.
 */
void sol_stay_task(struct task_struct *task);

int sol_stay_init(void);
void sol_stay_exit(void);

#endif /* SOLOIST_SPACE_H */
