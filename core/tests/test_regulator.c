// SPDX-License-Identifier: GPL-2.0 OR MIT
/* MemGuard's figures event by event, and what must hold whatever happens. */
#include "check.h"
#include "lab/rate.h"

#define CORES	8
#define PERIOD	10	/* us */
#define LINE	64

static struct sol_core core[CORES];
static struct sol_regulator reg;
static struct sol_err err;
static const u32 none[SOL_TRAFFICS];

static u64 rate(u64 lines)
{
	return lines * LINE * 1000000 / PERIOD;
}

static void init(u32 n, u32 r_min, u32 q_min, u32 sharing)
{
	struct sol_regulation set = {
		.period = PERIOD, .line = LINE, .r_min = { rate(r_min) },
		.peak = rate(1000), .q_min = q_min, .ewma = 180,
		.sharing = sharing,
	};

	if (sol_regulator_init(&reg, &set, core, n, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void reserve(u32 i, u32 lines, bool reclaim)
{
	struct sol_reservation want = {
		.rate = { rate(lines) }, .reclaim = reclaim,
	};

	if (sol_regulator_reserve(&reg, i, &want, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

static struct sol_answer used(u32 i, u32 lines)
{
	u32 both[SOL_TRAFFICS] = { lines };

	return sol_regulator_used(&reg, i, both);
}

static struct sol_answer core_begins(u32 i, u32 lines)
{
	u32 both[SOL_TRAFFICS] = { lines };

	return sol_regulator_core(&reg, i, both);
}

#define ANSWER(call, what, lines)					\
	do {								\
		struct sol_answer answer_ = call;			\
									\
		CHECK_EQ(answer_.order, what);				\
		CHECK_EQ(answer_.limit[SOL_READS], lines);		\
	} while (0)

#define G	reg.global[0][SOL_READS]

/* Section 4.4 and figure 6. */
TEST(the_papers_example)
{
	init(2, 6, 1, SOL_SHARE_NONE);
	reserve(0, 3, true);
	reserve(1, 3, true);
	/* 0: each core starts with the assigned budget 3. */
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 0), SOL_RUN, 3);
	ANSWER(core_begins(1, 0), SOL_RUN, 3);
	CHECK_EQ(G, 0);
	/* 10: both have used 1, so the prediction is 1 and G becomes 4. */
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 1), SOL_RUN, 1);
	ANSWER(core_begins(1, 1), SOL_RUN, 1);
	CHECK_EQ(G, 4);
	/* 12: core 1 has used its budget and reclaims 2. */
	ANSWER(used(1, 1), SOL_RUN, 3);
	CHECK_EQ(G, 2);
	/* 15: again; it has used Q_1, so it reclaims only Q_min = 1. */
	ANSWER(used(1, 3), SOL_RUN, 4);
	CHECK_EQ(G, 1);
	/* 16: core 0 has used its budget; only 1 remains to reclaim. */
	ANSWER(used(0, 1), SOL_RUN, 2);
	CHECK_EQ(G, 0);
	/* 17: core 1 again, and is suspended. */
	CHECK_EQ(used(1, 4).order, SOL_STOP);
	CHECK(sol_regulator_stopped(&reg, 1));
	CHECK(!sol_regulator_stopped(&reg, 0));
	/*
	 * 20: core 1's prediction is larger than 3 (4 after 1), it gets its
	 * full budget; core 0 gets 1 and donates 2.
	 */
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 1), SOL_RUN, 1);
	ANSWER(core_begins(1, 4), SOL_RUN, 3);
	CHECK(core[1].meter[SOL_READS].predicted > 3 * SOL_EWMA_ONE);
	CHECK_EQ(G, 2);
	/* 25: core 1 has used its budget and reclaims Q_min. */
	ANSWER(used(1, 3), SOL_RUN, 4);
	CHECK_EQ(G, 1);
	CHECK_EQ(core[0].stats.underruns, 0);
	CHECK_EQ(core[1].stats.underruns, 0);
	CHECK_EQ(core[1].stats.reclaimed[SOL_READS], 4);
	CHECK_EQ(core[0].stats.donated[SOL_READS], 4);
	CHECK_EQ(core[1].stats.stops, 1);
}

/* The weight must be above 2/3 for that: at 2/3 the prediction is 3. */
TEST(the_example_needs_a_weight_above_two_thirds)
{
	u32 ewma;

	for (ewma = 1; ewma <= 256; ewma++) {
		init(1, 6, 1, SOL_SHARE_NONE);
		reg.set.ewma = ewma;
		reserve(0, 3, true);
		sol_regulator_begin(&reg);
		core_begins(0, 0);
		sol_regulator_begin(&reg);
		core_begins(0, 1);
		sol_regulator_begin(&reg);
		core_begins(0, 4);
		CHECK_EQ(core[0].meter[SOL_READS].predicted >
			 3 * SOL_EWMA_ONE, ewma > 256 * 2 / 3);
	}
}

/* Figure 7(a): core 0 is used up at 5, core 1 at 7; then both compete. */
TEST(spare_sharing)
{
	struct sol_answer a;

	init(2, 6, 1, SOL_SHARE_SPARE);
	reserve(0, 3, true);
	reserve(1, 3, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 0);
	CHECK_EQ(used(0, 3).order, SOL_STOP);
	CHECK_EQ(used(1, 2).order, SOL_RUN);
	CHECK(sol_regulator_stopped(&reg, 0));
	a = used(1, 3);
	CHECK_EQ(a.order, SOL_FREE);
	CHECK_EQ(a.domain, 0);
	CHECK_EQ(a.limit[SOL_READS], SOL_NO_LIMIT);
	CHECK(!sol_regulator_stopped(&reg, 0));
	CHECK(!sol_regulator_stopped(&reg, 1));
	ANSWER(used(0, 90), SOL_RUN, SOL_NO_LIMIT);
	/* Until the next period begins at 10. */
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 90), SOL_RUN, 3);
	ANSWER(core_begins(1, 40), SOL_RUN, 3);
	CHECK_EQ(core[0].stats.beyond[SOL_READS], 87);
	CHECK_EQ(used(0, 3).order, SOL_STOP);
}

/* Figure 7(b): at 7 a new period begins at once, with full budgets. */
TEST(proportional_sharing)
{
	init(2, 6, 1, SOL_SHARE_PROPORTIONAL);
	reserve(0, 2, true);
	reserve(1, 4, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 0);
	CHECK_EQ(used(0, 2).order, SOL_STOP);
	CHECK_EQ(used(1, 4).order, SOL_RESTART);
	sol_regulator_restart(&reg, 0);
	ANSWER(core_begins(0, 2), SOL_RUN, 2);
	ANSWER(core_begins(1, 4), SOL_RUN, 4);
	CHECK(!sol_regulator_stopped(&reg, 0));
	/* As long as one has budget left, the other waits for the period. */
	CHECK_EQ(used(0, 2).order, SOL_STOP);
	CHECK_EQ(used(1, 3).order, SOL_RUN);
	CHECK(sol_regulator_stopped(&reg, 0));
	CHECK_EQ(core[0].stats.periods, 2);
}

TEST(without_sharing_all_wait)
{
	init(2, 6, 1, SOL_SHARE_NONE);
	reserve(0, 3, true);
	reserve(1, 3, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 0);
	CHECK_EQ(used(0, 3).order, SOL_STOP);
	CHECK_EQ(used(1, 3).order, SOL_STOP);
	/* Asked again, it says so again. */
	CHECK_EQ(used(1, 3).order, SOL_STOP);
	CHECK_EQ(core[1].stats.stops, 1);
}

/* Lines 29-30, and what the predictor is told afterwards. */
TEST(reclaim_under_run)
{
	init(2, 20, 1, SOL_SHARE_NONE);
	reg.set.ewma = SOL_EWMA_ONE;
	reserve(0, 10, true);
	reserve(1, 10, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 0);
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 2), SOL_RUN, 2);
	ANSWER(core_begins(1, 10), SOL_RUN, 10);
	CHECK_EQ(G, 8);
	/* Core 1 takes all that core 0 gave. */
	while (used(1, core[1].meter[SOL_READS].limit).order == SOL_RUN)
		;
	CHECK_EQ(core[1].meter[SOL_READS].budget, 18);
	CHECK_EQ(G, 0);
	/* Core 0 wants its own: it runs on, up to Q_0 and no further. */
	ANSWER(used(0, 2), SOL_RUN, 10);
	ANSWER(used(0, 7), SOL_RUN, 10);
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 7), SOL_RUN, 10);
	core_begins(1, 18);
	CHECK_EQ(core[0].stats.underruns, 1);
	/* Told 10 + (10 - 7). */
	CHECK_EQ(core[0].meter[SOL_READS].predicted, 13 * SOL_EWMA_ONE);
	CHECK_EQ(core[1].stats.underruns, 0);
	/* Coming to Q_0 in spite of an empty G is no error. */
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 2), SOL_RUN, 2);
	core_begins(1, 10);
	while (used(1, core[1].meter[SOL_READS].limit).order == SOL_RUN)
		;
	ANSWER(used(0, 2), SOL_RUN, 10);
	CHECK_EQ(used(0, 10).order, SOL_STOP);
	sol_regulator_begin(&reg);
	core_begins(0, 10);
	CHECK_EQ(core[0].stats.underruns, 1);
}

/* Reclaiming off: it neither gives nor takes. */
TEST(hard_real_time_cores_keep_their_budget)
{
	u32 n;

	init(2, 20, 1, SOL_SHARE_SPARE);
	reserve(0, 10, false);
	reserve(1, 10, true);
	for (n = 0; n < 5; n++) {
		sol_regulator_begin(&reg);
		ANSWER(core_begins(0, 0), SOL_RUN, 10);
		core_begins(1, 2);
		CHECK_EQ(G, n ? 8 : 0);
		/* With G full it is stopped at Q_0 all the same. */
		CHECK_EQ(used(0, 9).order, SOL_RUN);
		CHECK_EQ(used(0, 10).order, SOL_STOP);
	}
	/* Idle with its budget whole, it holds best effort back. */
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 10);
	while (used(1, core[1].meter[SOL_READS].limit).order == SOL_RUN)
		;
	CHECK(sol_regulator_stopped(&reg, 1));
}

/* A core that gives all it has does not. */
TEST(idle_cores_do_not_hold_best_effort_back)
{
	u32 n, order;

	init(3, 30, 5, SOL_SHARE_SPARE);
	for (n = 0; n < 3; n++)
		reserve(n, 10, true);
	for (n = 0; n < 20; n++) {
		sol_regulator_begin(&reg);
		core_begins(0, 0);
		core_begins(1, 30);
		core_begins(2, 30);
	}
	ANSWER(core_begins(0, 0), SOL_RUN, 0);
	CHECK_EQ(G, 10);
	while ((order = used(1, core[1].meter[SOL_READS].limit).order) ==
	       SOL_RUN)
		;
	CHECK_EQ(order, SOL_STOP);
	CHECK_EQ(used(2, 10).order, SOL_FREE);
	/* It wakes up in a later period, and gets its own: 1 used, 10 at most. */
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 30);
	core_begins(2, 30);
	ANSWER(used(0, 1), SOL_RUN, 10);
	CHECK_EQ(G, 0);
	CHECK_EQ(used(1, 10).order, SOL_STOP);
	CHECK_EQ(used(2, 10).order, SOL_STOP);
	CHECK_EQ(used(0, 10).order, SOL_FREE);
}

TEST(unregulated_cores_are_left_alone)
{
	init(2, 10, 1, SOL_SHARE_SPARE);
	ANSWER(used(0, 1000), SOL_RUN, SOL_NO_LIMIT);
	reserve(1, 10, true);
	/* Not before a period begins. */
	ANSWER(used(1, 1000), SOL_RUN, SOL_NO_LIMIT);
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 0), SOL_RUN, SOL_NO_LIMIT);
	ANSWER(core_begins(1, 1000), SOL_RUN, 10);
	ANSWER(used(0, 1000), SOL_RUN, SOL_NO_LIMIT);
	/* Alone with its reservation: best effort at once. */
	CHECK_EQ(used(1, 10).order, SOL_FREE);
	/* A limit that is taken away lets the core go. */
	reg.set.sharing = SOL_SHARE_NONE;
	sol_regulator_begin(&reg);
	core_begins(1, 10);
	CHECK_EQ(used(1, 10).order, SOL_STOP);
	CHECK_EQ(sol_regulator_reserve(&reg, 1, NULL, &err), 0);
	CHECK(!sol_regulator_stopped(&reg, 1));
	CHECK_EQ(used(1, 11).order, SOL_RUN);
}

TEST(late_samples_are_paid_for)
{
	init(2, 20, 2, SOL_SHARE_NONE);
	reg.set.ewma = SOL_EWMA_ONE;
	reserve(0, 10, true);
	reserve(1, 10, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	core_begins(1, 0);
	sol_regulator_begin(&reg);
	core_begins(0, 4);
	core_begins(1, 10);
	CHECK_EQ(G, 6);
	/* 3 above its budget of 10: these are taken too, then Q_min. */
	ANSWER(used(1, 13), SOL_RUN, 15);
	CHECK_EQ(G, 1);
	/* 2 above, with 1 left: a debt remains. */
	CHECK_EQ(used(1, 17).order, SOL_STOP);
	CHECK_EQ(G, 0);
	CHECK_EQ(core[1].meter[SOL_READS].budget, 16);
	/* Below Q_0 with a debt: it runs on. */
	ANSWER(used(0, 6), SOL_RUN, 10);
	CHECK(core[0].ran_on[SOL_READS]);
}

/* A period that the core did not begin: it had the budget of the one before. */
TEST(what_was_used_before_a_missed_period_counts)
{
	init(1, 10, 1, SOL_SHARE_NONE);
	reserve(0, 10, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	sol_regulator_begin(&reg);
	sol_regulator_begin(&reg);
	/* Of two periods: that predicts nothing for one. */
	ANSWER(core_begins(0, 3), SOL_RUN, 10);
	CHECK_EQ(core[0].stats.used[SOL_READS], 3);
	sol_regulator_begin(&reg);
	sol_regulator_begin(&reg);
	sol_regulator_begin(&reg);
	core_begins(0, 14);
	CHECK_EQ(core[0].stats.used[SOL_READS], 17);
	CHECK_EQ(core[0].stats.beyond[SOL_READS], 4);
	/* The next one is whole, and predicts. */
	sol_regulator_begin(&reg);
	ANSWER(core_begins(0, 4), SOL_RUN, 4);
	CHECK_EQ(core[0].stats.used[SOL_READS], 21);
	/* A core that went and came back counts from then on. */
	sol_regulator_begin(&reg);
	sol_regulator_online(&reg, 0, false);
	sol_regulator_begin(&reg);
	sol_regulator_online(&reg, 0, true);
	sol_regulator_begin(&reg);
	core_begins(0, 5);
	CHECK_EQ(core[0].stats.used[SOL_READS], 21);
}

static void weigh(u32 i, u32 weight)
{
	struct sol_reservation want = { .weight = weight, .reclaim = true };

	CHECK_EQ(sol_regulator_reserve(&reg, i, &want, &err), 0);
}

static void begin_all(u32 lines)
{
	u32 i;

	sol_regulator_begin(&reg);
	for (i = 0; i < reg.n_cores; i++)
		core_begins(i, lines);
}

/* Weights 1:2:4:8 of what is left, among active cores. */
TEST(weights_share_what_is_left)
{
	u32 i;

	init(5, 174, 1, SOL_SHARE_NONE);
	for (i = 0; i < 4; i++)
		weigh(i, 1 << i);
	reserve(4, 20, true);
	begin_all(0);
	/* 174 - 20 - 4 single lines = 150. */
	for (i = 0; i < 4; i++)
		CHECK_EQ(core[i].meter[SOL_READS].reserved, 1 + (10 << i));
	CHECK_EQ(core[4].meter[SOL_READS].reserved, 20);
	/* The heaviest has nothing to run. */
	sol_regulator_active(&reg, 3, false);
	begin_all(1000);
	CHECK_EQ(core[0].meter[SOL_READS].reserved, 1 + 150 / 7);
	CHECK_EQ(core[2].meter[SOL_READS].reserved, 1 + 600 / 7);
	CHECK_EQ(core[3].meter[SOL_READS].reserved, 1);
	/* Per-task mode: a task of another priority, from the next period. */
	sol_regulator_weight(&reg, 0, 4);
	CHECK_EQ(core[0].meter[SOL_READS].reserved, 1 + 150 / 7);
	begin_all(1000);
	CHECK_EQ(core[0].meter[SOL_READS].reserved, 1 + 600 / 10);
	CHECK_EQ(core[0].want.weight, 1);
	/* Absolute reservations have no weight to change. */
	sol_regulator_weight(&reg, 4, 9);
	begin_all(1000);
	CHECK_EQ(core[4].meter[SOL_READS].reserved, 20);
}

static u32 all_reserved(void)
{
	u32 sum = 0, i;

	for (i = 0; i < reg.n_cores; i++)
		sum += core[i].meter[SOL_READS].reserved;
	return sum;
}

/* Its weight is not in the sum of a period that began while it was idle. */
TEST(a_core_that_wakes_as_the_period_begins_waits_for_the_next)
{
	u32 heavy;

	for (heavy = 9; heavy <= SOL_MAX_WEIGHT; heavy *= 10) {
		init(3, 1000, 1, SOL_SHARE_NONE);
		weigh(0, 1);
		weigh(1, heavy);
		reserve(2, 300, false);
		sol_regulator_active(&reg, 1, false);
		begin_all(1000);
		sol_regulator_begin(&reg);
		sol_regulator_active(&reg, 1, true);
		core_begins(0, 1000);
		core_begins(1, 1000);
		core_begins(2, 1000);
		CHECK_EQ(core[1].meter[SOL_READS].reserved, 1);
		CHECK(all_reserved() <= reg.r_min[SOL_READS]);
		begin_all(1000);
		CHECK(core[1].meter[SOL_READS].reserved > 600);
		CHECK(all_reserved() <= reg.r_min[SOL_READS]);
		/* One that falls idle then keeps its share until the next. */
		sol_regulator_begin(&reg);
		sol_regulator_active(&reg, 1, false);
		core_begins(0, 1000);
		core_begins(1, 1000);
		CHECK(core[1].meter[SOL_READS].reserved > 600);
	}
}

TEST(writes_have_a_budget_of_their_own)
{
	struct sol_regulation set = {
		.period = PERIOD, .line = LINE,
		.r_min = { rate(100), rate(40) }, .peak = rate(1000),
		.ewma = 200,
	};
	struct sol_reservation want = {
		.rate = { rate(50), rate(10) }, .reclaim = false,
	};
	u32 both[SOL_TRAFFICS] = { 5, 9 };
	struct sol_answer a;

	CHECK_EQ(sol_regulator_init(&reg, &set, core, 2, &err), 0);
	CHECK_EQ(reg.q_min, 10);
	CHECK_EQ(sol_regulator_reserve(&reg, 0, &want, &err), 0);
	sol_regulator_begin(&reg);
	a = sol_regulator_core(&reg, 0, none);
	CHECK_EQ(a.limit[SOL_READS], 50);
	CHECK_EQ(a.limit[SOL_WRITES], 10);
	CHECK_EQ(sol_regulator_used(&reg, 0, both).order, SOL_RUN);
	both[SOL_WRITES] = 10;
	CHECK_EQ(sol_regulator_used(&reg, 0, both).order, SOL_STOP);
	/* 31 lines of writes more than the 30 that are left. */
	want.rate[SOL_WRITES] = rate(31);
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), -ENOSPC);
	CHECK(strstr(err.text, "of writes"));
	want.rate[SOL_WRITES] = 0;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), -EINVAL);
}

/* ---- Pools ---- */

static void set_pools(u64 a, u64 b, u64 c)
{
	u64 pools[3] = { a, b, c };

	if (sol_regulator_pools(&reg, pools, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* Cores 0 and 1 share banks, core 2 has its own: three times r_min fits. */
TEST(cores_without_a_common_bank_do_not_wait_for_each_other)
{
	init(3, 10, 1, SOL_SHARE_SPARE);
	set_pools(1, 3, 4);
	reserve(0, 6, true);
	reserve(1, 4, true);
	reserve(2, 10, true);
	begin_all(0);
	CHECK_EQ(core[0].domain, 0);
	CHECK_EQ(core[1].domain, 0);
	CHECK_EQ(core[2].domain, 2);
	/* Core 2 is alone: best effort as soon as it has used its own. */
	CHECK_EQ(used(2, 10).order, SOL_FREE);
	CHECK_EQ(used(0, 6).order, SOL_STOP);
	CHECK(sol_regulator_stopped(&reg, 0));
	CHECK_EQ(used(1, 4).order, SOL_FREE);
	CHECK(!sol_regulator_stopped(&reg, 0));
}

/* Core 2 may touch all banks, but has no reservation: nobody waits for it. */
TEST(cores_are_not_joined_by_one_without_a_reservation)
{
	init(3, 10, 1, SOL_SHARE_SPARE);
	set_pools(1, 2, 3);
	reserve(0, 10, true);
	reserve(1, 10, true);
	begin_all(0);
	CHECK_EQ(core[0].domain, 0);
	CHECK_EQ(core[1].domain, 1);
	CHECK_EQ(used(0, 10).order, SOL_FREE);
	/* With one it joins them, from the next period on. */
	CHECK_EQ(sol_regulator_reserve(&reg, 0, NULL, &err), 0);
	CHECK_EQ(sol_regulator_reserve(&reg, 1, NULL, &err), 0);
	reserve(0, 4, true);
	reserve(1, 4, true);
	reserve(2, 4, true);
	CHECK_EQ(core[1].domain, 1);
	begin_all(0);
	CHECK_EQ(core[1].domain, 0);
	CHECK_EQ(used(0, 4).order, SOL_STOP);
}

/* 0 has banks a, 1 has a and b, 2 has b: a core reclaims what both have. */
TEST(reclaiming_goes_by_every_pool)
{
	init(3, 10, 10, SOL_SHARE_NONE);
	reg.set.ewma = SOL_EWMA_ONE;
	set_pools(1, 3, 2);
	reserve(0, 6, true);
	reserve(1, 4, true);
	reserve(2, 6, true);
	begin_all(0);
	CHECK_EQ(core[2].domain, 0);
	/* Core 0 gives 5 in pool 0, core 2 gives 2 in pool 1. */
	sol_regulator_begin(&reg);
	core_begins(0, 1);
	core_begins(1, 4);
	core_begins(2, 4);
	CHECK_EQ(reg.global[0][SOL_READS], 5);
	CHECK_EQ(reg.global[1][SOL_READS], 2);
	ANSWER(used(1, 4), SOL_RUN, 6);
	CHECK_EQ(reg.global[0][SOL_READS], 3);
	CHECK_EQ(reg.global[1][SOL_READS], 0);
	CHECK_EQ(used(1, 6).order, SOL_STOP);
	/* Core 2 finds its pool empty, core 0 does not. */
	ANSWER(used(2, 4), SOL_RUN, 6);
	CHECK(core[2].ran_on[SOL_READS]);
	ANSWER(used(0, 1), SOL_RUN, 4);
	CHECK(!core[0].ran_on[SOL_READS]);
}

TEST(restarting_one_domain_leaves_the_other)
{
	init(3, 10, 1, SOL_SHARE_PROPORTIONAL);
	set_pools(1, 1, 2);
	reserve(0, 5, false);
	reserve(1, 5, false);
	reserve(2, 10, false);
	begin_all(0);
	CHECK_EQ(used(0, 5).order, SOL_STOP);
	CHECK_EQ(used(2, 7).order, SOL_RUN);
	CHECK_EQ(used(1, 5).order, SOL_RESTART);
	sol_regulator_restart(&reg, 0);
	ANSWER(core_begins(0, 5), SOL_RUN, 5);
	ANSWER(core_begins(1, 5), SOL_RUN, 5);
	CHECK_EQ(core[2].meter[SOL_READS].used, 7);
	CHECK_EQ(core[2].stats.periods, 1);
	CHECK_EQ(used(2, 10).order, SOL_RESTART);
	/* A core without a reservation any more is left out. */
	CHECK_EQ(sol_regulator_reserve(&reg, 2, NULL, &err), 0);
	sol_regulator_restart(&reg, 1);
	ANSWER(core_begins(2, 10), SOL_RUN, SOL_NO_LIMIT);
	CHECK_EQ(core[2].stats.periods, 1);
}

TEST(pools_come_from_colors)
{
	unsigned long a[SOL_LONGS(64)] = { 0x00ff }, b[SOL_LONGS(64)] = { 0x0ff0 };
	unsigned long c[SOL_LONGS(64)] = { 0xf000 };
	struct sol_colors ca = { .sets = a, .by_bank = true };
	struct sol_colors cb = { .sets = b, .by_bank = true };
	struct sol_colors cc = { .sets = c, .by_bank = true };
	const struct sol_colors *colors[3] = { &ca, &cb, &cc };
	u64 pools[3];

	/* Only a, both, only b, c. */
	sol_pools(64, colors, 3, pools);
	CHECK_EQ(pools[0], 3);
	CHECK_EQ(pools[1], 6);
	CHECK_EQ(pools[2], 8);
	/* A core without colours may be in any bank. */
	colors[2] = NULL;
	sol_pools(64, colors, 3, pools);
	CHECK_EQ(pools[0] & pools[1], 2);
	CHECK_EQ(pools[2], 15);
	/* Bank sets that nobody has make no pool. */
	a[0] = 0xff00;
	colors[1] = colors[2] = &ca;
	sol_pools(64, colors, 3, pools);
	CHECK_EQ(pools[0], 1);
	colors[2] = NULL;
	/* Nobody has colours: MemGuard. */
	colors[0] = colors[1] = NULL;
	sol_pools(64, colors, 3, pools);
	CHECK_EQ(pools[0], 1);
	CHECK_EQ(pools[1], 1);
}

/* Past 64 pools bank sets count as one: safe, though less sharp. */
TEST(more_overlaps_than_pools)
{
	static unsigned long bits[70][SOL_LONGS(140)];
	struct sol_colors colors[70];
	const struct sol_colors *list[70];
	u64 pools[70];
	u32 i, k;

	for (i = 0; i < 70; i++) {
		memset(bits[i], 0, sizeof(bits[i]));
		sol_bit_set(bits[i], i);
		sol_bit_set(bits[i], 139 - i);
		colors[i] = (struct sol_colors){ .sets = bits[i],
						 .by_bank = true };
		list[i] = &colors[i];
	}
	sol_pools(140, list, 70, pools);
	for (i = 0; i < 70; i++)
		for (k = 0; k < i; k++)
			CHECK_EQ((pools[i] & pools[k]) != 0, k >= 63);
	for (i = 0; i < 63; i++)
		CHECK_EQ(pools[i], 1ull << i);
}

TEST(offline_cores_are_not_waited_for)
{
	init(2, 10, 1, SOL_SHARE_SPARE);
	reserve(0, 5, false);
	reserve(1, 5, false);
	begin_all(0);
	CHECK_EQ(used(0, 5).order, SOL_STOP);
	CHECK_EQ(sol_regulator_online(&reg, 1, false).order, SOL_FREE);
	begin_all(0);
	CHECK_EQ(used(0, 5).order, SOL_FREE);
	/* Nor if they go before they have begun. */
	sol_regulator_online(&reg, 1, true);
	sol_regulator_begin(&reg);
	core_begins(0, 0);
	CHECK_EQ(used(0, 5).order, SOL_STOP);
	CHECK_EQ(sol_regulator_online(&reg, 1, false).order, SOL_FREE);
	/* It keeps its reservation. */
	CHECK_EQ(sol_regulator_reserve(&reg, 0, &(struct sol_reservation){
			.rate = { rate(6) } }, &err), -ENOSPC);
	sol_regulator_online(&reg, 1, true);
	ANSWER(used(1, 100), SOL_RUN, SOL_NO_LIMIT);
	begin_all(0);
	ANSWER(used(1, 1), SOL_RUN, 5);
}

TEST(a_rate_for_an_actuator)
{
	init(2, 200, 1, SOL_SHARE_NONE);
	reserve(0, 123, true);
	CHECK_EQ(sol_regulator_percent(&reg, 0, 10, 10), 100);
	begin_all(0);
	CHECK_EQ(sol_regulator_percent(&reg, 0, 10, 1), 13);
	CHECK_EQ(sol_regulator_percent(&reg, 0, 10, 10), 20);
	CHECK_EQ(sol_regulator_percent(&reg, 0, 30, 10), 30);
	CHECK_EQ(sol_regulator_percent(&reg, 1, 10, 10), 100);
}

TEST(wrong_settings_and_reservations)
{
	static const struct sol_regulation good = {
		.period = 1000, .line = 64, .r_min = { 1200000000 },
		.peak = 6400000000ull, .ewma = 180,
	};
	struct sol_regulation set = good;
	struct sol_reservation want = { .rate = { 1000000000 } };
	struct sol_regulator before;
	u64 pools[2] = { 1, 1 };

#define WRONG(field, value, words)					\
	do {								\
		set = good;						\
		set.field = value;					\
		CHECK_EQ(sol_regulator_init(&reg, &set, core, 2, &err),	\
			 -EINVAL);					\
		if (!strstr(err.text, words))				\
			test_fail(__FILE__, __LINE__, "%s", err.text);	\
	} while (0)

	WRONG(period, 9, "period 9 us");
	WRONG(period, 1000001, "10 to 1000000");
	WRONG(line, 65, "line of 65");
	WRONG(ewma, 0, "1 to 256");
	WRONG(ewma, 257, "1 to 256");
	WRONG(sharing, 3, "sharing");
	WRONG(peak, 1000000000, "above the peak of 1000 MB/s");
	WRONG(peak, 10000000000001ull, "at most 10 TB/s");
	WRONG(r_min[0], 0, "less than one line");
	WRONG(r_min[1], 1, "less than one line");
	/* As long as nothing is regulated, the rest must be right all the same. */
	set = good;
	set.r_min[0] = 0;
	CHECK_EQ(sol_regulation_check(&set, &err), 0);
	set.line = 3;
	CHECK_EQ(sol_regulation_check(&set, &err), -EINVAL);
	CHECK_EQ(sol_regulator_init(&reg, &good, core, 0, &err), -EINVAL);
	CHECK_EQ(sol_regulator_init(&reg, &good, core, 2, &err), 0);
	CHECK_EQ(reg.r_min[SOL_READS], 18750);
	CHECK_EQ(reg.q_min, 1000);

	CHECK_EQ(sol_regulator_reserve(&reg, 0, &want, &err), 0);
	before = reg;
	CHECK_EQ(sol_regulator_reserve(&reg, 2, &want, &err), -EINVAL);
	CHECK(strstr(err.text, "core 2: there are cores 0 to 1"));
	want.rate[0] = 200064000;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), -ENOSPC);
	if (!strstr(err.text, "core 1: 200 MB/s of reads and 1000 MB/s that others reserved are more than the guaranteed 1200 MB/s"))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	want.rate[0] = 0;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), -EINVAL);
	CHECK(strstr(err.text, "less than one line"));
	want.rate[0] = ~0ull;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), -EINVAL);
	CHECK(strstr(err.text, "more than 10 TB/s"));
	want.weight = SOL_MAX_WEIGHT + 1;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), -EINVAL);
	CHECK(!memcmp(&before, &reg, sizeof(reg)));
	want.weight = 0;
	want.rate[0] = 200000000;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), 0);
	/* Apart they may have more than together. */
	pools[1] = 2;
	CHECK_EQ(sol_regulator_pools(&reg, pools, &err), 0);
	want.rate[0] = 1200000000;
	CHECK_EQ(sol_regulator_reserve(&reg, 1, &want, &err), 0);
	pools[1] = 3;
	CHECK_EQ(sol_regulator_pools(&reg, pools, &err), -ENOSPC);
	CHECK(strstr(err.text, "2200 MB/s of reads together"));
	pools[1] = 0;
	CHECK_EQ(sol_regulator_pools(&reg, pools, &err), -EINVAL);
	CHECK(strstr(err.text, "core 1 is in no pool"));
	CHECK_EQ(core[1].next_pools, 2);
}

/* A plan that was tried on another regulator, put in place core by core. */
TEST(a_plan_is_put_without_checks)
{
	const struct sol_reservation much = { .rate = { rate(60) } };
	const struct sol_reservation little = { .rate = { rate(40) } };

	init(3, 100, 1, SOL_SHARE_NONE);
	reserve(0, 60, false);
	reserve(1, 40, false);
	sol_regulator_begin(&reg);
	for (u32 i = 0; i < 3; i++)
		core_begins(i, 0);
	CHECK(!reg.pools_changed);
	core[0].known = core[1].known = true;
	/* Cores 0 and 1 exchange rates, which no order of checked steps allows at once. */
	sol_regulator_put(&reg, 0, &little, 1);
	sol_regulator_put(&reg, 1, &much, 1);
	sol_regulator_put(&reg, 2, NULL, 1);
	CHECK(!reg.pools_changed);
	CHECK(!core[0].known && !core[1].known);
	CHECK_EQ(core[0].want.rate[0], rate(40));
	CHECK_EQ(core[1].want.rate[0], rate(60));
	/* A core goes on if its reservation stays the same. */
	core[1].known = true;
	sol_regulator_put(&reg, 1, &much, 1);
	CHECK(core[1].known && !reg.pools_changed);
	/* Other cores and other pools count from the next period on. */
	sol_regulator_put(&reg, 0, NULL, 1);
	sol_regulator_put(&reg, 2, &little, 2);
	CHECK(!core[0].regulated && core[2].regulated && reg.pools_changed);
	CHECK_EQ(core[2].pools, 0);
	sol_regulator_begin(&reg);
	CHECK_EQ(core[2].pools, 2);
	CHECK_EQ(core[0].pools, 0);
	CHECK(!sol_regulator_stopped(&reg, 0));
}

/* ---- What holds whatever happens ---- */

/* A core went offline in this period and took its budget with it. */
static bool someone_left;

/*
 * Budgets and G are what was reserved, in every pool; no G passes what was
 * donated.
 */
static void check_conserved(void)
{
	u32 pool, kind, i;

	if (someone_left)
		return;
	for (pool = 0; pool < 4; pool++)
		for (kind = 0; kind < SOL_TRAFFICS; kind++) {
			u64 reserved = 0, budget = 0, given = 0;

			for (i = 0; i < reg.n_cores; i++) {
				const struct sol_core *c = &core[i];
				const struct sol_meter *m = &c->meter[kind];

				if (!c->taking_part || !c->begun ||
				    !(c->pools >> pool & 1))
					continue;
				reserved += m->reserved;
				budget += m->budget;
				if (m->budget < m->reserved)
					given += m->reserved - m->budget;
			}
			CHECK_EQ(budget + reg.global[pool][kind], reserved);
			CHECK(reg.global[pool][kind] <= given);
			CHECK(reserved <= reg.r_min[kind]);
		}
}

/* What the test knows of a core. */
static struct {
	u32 used[SOL_TRAFFICS];
	bool stopped;
} seen[CORES];

static bool below_all(const struct sol_core *c, const u32 *u)
{
	u32 kind;

	for (kind = 0; kind < SOL_TRAFFICS; kind++)
		if (reg.r_min[kind] && u[kind] >= c->meter[kind].reserved)
			return false;
	return true;
}

/* All cores of a domain: stopped, or nothing left to use. */
static void check_all_done(u32 domain)
{
	u32 i;

	for (i = 0; i < reg.n_cores; i++) {
		const struct sol_core *c = &core[i];

		if (c->domain != domain || !c->taking_part)
			continue;
		CHECK(c->begun);
		CHECK(c->stopped || (!c->meter[0].budget &&
				     !c->meter[1].budget));
	}
}

static void begin_domain(u32 domain);

static void obey(u32 i, struct sol_answer a)
{
	u32 k;

	check_conserved();
	switch (a.order) {
	case SOL_RUN:
		break;
	case SOL_STOP:
		/* Not while it is below its reservation. */
		CHECK(!below_all(&core[i], seen[i].used));
		CHECK(core[i].regulated);
		seen[i].stopped = true;
		return;
	case SOL_FREE:
		check_all_done(a.domain);
		for (k = 0; k < reg.n_cores; k++)
			if (core[k].domain == a.domain)
				seen[k].stopped = false;
		return;
	case SOL_RESTART:
		check_all_done(a.domain);
		sol_regulator_restart(&reg, a.domain);
		begin_domain(a.domain);
		return;
	}
	for (k = 0; k < SOL_TRAFFICS; k++)
		CHECK(a.limit[k] == SOL_NO_LIMIT ||
		      a.limit[k] >= seen[i].used[k]);
}

static void begin_core(u32 i)
{
	u32 last[SOL_TRAFFICS];

	memcpy(last, seen[i].used, sizeof(last));
	memset(&seen[i], 0, sizeof(seen[i]));
	obey(i, sol_regulator_core(&reg, i, last));
	if (core[i].begun && core[i].taking_part && !core[i].now.reclaim)
		CHECK_EQ(core[i].meter[0].budget, core[i].meter[0].reserved);
}

static void begin_domain(u32 domain)
{
	u32 i;

	for (i = 0; i < reg.n_cores; i++)
		if (core[i].domain == domain && !core[i].begun)
			begin_core(i);
}

/* Use some lines; tell at limits, now and then late or in between. */
static void use(u32 i)
{
	u32 k, kinds = reg.r_min[SOL_WRITES] ? 2 : 1;

	if (seen[i].stopped) {
		CHECK(sol_regulator_stopped(&reg, i) || !core[i].begun);
		return;
	}
	for (k = 0; k < kinds; k++) {
		u32 limit = core[i].meter[k].limit, step = 1 + below(20);

		if (!once_in(8) && seen[i].used[k] < limit &&
		    seen[i].used[k] + step > limit)
			step = limit - seen[i].used[k];
		seen[i].used[k] += step;
	}
	obey(i, sol_regulator_used(&reg, i, seen[i].used));
}

static void random_reservation(u32 i)
{
	struct sol_reservation want = {
		.rate = { rate(1 + below(80)), rate(1 + below(40)) },
		.weight = once_in(3) ? 1 + below(9) : 0,
		.reclaim = !once_in(3),
	};

	if (once_in(6))
		sol_regulator_reserve(&reg, i, NULL, &err);
	else
		sol_regulator_reserve(&reg, i, &want, &err);
	if (!core[i].regulated)
		seen[i].stopped = false;
}

static void random_change(void)
{
	u32 i = below(reg.n_cores), k;
	u64 pools[CORES];

	switch (below(6)) {
	case 0: case 1:
		random_reservation(i);
		break;
	case 2:
		sol_regulator_active(&reg, i, once_in(2));
		break;
	case 3:
		sol_regulator_weight(&reg, i, below(20));
		break;
	case 4:
		for (k = 0; k < reg.n_cores; k++)
			pools[k] = once_in(2) ? 1ull << below(4) :
						1 + below(15);
		sol_regulator_pools(&reg, pools, &err);
		break;
	default:
		if (once_in(2)) {
			obey(i, sol_regulator_online(&reg, i, true));
			break;
		}
		someone_left = true;
		memset(&seen[i], 0, sizeof(seen[i]));
		obey(i, sol_regulator_online(&reg, i, false));
	}
}

static void random_regulator(void)
{
	struct sol_regulation set = {
		.period = PERIOD, .line = LINE,
		.r_min = { rate(100 + below(200)),
			   once_in(2) ? rate(50 + below(100)) : 0 },
		.peak = rate(1000), .q_min = below(15), .ewma = 1 + below(256),
		.sharing = below(3),
	};

	memset(seen, 0, sizeof(seen));
	someone_left = false;
	CHECK_EQ(sol_regulator_init(&reg, &set, core, 1 + below(CORES), &err),
		 0);
}

TEST(budgets_are_conserved_and_reservations_kept)
{
	u32 n, period, i;

	for (n = 0; n < 150; n++) {
		random_regulator();
		for (i = 0; i < reg.n_cores; i++)
			random_reservation(i);
		for (period = 0; period < 30; period++) {
			sol_regulator_begin(&reg);
			someone_left = false;
			for (i = 0; i < 60; i++) {
				u32 k = below(reg.n_cores);

				if (!core[k].begun)
					begin_core(k);
				else
					use(k);
				if (once_in(8))
					sol_regulator_active(&reg,
						below(reg.n_cores), once_in(2));
			}
			for (i = 0; i < reg.n_cores; i++)
				if (!core[i].begun)
					begin_core(i);
			if (once_in(2))
				random_change();
		}
	}
}

/* A core that does not reclaim has what it reserved, whatever others do. */
TEST(hard_real_time_is_independent_of_others)
{
	u32 n, period, i, steps;

	for (n = 0; n < 100; n++) {
		u32 mine = 1 + below(30), got;

		random_regulator();
		CHECK_EQ(sol_regulator_reserve(&reg, 0,
				&(struct sol_reservation){ .rate =
				{ rate(mine), rate(49) } }, &err), 0);
		for (i = 1; i < reg.n_cores; i++)
			random_reservation(i);
		for (period = 0; period < 20; period++) {
			sol_regulator_begin(&reg);
			for (i = 0; i < reg.n_cores; i++)
				begin_core(i);
			for (got = 0, steps = 0; got < mine; steps++) {
				i = below(reg.n_cores);
				if (i) {
					use(i);
					continue;
				}
				/* A restart gives it a whole budget again. */
				if (!seen[0].used[0])
					got = 0;
				CHECK(!seen[0].stopped);
				seen[0].used[0]++;
				got++;
				obey(0, sol_regulator_used(&reg, 0,
							   seen[0].used));
			}
		}
	}
}

/* Steady traffic: the regulated rate is the reservation. */
TEST(steady_traffic_gets_its_reservation)
{
	u32 period, total = 0, u;

	init(2, 100, 1, SOL_SHARE_NONE);
	reserve(0, 60, true);
	reserve(1, 40, true);
	for (period = 0, u = 0; period < 100; period++) {
		sol_regulator_begin(&reg);
		core_begins(0, u);
		/* The other is steady, too. */
		core_begins(1, 40);
		for (u = 1; used(0, u).order == SOL_RUN; u++)
			;
		total += u;
	}
	CHECK_EQ(total, 6000);
}
