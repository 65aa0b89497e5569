// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The map text (docs/reference/map-format.md), read. One statement a line;
 * the first word says which. Each statement is checked by itself when it is
 * read, what they must be together by sol_map_check() and sol_map_derive(). A
 * refusal names the line and what was expected there.
 *
 * Locking: none. Reads into the caller's map; nothing large on the stack.
 */
#include "derive.h"
#include "../text/scan.h"
#include "../text/text.h"

#define ADDR_END	(1ull << SOL_MAX_ADDR_BITS)
#define LEAST_FRAME_BITS	((1ull << SOL_MIN_FRAME_SHIFT) - 1)

/* Statements that may stand once: in the text, or in a layout. */
enum once {
	ONCE_NAME, ONCE_LINE, ONCE_LLC,
	ONCE_CHANNEL, ONCE_RANK, ONCE_BANK, ONCE_ROW, ONCE_COL, ONCE_CS,
	ONCE_BG, ONCE_SUB, ONCE_INTERLEAVE, ONCE_COUNT
};
#define LAYOUT_ONCE	(~(u32)((1u << ONCE_CHANNEL) - 1))

struct parser {
	struct sol_map *map;
	struct sol_err *err;
	const char *at;		/* next character of the line */
	const char *end;	/* end of the line, comment cut off */
	u32 line;
	u32 seen;		/* by enum once */
	struct sol_map_lines lines;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool next_word(struct parser *p, struct sol_word *word)
{
	while (p->at < p->end && is_space(*p->at))
		p->at++;
	word->text = p->at;
	while (p->at < p->end && !is_space(*p->at))
		p->at++;
	word->len = p->at - word->text;
	return word->len;
}

static int refuse_word(struct parser *p, struct sol_word word,
		       const char *what, const char *expected)
{
	if (!word.len)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "%s: nothing given, expected %s", what,
				  expected);
	return sol_refuse(p->err, p->line, -EINVAL, "%s \"%q\": expected %s",
			  what, word.text, word.len, expected);
}

static int no_more(struct parser *p, const char *what)
{
	struct sol_word word;

	if (!next_word(p, &word))
		return 0;
	return sol_refuse(p->err, p->line, -EINVAL,
			  "%s: \"%q\" is more than expected", what, word.text,
			  word.len);
}

/* A whole word that is a number below @limit. */
static int get_number(struct parser *p, const char *what, const char *expected,
		      u64 limit, u64 *value)
{
	struct sol_word word;

	next_word(p, &word);
	if (!word.len || sol_scan_u64(word.text, word.len, value) != word.len ||
	    *value >= limit)
		return refuse_word(p, word, what, expected);
	return 0;
}

/* ---- Functions ---- */

/* A function: bit numbers joined by ^. */
static int get_mask(struct parser *p, struct sol_word word, const char *what,
		    u64 *mask)
{
	size_t i = 0;

	*mask = 0;
	for (;;) {
		u64 bit;
		size_t n = sol_scan_u64(word.text + i, word.len - i, &bit);

		if (!n || bit >= SOL_MAX_ADDR_BITS)
			return refuse_word(p, word, what,
					   "address bits 0 to 51 joined by ^, such as 6^16");
		if (*mask >> bit & 1)
			return sol_refuse(p->err, p->line, -EINVAL,
					  "%s \"%q\": bit %u is named twice and cancels out",
					  what, word.text, word.len, (u32)bit);
		*mask |= 1ull << bit;
		i += n;
		if (i == word.len)
			return 0;
		if (word.text[i++] != '^')
			return refuse_word(p, word, what,
					   "address bits 0 to 51 joined by ^, such as 6^16");
	}
}

/* All functions of the line into mask[max]. */
static int get_masks(struct parser *p, const char *what, u64 *mask, u32 max,
		     u8 *n)
{
	struct sol_word word;
	int rc;

	for (*n = 0; next_word(p, &word); (*n)++) {
		if (*n == max)
			return sol_refuse(p->err, p->line, -EINVAL,
					  "%s: more than %u functions", what,
					  max);
		rc = get_mask(p, word, what, &mask[*n]);
		if (rc)
			return rc;
	}
	if (!*n)
		return refuse_word(p, word, what, "at least one function");
	return 0;
}

/* As get_masks(), with `@N:` before a function that makes printed bit N. */
static int get_printed(struct parser *p, const char *what, u64 *mask, u8 *at,
		       u32 max, u8 *n)
{
	struct sol_word word;
	u32 used = 0;
	u64 bit = 0;
	int rc;

	for (*n = 0; next_word(p, &word); (*n)++, bit++) {
		if (*n == max)
			return sol_refuse(p->err, p->line, -EINVAL,
					  "%s: more than %u functions", what,
					  max);
		if (word.text[0] == '@') {
			size_t len = sol_scan_u64(word.text + 1, word.len - 1,
						  &bit);

			if (!len || len + 2 >= word.len ||
			    word.text[len + 1] != ':')
				return refuse_word(p, word, what,
						   "@N: before a function, such as @11:14");
			word.text += len + 2;
			word.len -= len + 2;
		}
		if (bit > 31 || used >> bit & 1)
			return sol_refuse(p->err, p->line, -EINVAL,
					  "%s: printed bit %u is %s", what,
					  bit > 31 ? 32 : (u32)bit,
					  bit > 31 ? "too high, they are 0 to 31" :
					  "given twice");
		rc = get_mask(p, word, what, &mask[*n]);
		if (rc)
			return rc;
		used |= 1u << bit;
		at[*n] = bit;
	}
	if (!*n)
		return refuse_word(p, word, what, "at least one function");
	return 0;
}

/* ---- Statements; the first word has been read ---- */

static struct sol_layout *layout_now(struct parser *p)
{
	return &p->map->layout[p->map->n_layouts - 1];
}

static int get_name(struct parser *p)
{
	struct sol_word word;
	size_t i;

	next_word(p, &word);
	if (!word.len || word.len >= SOL_MAP_NAME)
		return refuse_word(p, word, "name",
				   "one word of at most 31 characters");
	for (i = 0; i < word.len; i++) {
		if (word.text[i] <= ' ' || word.text[i] > '~')
			return refuse_word(p, word, "name",
					   "printable ASCII characters");
		p->map->name[i] = word.text[i];
	}
	return no_more(p, "name");
}

static int get_line(struct parser *p)
{
	u64 line;
	int rc;

	rc = get_number(p, "line", "a power of two from 16 to 4096 (bytes)",
			4097, &line);
	if (rc)
		return rc;
	if (line < 16 || line & (line - 1))
		return sol_refuse(p->err, p->line, -EINVAL,
				  "line %u: expected a power of two from 16 to 4096 (bytes)",
				  (u32)line);
	p->map->line = line;
	return no_more(p, "line");
}

static int get_llc(struct parser *p)
{
	struct sol_map *map = p->map;
	u32 i;
	int rc;

	rc = get_masks(p, "llc", map->llc, SOL_MAX_LLC_BITS,
		       &map->n_llc_functions);
	for (i = 0; !rc && i < map->n_llc_functions; i++)
		if (map->llc[i] & LEAST_FRAME_BITS)
			return sol_refuse(p->err, p->line, -EINVAL,
					  "llc function %u: bits below 12 differ within a page and can't be its colour",
					  i);
	return rc;
}

static int get_layout(struct parser *p)
{
	if (p->map->n_layouts == SOL_MAX_LAYOUTS)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "layout: more than %u layouts",
				  SOL_MAX_LAYOUTS);
	p->lines.layout[p->map->n_layouts++] = p->line;
	p->seen &= ~LAYOUT_ONCE;
	return no_more(p, "layout");
}

static int get_field(struct parser *p, const char *what,
		     struct sol_field *field)
{
	return get_masks(p, what, field->mask, SOL_MAX_FIELD_BITS, &field->n);
}

static int get_row(struct parser *p)
{
	struct sol_layout *l = layout_now(p);

	return get_printed(p, "row", l->row, l->row_at, SOL_MAX_ROW_BITS,
			   &l->n_row);
}

static int get_col(struct parser *p)
{
	struct sol_layout *l = layout_now(p);

	return get_printed(p, "col", l->col, l->col_at, SOL_MAX_COL_BITS,
			   &l->n_col);
}

static int get_cs(struct parser *p)
{
	u64 cs;
	int rc = get_number(p, "cs", "the first chip select, 0 to 255", 256,
			    &cs);

	if (rc)
		return rc;
	layout_now(p)->chip_select = cs;
	return no_more(p, "cs");
}

/* Numbers of a field's bits, for `bg` and `sub`. */
static int get_bits(struct parser *p, const char *what, u16 *bits)
{
	u64 bit;
	int rc;

	do {
		rc = get_number(p, what, "bit numbers of the field, 0 to 15",
				16, &bit);
		if (rc)
			return rc;
		*bits |= 1u << bit;
		while (p->at < p->end && is_space(*p->at))
			p->at++;
	} while (p->at < p->end);
	return 0;
}

static int get_bg(struct parser *p)
{
	return get_bits(p, "bg", &layout_now(p)->bg);
}

static int get_sub(struct parser *p)
{
	return get_bits(p, "sub", &layout_now(p)->sub);
}

/* `on` and the number of each way; else they are 0, 1 and so on. */
static int get_ways(struct parser *p, struct sol_layout *l, u32 ways,
		    bool *named)
{
	struct sol_word word;
	u64 way;
	u32 i;
	int rc;

	*named = next_word(p, &word);
	if (*named && !sol_word_is(word, "on"))
		return refuse_word(p, word, "interleave",
				   "`on` and the number of each way, or nothing");
	memset(l->turn_of, SOL_NO_TURN, sizeof(l->turn_of));
	for (i = 0; i < ways; i++) {
		way = i;
		rc = *named ? get_number(p, "interleave on",
					 "the number of each way, 0 to 62",
					 SOL_MAX_WAYS, &way) : 0;
		if (rc)
			return rc;
		if (l->turn_of[way] != SOL_NO_TURN)
			return sol_refuse(p->err, p->line, -EINVAL,
					  "interleave on: way %u is given twice",
					  (u32)way);
		l->way_of[i] = way;
		l->turn_of[way] = i;
	}
	return no_more(p, "interleave");
}

static int get_interleave(struct parser *p)
{
	struct sol_layout *l = layout_now(p);
	u64 ways, bytes;
	bool named;
	int rc;

	rc = get_number(p, "interleave", "a number of ways, 3 to 63",
			SOL_MAX_WAYS + 1, &ways);
	if (!rc)
		rc = get_number(p, "interleave granule",
				"bytes in a row of one way", 1u << 30, &bytes);
	if (!rc)
		rc = get_ways(p, l, ways, &named);
	if (rc)
		return rc;
	if (!ways || (!named && !(ways & (ways - 1))))
		return sol_refuse(p->err, p->line, -EINVAL,
				  "interleave %u: expected 3 to 63 and no power of two, which are channel functions, or `on` and the ways",
				  (u32)ways);
	if (bytes & (bytes - 1) || bytes < p->map->line)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "interleave granule %u: expected a power of two of at least a line, %u bytes",
				  (u32)bytes, p->map->line);
	l->ways = ways;
	l->granule = sol_top_bit(bytes);
	return 0;
}

static int get_range_option(struct parser *p, struct sol_word word,
			    struct sol_range *range)
{
	u64 value;
	int rc;

	if (sol_word_is(word, "node")) {
		rc = get_number(p, "node", "a node number, 0 to 63",
				SOL_MAX_NODES, &value);
		range->node = rc ? 0 : value;
		return rc;
	}
	if (sol_word_is(word, "base")) {
		rc = get_number(p, "base", "an offset below 2^52", ADDR_END,
				&value);
		range->base = rc ? 0 : value;
		return rc;
	}
	if (sol_word_is(word, "layout")) {
		rc = get_number(p, "layout", "the number of a layout, 0 to 3",
				SOL_MAX_LAYOUTS, &value);
		range->layout = rc ? 0 : value;
		return rc;
	}
	return refuse_word(p, word, "range", "node, base or layout");
}

static int check_range(struct parser *p, const struct sol_range *range)
{
	u64 bits = range->start | range->end | range->base;
	u32 bytes = 1u << p->map->frame_shift;

	if (bits & (bytes - 1))
		return sol_refuse(p->err, p->line, -EINVAL,
				  "range %x %x base %x: expected multiples of the page size %u",
				  range->start, range->end, range->base, bytes);
	if (range->start >= range->end)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "range %x %x: the end (first byte after it) must be above the start",
				  range->start, range->end);
	if (range->base + (range->end - range->start) > ADDR_END)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "range %x %x base %x: offsets pass 2^52",
				  range->start, range->end, range->base);
	return 0;
}

static int get_range(struct parser *p)
{
	static const char expected[] = "an address up to 2^52";
	struct sol_map *map = p->map;
	struct sol_range *range;
	struct sol_word word;
	int rc;

	if (map->n_ranges == SOL_MAX_RANGES)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "range: more than %u ranges",
				  SOL_MAX_RANGES);
	range = &map->range[map->n_ranges];
	rc = get_number(p, "range start", expected, ADDR_END, &range->start);
	if (!rc)
		rc = get_number(p, "range end", expected, ADDR_END + 1,
				&range->end);
	while (!rc && next_word(p, &word))
		rc = get_range_option(p, word, range);
	if (!rc)
		rc = check_range(p, range);
	if (rc)
		return rc;
	if (map->n_ranges && range[-1].end > range->start)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "range %x: begins below the end %x of the range before it; give them ascending and apart",
				  range->start, range[-1].end);
	p->lines.range[map->n_ranges++] = p->line;
	return 0;
}

/* ---- The text ---- */

static int once(struct parser *p, enum once which, const char *what)
{
	if (which >= ONCE_CHANNEL && !p->map->n_layouts)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "%s: expected `layout` before it", what);
	if (p->seen >> which & 1)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "%s: given twice", what);
	p->seen |= 1u << which;
	return 0;
}

/* Statements that may stand once, by the numbers of enum once. */
static int get_once(struct parser *p, enum once which, const char *what)
{
	int rc = once(p, which, what);

	if (rc)
		return rc;
	switch (which) {
	case ONCE_NAME:
		return get_name(p);
	case ONCE_LINE:
		return get_line(p);
	case ONCE_LLC:
		return get_llc(p);
	case ONCE_CHANNEL:
		return get_field(p, what, &layout_now(p)->channel);
	case ONCE_RANK:
		return get_field(p, what, &layout_now(p)->rank);
	case ONCE_BANK:
		return get_field(p, what, &layout_now(p)->bank);
	case ONCE_ROW:
		return get_row(p);
	case ONCE_COL:
		return get_col(p);
	case ONCE_CS:
		return get_cs(p);
	case ONCE_BG:
		return get_bg(p);
	case ONCE_SUB:
		return get_sub(p);
	case ONCE_INTERLEAVE:
		return get_interleave(p);
	case ONCE_COUNT:
		break;
	}
	return -EINVAL;
}

static const char *const once_name[ONCE_COUNT] = {
	"name", "line", "llc", "channel", "rank", "bank", "row", "col", "cs",
	"bg", "sub", "interleave",
};

static int get_statement(struct parser *p, struct sol_word word)
{
	u32 i;

	if (sol_word_is(word, "layout"))
		return get_layout(p);
	if (sol_word_is(word, "range"))
		return get_range(p);
	for (i = 0; i < ONCE_COUNT; i++)
		if (sol_word_is(word, once_name[i]))
			return get_once(p, i, once_name[i]);
	return refuse_word(p, word, "statement",
			   "name, line, llc, layout, channel, rank, bank, cs, row, col, bg, sub, interleave or range");
}

static int get_version(struct parser *p, struct sol_word word)
{
	u64 version;
	int rc;

	if (!sol_word_is(word, "soloist-map"))
		return refuse_word(p, word, "first word", "`soloist-map 1`");
	rc = get_number(p, "soloist-map", "version 1", 2, &version);
	if (!rc && !version)
		return sol_refuse(p->err, p->line, -EINVAL,
				  "soloist-map 0: expected version 1");
	return rc ? rc : no_more(p, "soloist-map");
}

/* Cut the next line off the text; false at its end. */
static bool next_line(struct parser *p, const char **text, const char *stop)
{
	const char *end;

	if (*text == stop)
		return false;
	for (end = *text; end < stop && *end != '\n'; end++)
		;
	p->at = *text;
	*text = end < stop ? end + 1 : end;
	p->line++;
	for (p->end = p->at; p->end < end && *p->end != '#'; p->end++)
		;
	return true;
}

static int get_text(struct parser *p, const char *text, size_t len)
{
	const char *stop = text + len;
	bool version = false;
	struct sol_word word;
	int rc;

	while (next_line(p, &text, stop)) {
		if (!next_word(p, &word))
			continue;
		rc = version ? get_statement(p, word) : get_version(p, word);
		if (rc)
			return rc;
		version = true;
	}
	if (!version)
		return sol_refuse(p->err, 1, -EINVAL,
				  "the text is empty: expected `soloist-map 1`");
	return 0;
}

int sol_map_parse(struct sol_map *map, const char *text, size_t len,
		  u32 frame_shift, struct sol_err *err)
{
	struct parser p = { .map = map, .err = err };
	int rc;

	memset(map, 0, sizeof(*map));
	if (frame_shift < SOL_MIN_FRAME_SHIFT || frame_shift > SOL_MAX_FRAME_SHIFT)
		return sol_refuse(err, 0, -EINVAL,
				  "pages of 2^%u bytes: expected 2^12 to 2^16",
				  frame_shift);
	map->line = 64;
	map->frame_shift = frame_shift;
	rc = get_text(&p, text, len);
	if (!rc)
		rc = sol_map_check(map, &p.lines, err);
	if (!rc)
		rc = sol_map_derive(map, p.lines.layout, err);
	if (rc)
		memset(map, 0, sizeof(*map));
	return rc;
}
