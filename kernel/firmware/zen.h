/* SPDX-License-Identifier: GPL-2.0 */
/* Answers of the channels of AMD's Zen about addresses: locate and umc; zen.c. */
#ifndef SOLOIST_ZEN_H
#define SOLOIST_ZEN_H

#include <linux/types.h>

struct sol_question;

extern struct sol_question sol_locate, sol_umc;

/* Write the last answers to @page of PAGE_SIZE bytes. Return: bytes written. */
ssize_t sol_question_show(struct sol_question *question, char *page);
/**
 * sol_question_store() - ask for up to 16 places
 * @question: sol_locate or sol_umc
 * @page: the places, with white space between
 * @count: bytes of @page
 *
 * May sleep. Return: 0; -EPERM, -EINVAL, -E2BIG, -ENODEV, -ENOMEM, and words.
 */
int sol_question_store(struct sol_question *question, const char *page,
		       size_t count);

#endif /* SOLOIST_ZEN_H */
