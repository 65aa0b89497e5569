// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of files: which of them a coloured task has copies of, in its colours.
 *
 * CAMC colours text and data of a program, and a page of the page cache can have
 * no task's colour, so what a task reads of a private mapping is copied. But a
 * task that only reads must see what others write to the file later, and a copy
 * doesn't show that. So a group copies what belongs to programs and libraries,
 * which nobody writes to in place, and what nobody can write to. All else stays
 * in the page cache until the task itself writes to the page, as on Linux. A
 * group may choose otherwise (enum sol_copies).
 *
 * The segments of a program lie side by side, one of them is executed: so a
 * mapping belongs to a program if one of the same file beside it is executed.
 *
 * Locking: none here. The caller is in a fault: it holds the mmap_lock, or RCU
 * keeps what the neighbours are read from. One that goes meanwhile may be
 * misjudged, never misread.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>

#include "../frames/owner.h"
#include "text.h"

#define SEGMENTS	4	/* that a program has at most to either side */

static u8 text_of(u16 id)
{
	struct sol_group *g;
	u8 text;

	preempt_disable();
	g = group_get_fast(id);
	text = g ? READ_ONCE(g->text) : SOL_COPIES_PROGRAMS;
	preempt_enable();
	return text;
}

/* Can nobody write to it? */
static bool is_constant(const struct inode *inode)
{
	return IS_IMMUTABLE(inode) || sb_rdonly(inode->i_sb);
}

static bool is_of(const struct vm_area_struct *vma,
		  const struct address_space *file)
{
	const struct file *f = vma ? READ_ONCE(vma->vm_file) : NULL;

	return f && READ_ONCE(f->f_mapping) == file;
}

static bool text_on_side(const struct vm_area_struct *vma,
			 struct vm_area_struct *(*step)(struct vma_iterator *))
{
	VMA_ITERATOR(at, vma->vm_mm, vma->vm_start);
	const struct vm_area_struct *other;
	int i;

	vma_find(&at, vma->vm_end);	/* there, from where steps go */
	for (i = 0; i < SEGMENTS; i++) {
		other = step(&at);
		if (!is_of(other, vma->vm_file->f_mapping))
			return false;
		if (other->vm_flags & VM_EXEC)
			return true;
	}
	return false;
}

static bool beside_text(const struct vm_area_struct *vma)
{
	bool is;

	rcu_read_lock();
	is = text_on_side(vma, vma_prev) || text_on_side(vma, vma_next);
	rcu_read_unlock();
	return is;
}

bool sol_text_stays(u16 id, struct vm_area_struct *vma)
{
	u8 text;

	if (vma_is_anonymous(vma) || !vma->vm_file)
		return false;
	text = text_of(id);
	if (text == SOL_COPIES_NONE && !(vma->vm_flags & VM_WRITE))
		return true;
	return text != SOL_COPIES_ALL && !(vma->vm_flags & VM_EXEC) &&
	       !is_constant(file_inode(vma->vm_file)) && !beside_text(vma);
}
