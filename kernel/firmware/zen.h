/* SPDX-License-Identifier: GPL-2.0 */
/* firmware/locate and firmware/umc, zen.c: what AMD's Zen says of channels. */
#ifndef SOLOIST_ZEN_H
#define SOLOIST_ZEN_H

#include <linux/types.h>

struct sol_question;

extern struct sol_question sol_locate, sol_umc;

ssize_t sol_question_show(struct sol_question *question, char *page);
/* 0, or an error whose reason is told: who may not ask, too. */
int sol_question_store(struct sol_question *question, const char *page,
		       size_t count);

#endif /* SOLOIST_ZEN_H */
