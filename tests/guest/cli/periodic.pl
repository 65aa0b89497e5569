#!/usr/bin/perl
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# A periodic program: periodic.pl PERIOD_US WORK_US JOBS. Each job takes so much
# processor time; the next begins a period after this one should have begun. Says
# when it is past its own beginning.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime clock_nanosleep CLOCK_MONOTONIC
	CLOCK_PROCESS_CPUTIME_ID TIMER_ABSTIME);

my ($period, $work, $jobs) = @ARGV;
$| = 1;
print "begun\n";
my $next = clock_gettime(CLOCK_MONOTONIC);
for (1 .. $jobs) {
	$next += $period / 1e6;
	clock_nanosleep(CLOCK_MONOTONIC, $next * 1e9, TIMER_ABSTIME);
	my $until = clock_gettime(CLOCK_PROCESS_CPUTIME_ID) + $work / 1e6;
	1 while clock_gettime(CLOCK_PROCESS_CPUTIME_ID) < $until;
}
