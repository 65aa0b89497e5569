/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of the module, in the order in which main.c brings them up. */
#ifndef SOLOIST_PARTS_H
#define SOLOIST_PARTS_H

int sol_hook_init(void);	/* hook/: looking up what is not exported */
void sol_hook_exit(void);
int sol_store_init(void);	/* frames/store.c: the lists of free frames */
void sol_store_exit(void);
int sol_refill_init(void);	/* frames/refill.c: where more come from */
int sol_evacuate_init(void);	/* frames/evacuate.c: how room is made */
int sol_giveback_init(void);	/* frames/giveback.c: how Linux gets them */
void sol_giveback_exit(void);
int sol_unplug_init(void);	/* keep/unplug.c: memory going offline */
void sol_unplug_exit(void);
int sol_group_init(void);	/* group/: colour sets and their tasks */
void sol_group_exit(void);
int sol_fault_init(void);	/* fault/: hooks that hand out and take back */
void sol_fault_exit(void);
int sol_stay_init(void);	/* group/space.c: what an address space knows */
void sol_stay_exit(void);
int sol_move_init(void);	/* keep/move.c: what would move a page */
void sol_move_exit(void);
int sol_cgroup_init(void);	/* rule/cgroup.c: who joins by its cgroup */
void sol_cgroup_exit(void);
int sol_reclaim_init(void);	/* keep/reclaim.c: shrinker, OOM, failures */
void sol_reclaim_exit(void);
int sol_mmap_abi_init(void);	/* control/mmap_abi.c: the papers' mmap() calls */
void sol_mmap_abi_exit(void);
int sol_rule_init(void);	/* rule/rule.c: user id and path to colours */
void sol_rule_exit(void);
int sol_guard_init(void);	/* guard/: bandwidth reservation */
void sol_guard_exit(void);
int sol_control_init(void);	/* control/: configfs */
void sol_control_exit(void);

#endif /* SOLOIST_PARTS_H */
