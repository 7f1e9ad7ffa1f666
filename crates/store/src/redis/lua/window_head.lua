-- Fixed windows: when the window ends, and what was spent in it.
--
-- Where windows end is the business of whoever asks, who names two of them: the one that the server's
-- clock should be in, and the next.
--
-- A window of which nothing is lent is a text: the memory, seconds and nanoseconds of the end, the
-- count, and when something was first spent. The count is written over at its place.

local limit, is_short = tonumber(ARGV[LIMIT + 1]), ARGV[LIMIT + 2] == '1'
local QUESTION = 8
place = LIMIT + 2

local NOW_S, NOW_NS = tonumber(clock[1]), clock[2] * 1000
local NUMBERS = '%d %d %016d'

-- When something was lost that windows are taken for spent for, if anything was: short ones after every
-- loss, long ones if nothing at all was kept.
local LOSS_S = LOST > 0 and (is_short or not KEPT) and floor(LOST / MILLION)
local LOSS_NS = (LOST % MILLION) * 1000
